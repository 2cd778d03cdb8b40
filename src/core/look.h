/*
 * look.h
 *	  Looks at our own znodes, which others may mark or delete.
 */
#ifndef ZKL_CORE_LOOK_H
#define ZKL_CORE_LOOK_H

#include "core/state.h"

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
extern void zkl_look_unseen(ZklManager *m, ZklRequest *r, int64_t since);

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

/* Whether a hold that r's node is for was told of this write */
extern bool zkl_look_mark_is_put(const ZklRequest *r, int64_t zxid);

/* A write of ours has put the question of another write again. */
extern void zkl_look_mark_rewritten(ZklRequest *r, int64_t old, int64_t zxid);

#endif							/* ZKL_CORE_LOOK_H */
