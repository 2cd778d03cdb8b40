/*
 * refusal.h
 *	  Why a request waits or fails, in PostgreSQL's words.
 */
#ifndef ZKL_BACKEND_REFUSAL_H
#define ZKL_BACKEND_REFUSAL_H

#include "shared/compat.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "storage/dsm.h"

/* ---- stall ---- */

/*
 * What a wait is for: ZooKeeper, the worker, or other sessions that have the lock;
 * and who these are.
 */

/* In the place of a slot: the worker has yet to free one for the request. */
#define ZKL_NO_SLOT		(-1)

/*
 * For how many µs a slot has waited for ZooKeeper or the worker; -1: it waits
 * for other sessions; PG_INT64_MAX: all of its time, as far as is known.
 */
extern int64 zkl_stall_time(int slotno);

/* Which wait event shows for what the slot waits now */
extern ZklWaitEvent zkl_stall_event(int slotno);

/* A NOTICE that says so; this and the next take a name that the client can show. */
extern void zkl_stall_notice(int slotno, const char *name);

/* What a wait is for when it ends */
typedef enum ZklStallCause
{
	ZKL_STALL_OTHERS,			/* they have the lock, or are ahead */
	ZKL_STALL_WORKER,			/* has yet to look at the request; one that
								 * runs does that at once */
	ZKL_STALL_ZOOKEEPER,
	ZKL_STALL_ROOT,				/* its dialects are yet to be read */
	ZKL_STALL_CACHED			/* a server that may have the lock cached */
} ZklStallCause;

typedef struct ZklStallReason
{
	ZklStallCause cause;
	bool		young;			/* it was for no other session, but too short
								 * to blame anybody: the answer may still come */
	const char *detail;			/* in words for the client; these two may be
								 * NULL */
	const char *hint;
} ZklStallReason;

/*
 * Finds that out before a wait of that many µs ends with an error: also, for a second at
 * most, by asking the worker.
 */
extern void zkl_stall_explain(int slotno, const char *name, int64 waited_us,
							  ZklStallReason *reason);

/* What to tell of a reservation, by a copy of its slot, to the role that made it */
extern void zkl_stall_explain_reserved(const ZklSlot *slot, ZklStallReason *reason);

/*
 * Gives the request up: error 55P03 if the wait was for other sessions; 08006 if not, as
 * it is not known then whether others have the lock.  "timeout_ms" is that of the call, or
 * 0: it was "lock_timeout".
 */
pg_noreturn extern void zkl_stall_raise_timeout(int slotno, const char *name,
												const ZklStallReason *reason, int64 timeout_ms);

/* The same for "lock_timeout" in a call that has no request under way */
pg_noreturn extern void zkl_stall_raise_lock_timeout(const char *name);

/*
 * For a request that has no slot yet, as none was given back in time: error 53400, or 08006
 * if ZooKeeper is away.
 */
pg_noreturn extern void zkl_stall_raise_unclaimed(const char *name, int64 timeout_ms);

/* Error 08006: no answer came within "zklock.answer_timeout". */
pg_noreturn extern void zkl_stall_raise_unanswered(int slotno, const char *name);

/* How long a session waits for the worker to say who is ahead */
#define ZKL_AHEAD_WAIT_MS	1000

typedef struct ZklAheadQuestion
{
	int			asked;			/* the slot of the question; -1: there is none */
	int			under_way;		/* how many requests were, before it */
	dsm_segment *segment;		/* for the answer */
} ZklAheadQuestion;

extern void zkl_stall_ahead_init(ZklAheadQuestion *ahead);

/*
 * Asks who is ahead of the request in a slot of this session.  "reads": a znode that
 * the worker does not know is read from ZooKeeper.  False: there is no slot or no
 * memory for that now.
 */
extern bool zkl_stall_ahead_ask(ZklAheadQuestion *ahead, int slotno, const char *name, bool reads);

/* Whether the worker has answered, or cannot */
extern bool zkl_stall_ahead_is_known(const ZklAheadQuestion *ahead);

/*
 * Who has the lock, who is nearest in the way, and how many are ahead, in sentences
 * that a client can show; NULL: not known, or not yet.  "names": with the users and
 * applications, and the znodes of other clients.
 */
extern const char *zkl_stall_ahead_words(const ZklAheadQuestion *ahead, const char *name, bool names);

/* Forgets question and answer. */
extern void zkl_stall_ahead_forget(ZklAheadQuestion *ahead);

/* ---- refusal: the errors by which a request fails, in PostgreSQL's words ---- */

/* Raises what the worker answered by ZKL_SLOT_FAILED. */
pg_noreturn extern void zkl_refusal_raise_failed(const char *name, ZklError error,
												 int32 zkrc);

/* What ZooKeeper's result code means, as full sentences; palloc'd */
extern char *zkl_refusal_answer_text(int32 zkrc);

/*
 * Raises the error that ZooKeeper's answer calls for; "message" has one %s, for
 * the name.
 */
extern void zkl_refusal_raise_zookeeper(const char *message, const char *name,
										int32 zkrc);

/*
 * Raises error 40P01: the worker has failed this request of the slot because of a
 * deadlock across servers.
 */
pg_noreturn extern void zkl_refusal_raise_deadlock(int slotno, uint32 serial);

/*
 * Raises error 54000: the counter of the lock's directory is at its end.  "lasting"
 * stays there, for all we know; NULL: nothing does.
 */
pg_noreturn extern void zkl_refusal_raise_no_number(const char *name, const char *path,
													const char *lasting);

/* Raises error 0A000 if the server at ZooKeeper's place is not ZooKeeper. */
extern void zkl_refusal_check_server(void);

/* Raises error 08006: no answer came in time; or there is nobody to answer. */
pg_noreturn extern void zkl_refusal_raise_unreachable(void);
pg_noreturn extern void zkl_refusal_raise_away(TimestampTz since);

/* The same, if this server has no lease: without one no ticket is granted, whoever has its lock. */
extern void zkl_refusal_check_lease(void);

/*
 * The same if that server, a name in UTF-8 or empty, is to answer; and how a
 * message names it.
 */
pg_noreturn extern void zkl_refusal_raise_cached(const char *name,
												 const char *server);

/*
 * The same if it is the worker that does not answer; and what to say of it, as a
 * full sentence for errdetail.
 */
pg_noreturn extern void zkl_refusal_raise_worker_silent(void);

/* Raises error 55P03: "what" was not acquired before its timeout ended. */
pg_noreturn extern void zkl_refusal_raise_timed_out(const char *what,
													int64 timeout_ms);

/*
 * Raises error 40001: the lock that was held is lost.  "release" is the function by
 * which the session acknowledges that, or NULL if its transaction does.
 */
pg_noreturn extern void zkl_refusal_raise_lost(const char *name, const char *release,
											   ZklError error);

/*
 * The same for an error that is being raised, or was caught: its code, its words
 * and its hint become these.  Its context stays.
 */
extern int	zkl_refusal_report_lost(const char *name, const char *release,
									ZklError error);

/*
 * Raises error 40001: the lease of a lock has passed, and it is not known
 * whether the lock is lost.
 */
pg_noreturn extern void zkl_refusal_raise_lapsed(const char *name);

/* The same if nobody has waited for the lease */
pg_noreturn extern void zkl_refusal_raise_lease_ended(const char *name);

/* The name of a state as zk_status shows it */
extern const char *zkl_refusal_worker_state_name(const ZklStatus *status);

/*
 * The worker's state, and its last error if the current role may see it, in
 * sentences for errdetail
 */
extern const char *zkl_refusal_worker_trouble(void);

/* Whether the current role may see what settings and errors tell of hosts */
extern bool zkl_refusal_may_see_hosts(void);

/*
 * Runs a step in a subtransaction.  If it fails, that is rolled back, and the
 * error returned, palloc'd; else NULL.
 */
extern ErrorData *zkl_refusal_catch(void (*step) (void *arg), void *arg);

#endif							/* ZKL_BACKEND_REFUSAL_H */
