/*
 * hold.h
 *	  The locks that this backend holds: how often, and what calls do with them.
 */
#ifndef ZKL_BACKEND_HOLD_H
#define ZKL_BACKEND_HOLD_H

#include "backend/acquire.h"
#include "backend/target.h"
#include "lib/ilist.h"
#include "shared/compat.h"
#include "shared/slot.h"

/*
 * How often a lock of transaction lifetime was acquired within one
 * subtransaction, innermost first.
 */
typedef struct ZklScope
{
	SubTransactionId subid;
	uint32		count;
	struct ZklScope *outer;
} ZklScope;

/* This backend's hold on one lock, in one mode, for one lifetime */
typedef struct ZklHold
{
	struct ZklHeldLock *lock;
	ZklLockMode mode;
	ZklLifetime lifetime;
	dlist_node	link;			/* in the list of its lifetime */
	ZklGrant	grant;
	bool		begun;			/* else it is only prepared, or unused */
	bool		within_call;	/* the call that took it ends it */
	uint32		count;
	ZklScope   *scope;			/* transaction lifetime only */
	char	   *name;			/* as the database writes it; NULL: unused */
	bool		told;			/* its loss was reported to the client */
	int64		told_zxid;		/* the s_answer.asked_zxid that was; see
								 * tell.h */
	uint32		told_drain;		/* likewise, the s_drain */
	bool		lost_before;	/* before the current transaction began */
	ZklError	lost;			/* seen by this backend, perhaps before the
								 * worker; NONE: it was not */
} ZklHold;

typedef struct ZklHeldKey
{
	char		path[ZKL_MAX_NAME + 1]; /* zero behind its end */
	uint8		dialect;		/* ZklDialect */
	uint8		zero[3];		/* keys are compared byte by byte */
	uint32		permit;			/* its number, from 1 on; 0: a lock.  Each
								 * permit counts as a lock of its own */
} ZklHeldKey;

#define ZKL_HOLDS_PER_LOCK	4	/* two modes, two lifetimes */
#define ZKL_HOLD_NUMBER(mode, lifetime) \
	(((mode) == ZKL_EXCLUSIVE ? 0 : 2) + (lifetime))

/* A lock that this backend holds, in one way or several */
typedef struct ZklHeldLock
{
	ZklHeldKey	key;
	ZklHold		holds[ZKL_HOLDS_PER_LOCK];	/* exclusive ones first */
} ZklHeldLock;

/* Those that have begun, by lifetime, the last one first; not to be written */
extern dlist_head zkl_holds[ZKL_HELD_LIFETIMES];

static inline bool
zkl_hold_is_any(void)
{
	return !dlist_is_empty(&zkl_holds[ZKL_LIFETIME_SESSION]) ||
		!dlist_is_empty(&zkl_holds[ZKL_LIFETIME_TRANSACTION]);
}

/*
 * For a loop over all of them, session lifetime first: the next one, or the first.  The
 * loop must not end holds.
 */
extern ZklHold *zkl_hold_next(const ZklHold *hold);

#define zkl_hold_foreach(hold) \
	for (hold = zkl_hold_next(NULL); hold != NULL; hold = zkl_hold_next(hold))

/* How many have begun */
extern int	zkl_hold_count(void);

/* Looks up a lock.  NULL: this backend does not hold it. */
extern ZklHeldLock *zkl_hold_lookup(const ZklTarget *lock);

/* One of the holds on a lock, or NULL if there is none; held may be NULL. */
static inline ZklHold *
zkl_hold_nth(ZklHeldLock *held, int n)
{
	return held != NULL && held->holds[n].begun ? &held->holds[n] : NULL;
}

static inline ZklHold *
zkl_hold_in(ZklHeldLock *held, ZklLockMode mode, ZklLifetime lifetime)
{
	return zkl_hold_nth(held, ZKL_HOLD_NUMBER(mode, lifetime));
}

/* Both in one, for callers that need one hold only */
extern ZklHold *zkl_hold_find(const ZklTarget *lock, ZklLockMode mode,
							  ZklLifetime lifetime);

/*
 * Error 40001 if one of the holds on a lock is lost.  Its znode may still be there:
 * then others wait until the session releases it, and the session would wait behind
 * them.
 */
extern void zkl_hold_check_lock(ZklHeldLock *held);

/* The slot of a good hold on a lock, an exclusive one if there is; or -1. */
extern int	zkl_hold_sibling(ZklHeldLock *held);

/*
 * Makes all that a hold will need, without counting it yet: after this,
 * zkl_hold_begin cannot fail.  Each permit of a semaphore is a hold of its own.
 */
extern ZklHold *zkl_hold_prepare(const ZklLockRequest *request);

/* A prepared hold begins, counted once. */
extern void zkl_hold_begin(ZklHold *hold, const ZklGrant *grant);

/*
 * Makes all that counting a hold once more will need.  Error 54000 if it is
 * counted too often already.
 */
extern void zkl_hold_open(ZklHold *hold);

/* Counts an open hold once more.  Cannot fail. */
extern void zkl_hold_again(ZklHold *hold);

extern void zkl_hold_drop_prepared(ZklHold **holds, int n);

/* Gives the lock up, and drops the hold.  Cannot fail. */
extern void zkl_hold_end(ZklHold *hold);
extern void zkl_hold_end_all(ZklLifetime lifetime);

/* This backend has seen by itself that a lock is lost. */
extern void zkl_hold_lose(ZklHold *hold, ZklError error);

/*
 * Whether a lock is not known to be lost: its slot is still granted, by the
 * ZooKeeper session that this server has now.  If not, *error says why.
 */
extern bool zkl_hold_is_good(const ZklHold *hold, ZklError *error);

/* Raises error 40001: this hold is lost, and the client learns of it so. */
pg_noreturn extern void zkl_hold_raise_lost(ZklHold *hold, ZklError error);

/* The fencing token of a lock.  False: it is not held. */
extern bool zkl_hold_token(const ZklTarget *lock, int64 *token);

/*
 * Whether the lease that a hold is good for has passed: others may, or may
 * soon, hold the lock, although nothing is known of it here.
 */
extern bool zkl_hold_has_lapsed(const ZklHold *hold);

/*
 * What this backend session holds of that name beyond transactions, of any kind: a
 * lock, a permit, a leadership.  NULL: nothing.
 */
extern ZklHold *zkl_hold_named(const char *name);

/* The SQL function that releases it; NULL: its transaction or its call does. */
extern const char *zkl_hold_release_function(const ZklHold *hold);

/* A subtransaction's counts become its parent's, or are undone.  Cannot fail. */
extern void zkl_hold_commit_scopes(SubTransactionId subid, SubTransactionId parent);
extern void zkl_hold_abort_scopes(SubTransactionId subid);

/* ---- promise ---- */

/* Times that are told: until then nobody else gets the lock.  Backends only. */

/*
 * Writes down that somebody is about to be told that nobody else gets the lock before
 * *until, in ms of boottime.h; *until is less if the hold or the reservation ends
 * before.  False, and nothing is promised: it is over, lost, or another one's.
 */
extern bool zkl_promise_make(int slotno, uint32 generation, int64 token, int64 *until);

/* Somebody is about to be told that a reservation is lost: its slot may go. */
extern void zkl_promise_tell_loss(int slotno, const ZklSlot *lost);

/* Ends the process if its client is gone, before it is given what only it could use. */
extern void zkl_promise_check_client(void);

/* A transaction aborts; the process ends, with this code.  Both are cheap. */
extern void zkl_promise_note_abort(void);
extern void zkl_promise_note_exit(int code);

/* Whether a release of this slot now is the client's own doing */
extern bool zkl_promise_ends_by_holder(int slotno);

/* ---- held ---- */

/*
 * What a call does with locks that the session holds: it releases them, extends
 * their time, or asserts them.
 */

/*
 * Releases a lock of session lifetime, once.  False, with a warning, if it is
 * not held, or was lost.
 */
extern bool zkl_held_release_lock(const ZklTarget *lock, ZklLockMode mode);

/*
 * Releases one hold, however often it was acquired.  False, with a warning: it
 * was lost, or may have been.
 */
extern bool zkl_held_release(ZklHold *hold);

/*
 * For the call that took it, if that comes to nothing: the hold counts once less, or
 * ends.  Cannot fail.
 */
extern void zkl_held_abandon(const ZklTarget *lock, ZklLockMode mode,
							 ZklLifetime lifetime);

/*
 * Releases all locks of session lifetime whose names in UTF-8 begin so, however often
 * they were acquired; but none that a call under way took for itself.
 */
extern void zkl_held_release_all(const char *prefix);

/*
 * From now on each hold of this backend on the lock may last for so many ms; 0:
 * without limit.  False, with a warning, if there is none; an error if one was
 * lost.
 */
extern bool zkl_held_extend(const ZklTarget *lock, int64 at_most_ms);

/*
 * For how many ms, at least one, a hold is surely good from now on: until its
 * lease or its at_most ends.  Error 40001 if it was lost, or its lease has ended.
 * Waits for nothing.
 */
extern int64 zkl_held_assert(ZklHold *hold);

/*
 * The same for all holds on a lock; *left_ms becomes the least of that time and of
 * what it was before.  False: it is not held.
 */
extern bool zkl_held_assert_lock(const ZklTarget *lock, int64 *left_ms);

#endif							/* ZKL_BACKEND_HOLD_H */
