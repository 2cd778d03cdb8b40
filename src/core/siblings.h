/*
 * siblings.h
 *	  The several requests of one owner on one lock.
 */
#ifndef ZKL_CORE_SIBLINGS_H
#define ZKL_CORE_SIBLINGS_H

#include "core/state.h"

/* The ring: of one, one more, one less. */
extern void zkl_siblings_init(ZklRequest *r);
extern void zkl_siblings_join(ZklRequest *r, ZklRequest *sibling);
extern void zkl_siblings_leave(ZklRequest *r);

/* A request of r's owner that holds the lock in a mode that covers r's, and
 * has a node; the earliest.  NULL: none. */
extern ZklRequest *zkl_siblings_covering(const ZklRequest *r);

/* The node of a hold of r's owner that r's own would come on top of. */
extern ZklRequest *zkl_siblings_upgraded(const ZklRequest *r);

/* A hold that shares r's node, an exclusive one if there is one; or NULL */
extern ZklRequest *zkl_siblings_heir(const ZklRequest *r);

/* Those that share r's node share the heir's from now on. */
extern void zkl_siblings_follow(ZklRequest *r, ZklRequest *heir);

/* A hold is lost, and all that share its node with it; the node is gone. */
extern void zkl_siblings_lose(ZklManager *m, ZklRequest *r, ZklFailure failure);

/* A hold that was lost earlier is none any more: has the host record that. */
extern void zkl_siblings_retire(ZklManager *m, const ZklRequest *r);

/*
 * An operator breaks the lock, or its node cannot be read: it is lost to its
 * holder at once, but the node stays in the queue until the holder is through
 * with it.
 */
extern void zkl_siblings_break(ZklManager *m, ZklRequest *r,
							   ZklFailure failure);

/*
 * Somebody asks the holder to give the lock up: it is told, once for each
 * write of that kind, which zxid tells apart.
 */
extern void zkl_siblings_revoke(ZklManager *m, ZklRequest *r, int64_t zxid,
								const char *asker);

#endif							/* ZKL_CORE_SIBLINGS_H */
