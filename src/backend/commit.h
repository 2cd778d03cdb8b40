/*
 * commit.h
 *	  When holds end by themselves, and the checks that no transaction commits
 *	  while one is lost.
 */
#ifndef ZKL_BACKEND_COMMIT_H
#define ZKL_BACKEND_COMMIT_H

#include "access/xact.h"
#include "backend/hold.h"

/* What a recipe has to do at the end of each transaction */
typedef struct ZklCommitStep
{
	/*
	 * Before the commit, under the locks, which were found to be good.  It
	 * may wait and raise errors.  Returns whether there was anything to do:
	 * if so, the locks are checked again.
	 */
	bool		(*before_commit) (void);

	/* Over, and the locks not yet released: only flags, no errors. */
	void		(*at_end) (bool committed);
} ZklCommitStep;

/* The step is the caller's, and lives as long as the process.  There is one only. */
extern void zkl_commit_set_step(const ZklCommitStep *of_recipe);

/* Where a statement runs, as seen from the callbacks before a commit */
typedef enum ZklCommitContext
{
	ZKL_COMMIT_OUTSIDE,			/* not in a callback */
	ZKL_COMMIT_IN_QUERY,		/* in a query, which may run in a callback */
	ZKL_COMMIT_IN_PROCEDURE,	/* in a function that a procedure calls
								 * without a query, or in a query of that
								 * function */
	ZKL_COMMIT_ANYWHERE			/* perhaps in a callback */
} ZklCommitContext;

/* A query begins to run that no other one runs around. */
extern void zkl_commit_note_query(void);

/*
 * Lets the commit check run before the callbacks of other extensions that
 * registered theirs up to now.
 */
extern void zkl_commit_check_first(ZklCommitContext context);

/*
 * The same, once in a transaction; and notes what had been lost before it.  Returns
 * whether that was any lock, or its lease had passed.
 */
extern bool zkl_commit_check_soon(void);

/*
 * Does the commit check at once, for a statement that commits before the
 * callbacks run; or, if it does not commit, sees to it that there is none.  The
 * callbacks then do not check again.  Only for a statement that is a transaction by
 * itself: nothing else may follow it there.
 */
extern void zkl_commit_check_now(bool commits);

/*
 * At the start of a statement: an error 40001 if a lock was lost since the
 * transaction began.  What was lost before can be acknowledged, and is left to
 * the commit check.
 */
extern void zkl_commit_check_statement(void);

/* An error 40001 if a lock is known to be lost, whenever it was. */
extern void zkl_commit_check_known(void);

/*
 * Returns once a hold, or each if it is NULL, is good and its lease valid; else an
 * error 40001.  A statement that acts outside of its transaction begins with that.
 */
extern void zkl_commit_check_wait(ZklHold *only);

/*
 * A statement begins; "looks": it changes nothing, nor relies on a lock, and no
 * other runs around it.
 */
extern void zkl_commit_note_statement(bool looks);

/*
 * Before a hold is released within a transaction.  If the transaction has written
 * anything: an error 40001 for each lost hold, and a wait for the leases, as in
 * a commit.  If not, and it is not one statement that only looks: the same for
 * this hold, unless that was lost before.  False: the lease has passed.
 */
extern bool zkl_commit_check_release(ZklHold *hold);

/*
 * Whether to warn that a hold is released before the changes of the transaction
 * are visible: once in a transaction that has written anything.
 */
extern bool zkl_commit_warn_release(void);

/* ---- lifetime: when holds end by themselves, and what each call begins with ---- */

/* Registers callbacks and hooks; called once, while preloading. */
extern void zkl_lifetime_init(void);

/*
 * Each call that releases something begins with this: error 55000 if zklock is
 * not loaded, 25000 in a parallel operation.
 */
extern void zkl_lifetime_check(void);

/* Likewise, for those that acquire: from then on holds end by themselves. */
extern void zkl_lifetime_begin(void);

/* Error 0A000 if "zklock.session_locks" is off, and this is such a lifetime. */
extern void zkl_lifetime_check_allowed(ZklLifetime lifetime);

#endif							/* ZKL_BACKEND_COMMIT_H */
