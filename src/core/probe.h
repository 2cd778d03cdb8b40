/*
 * probe.h
 *	  A try that is likely to fail looks before it creates.
 */
#ifndef ZKL_CORE_PROBE_H
#define ZKL_CORE_PROBE_H

#include "core/state.h"

/*
 * A new demand: if it must be denied unless it can be granted at once, and we
 * do not know whether it can, it waits for a look at its lock's directory.
 * False: it does not wait.
 */
extern bool zkl_probe_begin(ZklManager *m, ZklRequest *r);

extern void zkl_probe_reply(ZklManager *m, const ZklOp *op,
							const ZklReply *reply);

/* No look under way will be answered. */
extern void zkl_probe_disconnected(ZklManager *m, ZklLock *lock);

/* The only node in the way of tries was read. */
extern void zkl_probe_mark_read(ZklManager *m, ZklLock *lock,
								const ZklReply *reply);

#endif							/* ZKL_CORE_PROBE_H */
