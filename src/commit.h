/*
 * commit.h
 *	  The commit check: no transaction commits while a hold is lost.
 */
#ifndef ZKL_COMMIT_H
#define ZKL_COMMIT_H

/*
 * Lets the check run before the callbacks of other extensions that registered
 * theirs up to now.
 */
extern void zkl_commit_check_first(void);

/* The same, once in a transaction */
extern void zkl_commit_check_soon(void);

/*
 * Checks at once, for a statement that commits before the callbacks run;
 * these then do not check again.
 */
extern void zkl_commit_check_now(void);

/* The transaction is over: takes back the marks and forgets. */
extern void zkl_commit_forget(void);

#endif							/* ZKL_COMMIT_H */
