/*
 * rewrite.h
 *	  Writes of our own to the data of our znodes.
 */
#ifndef ZKL_CORE_REWRITE_H
#define ZKL_CORE_REWRITE_H

#include "core/state.h"

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

#endif							/* ZKL_CORE_REWRITE_H */
