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

#endif							/* ZKL_CORE_BATCHES_H */
