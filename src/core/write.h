/*
 * write.h
 *	  Writes to znodes: where each of them is, and when the next batch is sent.
 *
 * A write belongs to what it writes: a request's node, its downgrade, or what a
 * wing has.  Its writer knows what it is; the files that send and settle writes
 * do not.
 *
 *	  NONE -> PENDING -> BATCH or ALONE -> NONE: applied, or refused for good
 *			   ^  ^            |
 *			   |  +------------+-> UNSETTLED: the answer is lost
 *			   |               |
 *			 HELD <------------+ refused: not before stuck_until
 *
 * A write that waits for something else is HELD, too.  Nothing is sent from
 * UNSETTLED: a listing tells what has become of it.
 */
#ifndef ZKL_CORE_WRITE_H
#define ZKL_CORE_WRITE_H

#include "core/state.h"

#define ZKL_OPERATION_BYTES	64	/* of an operation, less its strings */

/* A batch that is being formed */
typedef struct ZklForm
{
	uint32_t	index;			/* of the next operation */
	const char *made;			/* the directory made last ahead of it, or "" */
} ZklForm;

typedef enum ZklOutcomeKind
{
	ZKL_OUTCOME_APPLIED,
	ZKL_OUTCOME_REFUSED,		/* with all of its batch */
	ZKL_OUTCOME_UNKNOWN			/* it may be applied, or may yet be */
} ZklOutcomeKind;

/* What became of a write that was sent */
typedef struct ZklOutcome
{
	ZklOutcomeKind kind;

	/* APPLIED */
	int64_t		zxid;
	int64_t		sent_at;
	const ZklMultiResult *results;	/* of its operations */

	/* REFUSED: by which operation of the batch */
	int32_t		rc;
	bool		beat;			/* it was the beat */
	bool		culprit;		/* it was one of this write's */
	const ZklWriter *by;		/* whose write it is part of, or NULL */
	const struct ZklLock *directory;	/* it was to create something there,
										 * or NULL */
} ZklOutcome;

struct ZklWriter
{
	uint32_t	nops;			/* operations that each of its writes takes */

	/* About how many bytes they take */
	size_t		(*bytes) (const ZklWrite *w);

	/* In a batch: writes the operations, which are all 0. */
	void		(*fill) (ZklManager *m, ZklWrite *w, ZklMultiOp *ops, ZklForm *form);

	/* Sends it by itself; NULL: it always goes in a batch. */
	void		(*alone) (ZklManager *m, ZklWrite *w);

	/* What goes right behind its batch; NULL: nothing does. */
	void		(*behind) (ZklManager *m, ZklWrite *w);

	/* The lock in whose directory it creates something; NULL: it does not. */
	const struct ZklLock *(*creates_in) (const ZklWrite *w);

	/*
	 * Called once for each time that it was sent; says where it is from now
	 * on, or leaves it UNSETTLED.
	 */
	void		(*settle) (ZklManager *m, ZklWrite *w, const ZklOutcome *outcome);
};

extern void zkl_write_init_all(ZklManager *m);

/* ---- steps: from any state ---- */

extern void zkl_write_hold(ZklWrite *w, const ZklWriter *by);
extern void zkl_write_pend(ZklManager *m, ZklWrite *w, const ZklWriter *by,
						   ZklWriteRank rank);

/* It was refused: it is pending in this rank, but not before stuck_until. */
extern void zkl_write_stick(ZklManager *m, ZklWrite *w, const ZklWriter *by,
							ZklWriteRank rank);
extern void zkl_write_drop(ZklWrite *w);
extern void zkl_write_unsettle(ZklWrite *w);

/* It is being sent: in a batch, or otherwise by its writer. */
extern void zkl_write_take_seat(ZklWrite *w, ZklSeat *seat, uint32_t index);
extern void zkl_write_go_alone(ZklManager *m, ZklWrite *w, const ZklWriter *by);

/* What was sent has come to its end. */
extern void zkl_write_settle(ZklManager *m, ZklWrite *w,
							 const ZklOutcome *outcome);

/* Nothing that was sent alone will be answered. */
extern void zkl_write_lost(ZklManager *m);

/* What was refused is pending again. */
extern void zkl_write_retry(ZklManager *m);

/* Whether something is pending that waits for no other one */
extern bool zkl_write_is_urgent(const ZklManager *m);

/*
 * An invariant: what is pending, or alone, is in a list, and what is in a batch has
 * its seat there.
 */
extern bool zkl_write_is_in_place(const ZklWrite *w);

/* Whether any refused work waits for stuck_until */
extern bool zkl_write_any_stuck(const ZklManager *m);

/* Call this before noting refused work. */
extern void zkl_write_retry_later(ZklManager *m);

/* ---- batches: the batches under way, and the beats that open them ---- */

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

#endif							/* ZKL_CORE_WRITE_H */
