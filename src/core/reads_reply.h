/*
 * reads_reply.h
 *	  What reads and watches tell.
 */
#ifndef ZKL_CORE_READS_REPLY_H
#define ZKL_CORE_READS_REPLY_H

#include "core/state.h"

/*
 * Whether an answer tells anything; if not, another connection is wanted, or was
 * lately.
 */
extern bool zkl_reads_reply_tells(ZklManager *m, const ZklReply *reply);

/* The answer to a read that is over. */
extern void zkl_reads_reply_take(ZklManager *m, const ZklOp *op,
								 const ZklReply *reply);

/* A watch on that path has fired. */
extern void zkl_reads_reply_event(ZklManager *m, ZklEventKind kind,
								  const char *path);

/* Takes over a listing that was sent as number "order". */
extern void zkl_reads_reply_listing(ZklManager *m, ZklLock *lock, uint64_t order,
									const ZklReply *reply);

#endif							/* ZKL_CORE_READS_REPLY_H */
