/*
 * wait.h
 *	  The wait for the answer to a request.
 */
#ifndef ZKL_BACKEND_WAIT_H
#define ZKL_BACKEND_WAIT_H

#include "backend/refusal.h"
#include "backend/target.h"
#include "fmgr.h"
#include "shared/slot.h"

/* ---- snapshot: a procedure that waits without a snapshot ---- */

/*
 * Gives up what holds VACUUM back: the snapshot of the portal that runs this call.
 * NULL: it is given up, and the caller looks at no row until
 * zkl_snapshot_regain().  Else nothing has changed, and a sentence for an errdetail
 * says what keeps the snapshot.
 */
extern const char *zkl_snapshot_give_up(FunctionCallInfo fcinfo);

/* Behind the wait, whether there was anything to give up or not. */
extern void zkl_snapshot_regain(void);

/* ---- long_wait ---- */

/*
 * What a session does while it waits for a lock for longer than "deadlock_timeout".
 */

/* A wait; times of zkl_wait_clock() */
typedef struct ZklLongWait
{
	int			slotno;
	const char *name;			/* of the lock, for the client */
	int64		start;
	int64		due;			/* when to call long_wait_act; ZKL_NEVER */

	int64		look;			/* the next one, if it has patience */
	int64		since;			/* see shared/deadlocks.h */

	int64		report;			/* for "log_lock_waits": the next step */
	bool		reported;		/* the log says that it waits */
	ZklAheadQuestion ahead;		/* the question for it */
} ZklLongWait;

/* ---- wait: the wait for the answer to a request, and its deadlines ---- */

#define ZKL_NEVER		PG_INT64_MAX	/* no deadline */
#define ZKL_FOREVER		PG_INT64_MAX	/* a timeout in ms that never passes */

/* What a wait does when; times of zkl_wait_clock() */
typedef struct ZklDeadlines
{
	int64		start;			/* when the call began */
	int64		time_out;		/* the tries under way time out */
	bool		timed_out;		/* they have */
	int64		answer;			/* error: the answer is not known; see
								 * zkl_wait_answer_due */
	int64		stopped;		/* what wait knew of stops by then */
	int64		lock_timeout;	/* error: the setting of that name, or the
								 * timeout of a call that is no try */
	int64		raises_after_ms;	/* such a timeout, if it comes first; or 0 */
	int64		look;			/* look whether ZooKeeper keeps the caller
								 * waiting: if so, a NOTICE says so */
	const char *keeps_snapshot; /* a sentence that says why; NULL: it does not
								 * matter */
	int64		warn;			/* warn of that, if it waits for others */
	bool		at_gate;		/* a wait for others, which ends when the gate
								 * is closed */
	bool		takes;			/* a wait to get something, which ends when
								 * the server is drained: see admission.h */
} ZklDeadlines;

/* The time in µs, by a clock that never goes back */
extern int64 zkl_wait_clock(void);
extern int64 zkl_wait_after_ms(int64 start, int64 ms);

/*
 * The deadlines of a call that begins now and waits for locks.  When a try times
 * out, ZooKeeper, and a server that may have the lock cached, have
 * "zklock.answer_timeout" to tell whether others are ahead.  Any other call just
 * ends with an error.
 */
extern void zkl_wait_begin_lock(ZklDeadlines *at, bool is_try,
								int64 timeout_ms);

/*
 * The wait was to be one without a snapshot, but the session has to keep it.  Once
 * "deadlock_timeout" is over, a WARNING says so.
 */
extern void zkl_wait_warn_of_snapshot(ZklDeadlines *at, const char *why);

/*
 * When an answer must be there.  If this process is stopped during a wait, that is
 * as much later.
 */
extern int64 zkl_wait_answer_due(const ZklDeadlines *at);

/*
 * The deadlines of a call that begins now and waits only for an answer: after
 * how many ms it times out and ZooKeeper counts as unreachable, and whether
 * "lock_timeout" counts
 */
extern void zkl_wait_begin_answer(ZklDeadlines *at, int64 timeout_ms,
								  int64 answer_ms, bool is_lock_wait);

/*
 * Whether a request is answered.  A grant whose lease has passed meanwhile,
 * because the worker or this backend was stopped, say, is no answer yet: the
 * worker will renew the lease, or find the lock lost.  Nor is one while it is not known
 * which dialect the root has for the lock.
 */
extern bool zkl_wait_is_answered(int slotno);

/*
 * Waits until is_over returns true for the slot.  is_over is asked again at each
 * deadline, and whenever the latch is set, as the worker does with an answer.
 * "context" adds to errors, and is called with "name".
 */
extern void zkl_wait_until(bool (*is_over) (int slotno), int slotno,
						   void (*context) (void *name), const char *name,
						   ZklDeadlines *at);

/* Sleeps until that time, in µs of boottime.h. */
extern void zkl_wait_sleep_until(int64 due);

/* A request of another kind than LOCK or AHEAD */
typedef struct ZklQuestion
{
	ZklSlotKind kind;
	dsm_handle	segment;		/* ERRAND, DUMP, CLAIM: the slot's s_dsm */
	bool		awaits;			/* ERRAND: as in the slot */
	int			about;			/* RENEWAL: these four, as in the slot; CLAIM:
								 * token */
	int64		token;
	int64		renewed_for;
	bool		by_other;
} ZklQuestion;

/*
 * Makes such a request, and waits for the answer.  Copies the answered slot and gives
 * the slot back, also if there is an error.  The deadlines also end a wait for a free
 * slot, which "zklock.answer_timeout" ends in any case.
 */
extern void zkl_wait_for_answer(const ZklTarget *target, const ZklQuestion *question,
								void (*context) (void *name),
								ZklDeadlines *at, ZklSlot *answer);

#endif							/* ZKL_BACKEND_WAIT_H */
