/*
 * batches.h
 *	  The batches under way, and the beats that open them.
 */
#ifndef ZKL_CORE_BATCHES_H
#define ZKL_CORE_BATCHES_H

#include "core/state.h"

/* For a manager with nothing but its config, and at its end. */
extern void zkl_batches_init(ZklManager *m);
extern void zkl_batches_free(ZklManager *m);

/* Batch number i of those under way, the oldest first */
static inline ZklBatch *
zkl_batches_get(const ZklManager *m, uint32_t i)
{
	ZKL_ASSERT(i < m->config.batches_in_flight);
	return &m->batches.all[(m->batches.first + i) %
						   m->config.batches_in_flight];
}

/* Begins another batch, whose beat expects this version; adds a write. */
extern ZklBatch *zkl_batches_begin(ZklManager *m, int32_t version);
extern void zkl_batches_add(ZklBatch *batch, ZklWrite *w);

/* It has just been sent. */
extern void zkl_batches_sent(const ZklManager *m, ZklBatch *batch);

/* Takes off the oldest one, whose answer has come, or never will. */
extern ZklBatch *zkl_batches_take(ZklManager *m);

/* What became of it */
extern void zkl_batches_applied(ZklManager *m, const ZklBatch *batch);
extern void zkl_batches_refused(ZklManager *m);
extern void zkl_batches_unanswered(ZklManager *m);
extern void zkl_batches_unknown(ZklManager *m, const ZklBatch *batch);

/* Those behind a batch that failed do so, too; until none is left. */
extern void zkl_batches_set_broken(ZklManager *m, bool broken);

/* There is a new session: what was lost says nothing about its server. */
extern void zkl_batches_new_session(ZklManager *m);

/*
 * ZooKeeper has deleted a node of ours otherwise than in a batch, or has shown that
 * one is gone.  If it loses that, the heartbeat node shows it only after another
 * batch, so one is sent soon.
 */
extern void zkl_batches_want_proof(ZklManager *m);

/*
 * Tells whether that has happened and no batch behind it was acknowledged, and forgets
 * it.
 */
extern bool zkl_batches_take_unproved(ZklManager *m);

/* Whether a batch is to go even if there is nothing to write */
extern void zkl_batches_want_beat(ZklManager *m, bool wanted);

/* Whether no one seems to wait for r's node to go */
extern bool zkl_batches_pace_is_solitary(const ZklRequest *r);

/* Lists one of our nodes for a delete, soon or with the next batch. */
extern void zkl_batches_pace_delete(ZklManager *m, ZklRequest *r);

/* Somebody waits for r's node to go after all: a late delete is late no more. */
extern void zkl_batches_pace_hurry(ZklManager *m, ZklRequest *r);

/* A batch was acknowledged: it leads to the grants that follow. */
extern void zkl_batches_pace_acknowledged(ZklManager *m);
extern void zkl_batches_pace_granted(ZklManager *m);

/* All events so far have been decided. */
extern void zkl_batches_pace_decided(ZklManager *m);

/* A new demand came in. */
extern void zkl_batches_pace_submitted(ZklManager *m);

/* How many more demands the pending creates wait for; 0: they do not wait. */
extern uint32_t zkl_batches_pace_missing(const ZklManager *m);

/* Whether the late deletes are due. */
extern bool zkl_batches_pace_due(const ZklManager *m);

/* When to look again, in µs; -1: no need. */
extern int64_t zkl_batches_pace_timer(const ZklManager *m);

#endif							/* ZKL_CORE_BATCHES_H */
