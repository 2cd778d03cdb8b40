/*
 * pace.h
 *	  When to send a batch: at once, or in a moment and with more in it.
 */
#ifndef ZKL_CORE_PACE_H
#define ZKL_CORE_PACE_H

#include "core/state.h"

/* Whether nobody else seems to wait for r's node to go */
extern bool zkl_pace_is_solitary(const ZklRequest *r);

/* Lists a node of ours to be deleted, soon or with the next batch. */
extern void zkl_pace_delete(ZklManager *m, ZklRequest *r);

/* A batch was acknowledged: the grants that follow are its doing. */
extern void zkl_pace_acknowledged(ZklManager *m);
extern void zkl_pace_granted(ZklManager *m);

/* All that follows from the events so far has been decided. */
extern void zkl_pace_decided(ZklManager *m);

/* A new demand came in. */
extern void zkl_pace_submitted(ZklManager *m);

/* How many more demands what is at hand waits for; 0: it does not. */
extern uint32_t zkl_pace_missing(const ZklManager *m);

/* Whether deletes are due that waited for company. */
extern bool zkl_pace_due(const ZklManager *m);

/* When to look again, in µs; -1: no need. */
extern int64_t zkl_pace_timer(const ZklManager *m);

#endif							/* ZKL_CORE_PACE_H */
