/*
 * reads_reply.h
 *	  What reads and watches tell, and tries that only look.
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

/* ---- probe: a try that is likely to fail looks before it creates ---- */

/*
 * A new demand: if it must be denied unless it can be granted at once, and we
 * do not know whether it can, it waits for a look at its lock's directory.
 * False: it does not wait.
 */
extern bool zkl_probe_begin(ZklManager *m, ZklRequest *r);

/* No look under way will be answered. */
extern void zkl_probe_disconnected(ZklManager *m, ZklLock *lock);

#endif							/* ZKL_CORE_READS_REPLY_H */
