/*
 * acquire.h
 *	  Locks that a call requests: from the call to the hold.
 */
#ifndef ZKL_BACKEND_ACQUIRE_H
#define ZKL_BACKEND_ACQUIRE_H

#include "backend/backend_slot.h"
#include "backend/target.h"
#include "backend/wait.h"
#include "shared/slot.h"

/* ---- under_way ---- */

/*
 * The requests of this backend that are under way, their slots, and how many it may
 * have.
 *
 * A request is known by the number of its slot.  Those under way are numbered
 * from 0 in the order of their submission.
 */

/* The other kinds have slots of their own: one must be free. */
extern int	zkl_under_way_claim(const ZklTarget *target, ZklSlotKind kind);

/* Submits a claimed request; "more": see zkl_backend_slot_submit.  Cannot fail. */
extern void zkl_under_way_submit(int slotno, bool more);

/* How many are under way, and the slot of one of them */
extern int	zkl_under_way_count(void);
extern int	zkl_under_way_slot(int number);

/* The time of all tries under way is over. */
extern void zkl_under_way_time_out_all(void);

/* The requests from number "first" on end, however far they got.  Cannot fail. */
extern void zkl_under_way_abandon(int first);

/*
 * Calls "get", which submits requests and returns whether they are granted.  If
 * so, the caller owns their slots; if not, or after an error, they are abandoned.
 */
extern bool zkl_under_way_run(bool (*get) (void *arg), void *arg);

/*
 * Error 53400 if one call needs more requests at a time than a session, or all of this
 * session's role together, could ever have, whatever other sessions do.
 */
extern void zkl_under_way_check_number(int64 wanted, bool of_session);

/*
 * Error 53400 if this session, which has slots for "held" locks, may not have
 * "wanted" more.  Locks that are kept after their release count, too.
 */
extern void zkl_under_way_check_room(int held, int wanted);

/* The same if its role, in all of its sessions, may not have so many requests more. */
extern void zkl_under_way_check_role(int wanted);

/* The same if this session's user, who has so many reservations, may have no other. */
extern void zkl_under_way_check_reservations(int reserved);

/* ---- acquire ---- */

typedef struct ZklLockRequest
{
	ZklTarget	lock;
	ZklLockMode mode;
	ZklLifetime lifetime;
	bool		is_try;
	int64		timeout_ms;		/* of a try */
	ZklDeadlines *at;			/* of the call that makes this request; NULL
								 * only for zkl_acquire, which fills it in */
	int64		at_most_ms;		/* the longest that it may be held; 0: no
								 * limit */
	int64		at_least_ms;	/* how long to keep it from the grant on, also
								 * if it is released before; or 0 */
	const char *keeps_snapshot; /* see zkl_wait_warn_of_snapshot; or NULL */
	int			sibling;		/* slot of a hold on the same lock, or -1 */
	int64		asked_us;		/* when the call began, by boottime.h; 0: now */
	bool		waited;			/* its guard had to wait for others */
	uint32		max;			/* dialect PERMIT: how many there may be */
	bool		within_call;	/* it ends with the call, whatever its
								 * lifetime */
	bool		again;			/* even if "zklock.reentrant" is off */
	bool		guard;			/* of a semaphore: see recipes/semaphore.c */
	const char *leader_id;		/* dialect LATCH: the participant, in UTF-8 */
} ZklLockRequest;

/*
 * Whether the end of its timeout denies a request, and is no error.  Any request that
 * must not wait is such a try; one that may wait without limit is none.
 */
static inline bool
zkl_acquire_is_try(bool wants_answer, int64 timeout_ms)
{
	return timeout_ms == 0 || (wants_answer && timeout_ms != ZKL_FOREVER);
}

typedef struct ZklGrant
{
	int			slotno;			/* now the caller's to release */
	int64		token;
	uint32		generation;		/* of the ZooKeeper session it is good for */
} ZklGrant;

/*
 * Acquires n locks for their lifetime, and waits for the answers.  True: tokens[] are
 * the fencing tokens.  False: a try timed out while another holds one of the locks.
 * Everything else (cancel, timeouts, no ZooKeeper, refusals) is an error.  All or
 * nothing: if one lock is not granted, the others are released.
 *
 * If one is held already in the same mode and lifetime, that hold is counted once
 * more, and the later times of its bounds and the request's count.  The requests
 * differ in their locks only, and are sorted, always in the same way; siblings are
 * filled in here.
 */
extern bool zkl_acquire(ZklLockRequest *requests, int n, int64 *tokens);

/*
 * For a lock that is held, in a slot of the caller's: returns at once if the
 * lease is good or the lock lost, else waits until it is either.
 */
extern void zkl_acquire_confirm(const ZklLockRequest *request,
								int slotno);

/* ---- the steps of that, for recipes/semaphore.c ---- */

/*
 * Submits one request, which is then the last one under way.  together: one of
 * several that are to be granted in turn; more: another one follows at once.
 */
extern void zkl_acquire_submit(const ZklLockRequest *request,
							   bool together, bool more);

/*
 * Submits one request that belongs to nobody but a ticket: its number, and the slot, which
 * may be another one's by then.  It is kept for at_least_ms from its grant on, and once it
 * is claimed, for that duration; its mode and sibling are those of a reservation.
 */
extern int	zkl_acquire_enqueue(const ZklLockRequest *request, int64 duration_ms, bool more,
								int64 *ticket);

/* Waits until is_over, in the name of a request. */
extern void zkl_acquire_wait(const ZklLockRequest *request, int slotno,
							 bool (*is_over) (int slotno));

/*
 * Takes the answer to a request.  True: a grant, which counts only if it is of
 * the session that the worker has now.  False: a try was denied.
 */
extern bool zkl_acquire_take(const ZklLockRequest *request, int slotno,
							 ZklGrant *grant);

#endif							/* ZKL_BACKEND_ACQUIRE_H */
