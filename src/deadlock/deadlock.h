/*
 * deadlock.h
 *	  The search for deadlocks across servers, as a wing of the core.
 */
#ifndef ZKL_DEADLOCK_DEADLOCK_H
#define ZKL_DEADLOCK_DEADLOCK_H

#include "core/manager.h"

/* ---- deadlock ---- */

/* The search for deadlocks across servers, for the host of a manager. */

#define ZKL_MIN_PATIENCE	100000	/* µs; of a demand, if it is not 0 */

/* Owners that depend on one wait.  The simulation has fewer. */
#ifndef ZKL_MAX_DEPENDENTS
#define ZKL_MAX_DEPENDENTS		16
#endif

/* Znodes for one wait.  The simulation has fewer. */
#ifndef ZKL_MAX_PUBLISHED
#define ZKL_MAX_PUBLISHED	64
#endif

/* For ZklConfig: a wait that lasts longer than its patience takes part. */
extern const ZklWing zkl_deadlock_wing;

/*
 * What the host tells of a request that waits (NEWS): which owners wait
 * for its owner in PostgreSQL's own locks, directly or through others.  It looks
 * every patience.  They replace those of the last look; n = 0: none any more.  Owners
 * that hold nothing need not be told, nor that there are none if none were told
 * before.
 */
typedef struct ZklDependents
{
	int64_t		seen_at;		/* when the host began to look, on the
								 * manager's clock: it may have been held up */
	const uint64_t *owners;
	size_t		n;
} ZklDependents;

/* A step of a deadlock: a process waits for another one */
typedef struct ZklEdge
{
	char		lock[ZKL_MAX_NAME + 1]; /* its name; empty: it waits in
										 * PostgreSQL's own locks, of one
										 * server */
	ZklLockMode mode;			/* that it waits for */
	ZklDialect	dialect;
	bool		known;			/* the owner of the request that fails holds
								 * this lock or waits for it */
	char		waiter_server[ZKL_MAX_SERVER_NAME + 1]; /* in UTF-8; empty: not
														 * known */
	int32_t		waiter_pid;
	char		blocker_server[ZKL_MAX_SERVER_NAME + 1];
	int32_t		blocker_pid;
} ZklEdge;

/*
 * The reason of a FAIL with DEADLOCK.  The next step's waiter is this step's
 * blocker, and the last step's blocker is the first one's waiter: the request that
 * fails.  Without a reason it is an upgrade that can never succeed.
 */
typedef struct ZklDeadlockSteps
{
	size_t		n;
	ZklEdge		all[];
} ZklDeadlockSteps;

typedef struct ZklDeadlockCounters
{
	uint64_t	deadlocks;		/* ended by the failure of a request, other
								 * than of an upgrade */
	uint64_t	checks;			/* for deadlocks */
	uint64_t	given_up;		/* checks that found too much to decide */
	uint64_t	unpublished;	/* waits of owners that hold too much */
} ZklDeadlockCounters;

/* All 0 if the manager has no such wing */
extern void zkl_deadlock_count(const ZklManager *m,
							   ZklDeadlockCounters *counters);

#endif							/* ZKL_DEADLOCK_DEADLOCK_H */
