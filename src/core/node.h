/*
 * node.h
 *	  The znodes of our requests.
 */
#ifndef ZKL_CORE_NODE_H
#define ZKL_CORE_NODE_H

#include "core/state.h"

/* What creates a node, and what deletes it; see node_write.c */
extern const ZklWriter zkl_node_creation;
extern const ZklWriter zkl_node_deletion;

/* For a manager with nothing but its config; at its end; for a new request. */
extern void zkl_node_init_all(ZklManager *m);
extern void zkl_node_free_all(ZklManager *m);
extern void zkl_node_init(ZklRequest *r, const ZklDemand *demand);

/* What is to be written into it from now on */
extern void zkl_node_set_data(ZklRequest *r, const char *data, size_t length);
extern void zkl_node_set_waited(ZklRequest *r, int64_t ms);

/* The request that a uuid names, or NULL. */
extern ZklRequest *zkl_node_find(const ZklManager *m, const ZklUuid *uuid);

/* Whether this manager made a uuid, for whatever node. */
extern bool zkl_node_made_uuid(const ZklManager *m, const ZklUuid *uuid);

/* The whole path of r's node, among the actions' strings; also in this mode. */
extern char *zkl_node_path(ZklManager *m, const ZklRequest *r);
extern char *zkl_node_path_as(ZklManager *m, const ZklRequest *r,
							  ZklLockMode mode);

/* About how many bytes an operation on it takes, at most */
extern size_t zkl_node_bytes(const ZklRequest *r);

/*
 * Has the host record the request and its node as they are now.  In place of one that
 * stays for others, these show its node; the second function records it and them.
 */
extern void zkl_node_record(ZklManager *m, const ZklRequest *r);
extern void zkl_node_record_all(ZklManager *m, const ZklRequest *r);

/* The mode that r's node is good for: a downgrade has begun, or is done. */
static inline ZklLockMode
zkl_node_mode(const ZklRequest *r)
{
	return r->downgrade.write.state != ZKL_WRITE_NONE ? ZKL_SHARED : r->node.mode;
}

/* ---- steps ---- */

/* NONE -> NEW, without a unique id */
extern void zkl_node_new(ZklManager *m, ZklRequest *r);

/* NEW: it is about to be sent; gives it a unique id of the session, unless it has one. */
extern void zkl_node_identify(ZklManager *m, ZklRequest *r);

/* NEW: it is sent again, ahead of requests that were never sent. */
extern void zkl_node_resend(ZklManager *m, ZklRequest *r);

/* Any -> DELETE; or only once its name is known. */
extern void zkl_node_delete(ZklManager *m, ZklRequest *r, ZklWriteRank rank);
extern void zkl_node_delete_held(ZklRequest *r);

/* Any -> NONE */
extern void zkl_node_gone(ZklRequest *r);

/* NEW -> EXISTS */
extern void zkl_node_exists(ZklRequest *r, ZklSeq seq, int64_t czxid);

/* Whether it may exist, or have done so */
static inline bool
zkl_node_was_sent(const ZklRequest *r)
{
	return r->node.state > ZKL_NODE_NEW ||
		(r->node.state == ZKL_NODE_NEW &&
		 r->node.write.state > ZKL_WRITE_PENDING);
}

/* NEW: it is not known whether it exists. */
static inline bool
zkl_node_is_unsettled(const ZklRequest *r)
{
	return r->node.state == ZKL_NODE_NEW &&
		r->node.write.state == ZKL_WRITE_UNSETTLED;
}

/* ---- what we know of it ---- */

/* It is created by this operation of a batch. */
static inline void
zkl_node_set_index(ZklRequest *r, uint32_t index)
{
	r->node.index = index;
}

static inline void
zkl_node_set_czxid(ZklRequest *r, int64_t czxid)
{
	r->node.czxid = czxid;
}

static inline void
zkl_node_set_version(ZklRequest *r, int32_t version)
{
	r->node.version = version;
}

/*
 * If ZooKeeper loses a write, the next write leaves the same version, whoever makes
 * it.  So on another connection only the version of the create counts.
 */
static inline void
zkl_node_forget_version(ZklRequest *r)
{
	r->node.version = 0;
}

static inline void
zkl_node_created(ZklManager *m, ZklRequest *r, bool alone)
{
	m->nodes.created++;
	m->nodes.alone += alone;
	r->node.alone = alone;
}

static inline void
zkl_node_set_seen(ZklRequest *r, uint64_t order)
{
	r->node.seen = order;
}

/* The node has become a shared one, with data of its own. */
static inline void
zkl_node_set_shared(ZklRequest *r)
{
	r->node.mode = ZKL_SHARED;
	r->node.version = 0;
}

/* Once the node is gone, it is created again. */
static inline void
zkl_node_set_recreate(ZklRequest *r)
{
	r->node.recreate = true;
}

#endif							/* ZKL_CORE_NODE_H */
