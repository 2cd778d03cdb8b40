/*
 * pace.h
 *	  When to send a batch: at once, or in a moment and with more in it.
 */
#ifndef ZKL_CORE_PACE_H
#define ZKL_CORE_PACE_H

#include "core/state.h"

/* Whether no one seems to wait for r's node to go */
extern bool zkl_pace_is_solitary(const ZklRequest *r);

/* Lists one of our nodes for a delete, soon or with the next batch. */
extern void zkl_pace_delete(ZklManager *m, ZklRequest *r);

/* A batch was acknowledged: it leads to the grants that follow. */
extern void zkl_pace_acknowledged(ZklManager *m);
extern void zkl_pace_granted(ZklManager *m);

/* All events so far have been decided. */
extern void zkl_pace_decided(ZklManager *m);

/* A new demand came in. */
extern void zkl_pace_submitted(ZklManager *m);

/* How many more demands the pending creates wait for; 0: they do not wait. */
extern uint32_t zkl_pace_missing(const ZklManager *m);

/* Whether the late deletes are due. */
extern bool zkl_pace_due(const ZklManager *m);

/* When to look again, in µs; -1: no need. */
extern int64_t zkl_pace_timer(const ZklManager *m);

#endif							/* ZKL_CORE_PACE_H */
