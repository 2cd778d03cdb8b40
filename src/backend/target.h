/*
 * target.h
 *	  What an SQL function is called with: which lock is meant, a name and the dialect
 *	  of its queue; and times.
 */
#ifndef ZKL_BACKEND_TARGET_H
#define ZKL_BACKEND_TARGET_H

#include "backend/rights.h"
#include "fmgr.h"
#include "utils/timestamp.h"
#include "znode/znode.h"

/* The same name is another lock in another dialect. */
typedef struct ZklTarget
{
	const char *path;			/* its name in UTF-8, checked */
	const char *name;			/* the same as the database writes it */
	ZklDialect	dialect;
} ZklTarget;

/*
 * The first argument of an SQL function that takes, asserts or releases what it
 * names: error 22004 if it is NULL, so that nobody takes the result for that of a
 * lock.
 */
extern text * zkl_target_name(FunctionCallInfo fcinfo);

/* The same for other arguments that must be there; "what" is for the message. */
extern void zkl_target_need(FunctionCallInfo fcinfo, int arg, const char *what);

/*
 * The lock that an SQL function is called with, in the dialect that
 * "zklock.dialects" gives it; its strings are palloc'd.  Error 22023 if the
 * name breaks a rule; 42501 if the current role lacks one of the privileges that
 * the call needs for that name, as in all functions here.
 */
extern ZklTarget zkl_target_lock(const text *name, ZklPrivileges needed);

/*
 * What belongs to a recipe of its own dialect: the name with a suffix (empty,
 * or "/" and a segment).  Error 22023 also if both together are too long.
 */
extern ZklTarget zkl_target_recipe(const text *name, const char *suffix,
								   ZklDialect dialect, ZklPrivileges needed);

/*
 * A lock of our own that belongs to a name, in a place where users cannot have
 * one: the name below a reserved directory, such as "/.once".  Error 22023 also
 * if both together are too long.  The name itself is what privileges are for.
 */
extern ZklTarget zkl_target_reserved(const text *name, const char *directory,
									 ZklPrivileges needed);

/*
 * The same as zkl_target_lock, for callers that look at locks or break them: also
 * the name of a lock below ZKL_ONCE_DIRECTORY.
 */
extern ZklTarget zkl_target_any(const text *name, ZklPrivileges needed);

/*
 * In ms, rounded up, a month being 30 days; ZKL_FOREVER if infinite, -1 if
 * it is negative.
 */
extern int64 zkl_target_interval_ms(const Interval *interval);

/*
 * The timeout that is argument number "arg" of an SQL function, likewise;
 * ZKL_FOREVER if it is NULL.  Error 22023 if it is negative.
 */
extern int64 zkl_target_timeout_ms(FunctionCallInfo fcinfo, int arg);

#endif							/* ZKL_BACKEND_TARGET_H */
