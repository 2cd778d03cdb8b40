/*
 * request.h
 *	  Submitting a request to the worker, waiting for its answer, cancelling.
 */
#ifndef ZKL_BACKEND_REQUEST_H
#define ZKL_BACKEND_REQUEST_H

#include "backend/target.h"
#include "backend/wait.h"
#include "shared/slot.h"

/* A try's timeout that never passes */
#define ZKL_FOREVER		PG_INT64_MAX

/* What a backend asks for */
typedef struct ZklLockRequest
{
	ZklTarget	lock;
	ZklLockMode mode;
	ZklLifetime lifetime;
	bool		is_try;
	int64		timeout_ms;		/* of a try */
	ZklDeadlines *at;			/* of the call that this is a part of; NULL:
								 * its times count from now */
	int64		at_most_ms;		/* for how long to hold it; 0: as one likes */
	int64		at_least_ms;	/* for how long to keep it from the grant on,
								 * also if it is released before; or 0 */
	int			sibling;		/* slot of a hold on the same lock, or -1 */
	uint32		max;			/* dialect LEASE: how many there may be */
	bool		guard;			/* see zkl_guard_begin */
	const char *leader_id;		/* dialect LATCH: the participant, in UTF-8 */
} ZklLockRequest;

typedef struct ZklGrant
{
	int			slotno;			/* now the caller's to release */
	int64		token;
	uint32		generation;		/* of the ZooKeeper session it is good for */
} ZklGrant;

/* The deadlines of a call that begins now, and is to take this in the end */
extern void zkl_request_deadlines(const ZklLockRequest *ask, ZklDeadlines *at);

/*
 * Asks for n locks and waits for the answers.  True: grants[] tell what was
 * granted.  False: a try's time passed while another holds one of the locks.
 * All else (cancel, timeouts, no ZooKeeper, refusals) is an error.  All or
 * nothing: whatever else was granted is released.
 *
 * The asks differ in their locks and siblings only.  Who asks for several must
 * have sorted them, always in the same way.
 */
extern bool zkl_lock_request_run(const ZklLockRequest *asks, int n, ZklGrant *grants);

/*
 * The same for a lock that is held, in a slot of the caller's: returns at once
 * if the lease is good or the lock lost, else waits until it is either.
 */
extern void zkl_lock_request_confirm(const ZklLockRequest *ask, int slotno);

/* ---- leases of a semaphore ---- */

typedef enum ZklAnswer
{
	ZKL_ANSWER_GRANTED,
	ZKL_ANSWER_DENIED,			/* a try's time passed */
	ZKL_ANSWER_UNGUARDED		/* the guard, or a lease, was lost meanwhile */
} ZklAnswer;

/*
 * As zkl_lock_request_run for the one lock that guards a semaphore, which stays with
 * request.c until zkl_guard_end, or the end of the backend.  It is no hold:
 * its loss sends no signal, and no commit is checked for it.
 */
extern bool zkl_guard_begin(const ZklLockRequest *ask);

/* Releases the guard, if there is one.  Cannot fail. */
extern void zkl_guard_end(void);

/*
 * Under the guard: asks for n leases of one semaphore, which all wait at the
 * same time.  All or nothing; errors as with zkl_lock_request_run.
 */
extern ZklAnswer zkl_guard_get_permits(const ZklLockRequest *ask, int n, ZklGrant *grants);

/*
 * Error 53400 if this session, which has "held" slots of locks, may not have
 * "wanted" more: see claim.h.
 */
extern void zkl_request_check_room(int held, int wanted);

/* ---- what is asked for besides locks: see ask.c ---- */

/* How long to wait for an answer, in ms; ZKL_FOREVER: no matter how long */
typedef struct ZklPatience
{
	int64		expire_ms;		/* then the worker is to answer as it is */
	int64		answer_ms;		/* then ZooKeeper is unreachable: an error */
	bool		is_lock_wait;	/* "lock_timeout" counts, too */
	void		(*context) (void *name);	/* adds to the errors */
	const char *name;			/* what it is called with */
	const ZklDeadlines *at;		/* of the call that it is a part of: instead
								 * of the three above, but that of a try does
								 * not end it; or NULL */
} ZklPatience;

/*
 * Claims a slot and fills in what all kinds of requests have.  Nothing that
 * can throw may come between this and zkl_request_run.
 */
extern int	zkl_request_claim(const ZklTarget *target, ZklSlotKind kind);

/*
 * Submits it, waits, copies the answered slot and gives it back, also in case
 * of an error.
 */
extern void zkl_request_run(int slotno, const ZklPatience *patience,
							ZklSlot *answer);

#endif							/* ZKL_BACKEND_REQUEST_H */
