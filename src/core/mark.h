/*
 * mark.h
 *	  The marks that others leave in the data of our nodes.
 */
#ifndef ZKL_CORE_MARK_H
#define ZKL_CORE_MARK_H

#include "core/state.h"

/* Whether an operator breaks the lock; reply answers a get of r's node. */
extern bool zkl_mark_breaks(const ZklRequest *r, const ZklReply *reply);

/* A restarted worker finds that the holder was told of this write. */
extern void zkl_mark_restore(ZklRequest *r, int64_t zxid);

/* r gets another node, which bears no mark. */
extern void zkl_mark_new_node(ZklRequest *r);

/* r has been granted: heeds a mark that came while it waited. */
extern void zkl_mark_granted(ZklManager *m, ZklRequest *r);

/*
 * Another client asks the holder to give up the lock: tells the holder, once
 * for each write of that kind, which zxid tells apart.
 */
extern void zkl_mark_request_release(ZklManager *m, ZklRequest *r, int64_t zxid,
									 const char *asker);

/* Whether a hold that r's node is for was told of this write */
extern bool zkl_mark_is_put(const ZklRequest *r, int64_t zxid);

/* A write of ours has put the question of another write again. */
extern void zkl_mark_rewritten(ZklRequest *r, int64_t old, int64_t zxid);

#endif							/* ZKL_CORE_MARK_H */
