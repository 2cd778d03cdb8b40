/*
 * refusal.h
 *	  The errors by which a request fails, in PostgreSQL's words.
 */
#ifndef ZKL_BACKEND_REFUSAL_H
#define ZKL_BACKEND_REFUSAL_H

#include "shared/compat.h"
#include "shared/slot.h"
#include "shared/status.h"

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

/*
 * The same if that server, a name in UTF-8 or empty, is to answer; and how a
 * message names it.
 */
pg_noreturn extern void zkl_refusal_raise_cached(const char *name,
												 const char *server);
extern const char *zkl_refusal_server(const char *server);

/*
 * The same if it is the worker that does not answer; and what to say of it, as a
 * full sentence for errdetail.
 */
pg_noreturn extern void zkl_refusal_raise_worker_silent(void);
extern const char *zkl_refusal_worker_silence(void);

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

/* What to look at, as the worker's last error suggests, as a sentence for errhint */
extern const char *zkl_refusal_where_to_look(void);

/* Whether the current role may see what settings and errors tell of hosts */
extern bool zkl_refusal_may_see_hosts(void);

/*
 * Runs a step in a subtransaction.  If it fails, that is rolled back, and the
 * error returned, palloc'd; else NULL.
 */
extern ErrorData *zkl_refusal_catch(void (*step) (void *arg), void *arg);

#endif							/* ZKL_BACKEND_REFUSAL_H */
