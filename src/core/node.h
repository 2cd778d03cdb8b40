/*
 * node.h
 *	  The znodes of our requests: their states, their data, and what others leave
 *	  there.
 */
#ifndef ZKL_CORE_NODE_H
#define ZKL_CORE_NODE_H

#include <string.h>

#include "core/state.h"

/* What creates a node, and what deletes it; see request.c */
extern const ZklWriter zkl_node_creation;
extern const ZklWriter zkl_node_deletion;

/* For a manager with nothing but its config; at its end; for a new request. */
extern void zkl_node_init_all(ZklManager *m);
extern void zkl_node_free_all(ZklManager *m);
extern void zkl_node_init(ZklRequest *r, const ZklDemand *demand);

/* What is to be written into it from now on */
extern void zkl_node_set_data(ZklRequest *r, const char *data, size_t length);

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

/* ---- look: looks at our own znodes, which others may mark or delete ---- */

extern void zkl_look_init_all(ZklManager *m);

/* Reads the czxid of a node that a listing settled. */
extern void zkl_look_token(ZklManager *m, ZklRequest *r);
extern void zkl_look_token_came(ZklRequest *r);

/*
 * Lets r look at its own node and watch it from then on: as soon as possible,
 * or when the node has reached a certain age.  Until then a mark may be there
 * that came after the given time.
 */
extern void zkl_look_soon(ZklManager *m, ZklRequest *r);
extern void zkl_look_later(ZklManager *m, ZklRequest *r,
						   int64_t unseen_since);

/* Its watch tells nothing any more: a mark may be there since the latest beat. */
extern void zkl_look_unknown(ZklManager *m, ZklRequest *r);

/*
 * Whether the lease is short enough to grant r now.  If not, look at its node
 * again (zkl_look_token).
 */
extern bool zkl_look_is_recent(const ZklManager *m, const ZklRequest *r);

/* How long a lease may last, given the holds that have yet to look */
extern int64_t zkl_look_lease_limit(const ZklManager *m);

/*
 * The last look is no longer enough; if_unwatched: looks only if there was
 * none.
 */
extern void zkl_look_again(ZklManager *m, ZklRequest *r);
extern void zkl_look_if_unwatched(ZklManager *m, ZklRequest *r);

/* Sends no look any more; a look under way and an armed watch stay. */
extern void zkl_look_stop(ZklRequest *r);

/* r's node has left the queue of its lock. */
extern void zkl_look_left_queue(ZklRequest *r);

/* No watch stands, and no answer will come. */
extern void zkl_look_forget(ZklManager *m, ZklRequest *r);

/* r's node belongs to the heir from now on. */
extern void zkl_look_hand_on(ZklManager *m, ZklRequest *r, ZklRequest *heir);

/* The create of r's node is sent now; it was applied, and was sent then. */
extern void zkl_look_sent(ZklManager *m, ZklRequest *r);
extern void zkl_look_placed(ZklManager *m, ZklRequest *r, int64_t sent_at);

/* The answer to the get that sets the watch */
extern void zkl_look_answered(ZklManager *m, ZklRequest *r, bool found);

/* The node was read without a watch, and bears no mark. */
extern void zkl_look_unmarked(ZklManager *m, ZklRequest *r);

/* Whether a hold's node was seen on this connection */
extern void zkl_look_set_verified(ZklRequest *r, bool verified);

/* Sends the looks that are due, as far as the window allows. */
extern void zkl_look_send(ZklManager *m);

/* Whether an operator breaks the lock; reply answers a get of r's node. */
extern bool zkl_look_mark_breaks(const ZklRequest *r, const ZklReply *reply);

/* r gets another node, which bears no mark. */
extern void zkl_look_mark_new_node(ZklRequest *r);

/* r stays for those that lean on it: they are told what only its holder was told. */
extern void zkl_look_mark_stays(ZklManager *m, ZklRequest *r);

/* r has been granted: heeds a mark that came while it waited. */
extern void zkl_look_mark_granted(ZklManager *m, ZklRequest *r);

/*
 * Another client asks the holder to give up the lock: tells the holder, once
 * for each write of that kind, which zxid tells apart.
 */
extern void zkl_look_mark_request_release(ZklManager *m, ZklRequest *r, int64_t zxid,
										  const char *asker);

/* ---- rewrite: writes of our own to the data of our znodes ---- */

extern void zkl_rewrite_init_all(ZklManager *m);

/* A new request, which has waited for so many µs before the core knows of it */
extern void zkl_rewrite_init(const ZklManager *m, ZklRequest *r, int64_t waited);

/* Whether the node of r says that the lock may be cached */
extern void zkl_rewrite_set_marked(ZklRequest *r, bool marked);

/* Takes that mark away, if there is one and the node stays. */
extern void zkl_rewrite_unmark(ZklManager *m, ZklRequest *r);

/* r, with a node of its own, has just been granted. */
extern void zkl_rewrite_granted(ZklManager *m, ZklRequest *r);

/* r's node is gone or about to go; or it was made with all that is known. */
extern void zkl_rewrite_forget(ZklRequest *r);

/* The node of r was read; it was written. */
extern void zkl_rewrite_read(ZklManager *m, ZklRequest *r,
							 const ZklReply *reply);
extern void zkl_rewrite_written(ZklManager *m, ZklRequest *r,
								const ZklReply *reply);

/* A write under way may have come to nothing. */
extern void zkl_rewrite_disconnected(ZklManager *m);

extern void zkl_rewrite_send(ZklManager *m);
extern int64_t zkl_rewrite_timer(const ZklManager *m);

/* ---- downgrade: an exclusive node becomes a shared one, without a gap ---- */

/* What changes a node; see request.c */
extern const ZklWriter zkl_downgrade_change;

/*
 * If a hold with an exclusive node only stays for others, and none of them is exclusive:
 * requests a downgrade.  Does nothing in dialects without shared locks.
 */
extern void zkl_downgrade_want(ZklManager *m, ZklRequest *r);

/* Drops a downgrade that was not sent yet: an operator breaks the lock. */
extern void zkl_downgrade_give_up(ZklRequest *r);

/* The node is gone, or nothing leans on it. */
extern void zkl_downgrade_node_gone(ZklRequest *r);

/* Whether a downgrade is wanted, or was sent */
static inline bool
zkl_downgrade_is_on(const ZklRequest *r)
{
	return r->downgrade.write.state != ZKL_WRITE_NONE;
}

static inline bool
zkl_downgrade_is_unsettled(const ZklRequest *r)
{
	return r->downgrade.write.state == ZKL_WRITE_UNSETTLED;
}

/* Whether the node's name is unknown just now. */
extern bool zkl_downgrade_pending(const ZklRequest *r);

/* The answer is lost; or the downgrade is over, and the name is known. */
extern void zkl_downgrade_unknown(ZklRequest *r);
extern void zkl_downgrade_end(ZklRequest *r);

/*
 * A node that is to be deleted, and whose name cannot be learned: deletes it under
 * both.  Once it is gone under one, the other function gives it the other name, if that is
 * to be deleted, too.
 */
extern void zkl_downgrade_delete_either(ZklManager *m, ZklRequest *r);
extern bool zkl_downgrade_take_other_name(ZklRequest *r);

/* The downgrade was refused; it is tried again later. */
extern void zkl_downgrade_want_later(ZklManager *m, ZklRequest *r);

/* ---- askers ---- */

/*
 * The servers that have asked for the word of a node of ours, and whether we are to
 * ask others; see lock.c.
 *
 * Has all that the core writes to ZklAskers and ZklLock.asks_due, which are its part's.
 */

/* Something is new: a listing, another request waits first, or there are peers. */
static inline void
zkl_askers_ask_again(ZklLock *lock)
{
	lock->asks_due = true;
}

static inline void
zkl_askers_asked(ZklLock *lock)
{
	lock->asks_due = false;
}

/* Nobody has asked for r's node. */
static inline void
zkl_askers_init(ZklRequest *r)
{
	r->askers.n = 0;
	r->askers.over = false;
}

/* Whether anybody has; then somebody waits for it to go. */
static inline bool
zkl_askers_has_any(const ZklRequest *r)
{
	return r->askers.n > 0 && !ZKL_MUTANT(ASKED_IS_SOLITARY);
}

/*
 * A server asks for the first of its requests that waits: another ask is newer.  If
 * there are too many servers, the one that was first to ask goes: it may be no more.
 */
static inline void
zkl_askers_add(ZklRequest *r, const ZklPeerMessage *ask)
{
	uint32_t	i = 0;

	ZKL_ASSERT(r->askers.n <= ZKL_MAX_ASKERS);
	while (i < r->askers.n && r->askers.all[i].session != ask->session)
		i++;
	if (i == ZKL_MAX_ASKERS)
	{
		i--;
		memmove(r->askers.all, r->askers.all + 1, i * sizeof(*r->askers.all));
	}
	r->askers.all[i] = *ask;
	if (i == r->askers.n)
		r->askers.n++;
}

/* The word may be said from now on. */
static inline void
zkl_askers_set_over(ZklRequest *r)
{
	r->askers.over = true;
}

#endif							/* ZKL_CORE_NODE_H */
