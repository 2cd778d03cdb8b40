/*
 * maximum.h
 *	  The maximum of a semaphore, the same for all zklock clients at a time, and
 *	  how many leases there are.  Errors if ZooKeeper refuses an answer, or
 *	  cannot be reached in time: by the deadlines of the call, if given.
 */
#ifndef ZKL_RECIPES_MAXIMUM_H
#define ZKL_RECIPES_MAXIMUM_H

#include "backend/target.h"
#include "backend/wait.h"

/*
 * How many leases there are, whoever holds or awaits them, as far as this
 * server has seen.  surely: as of now, and without those that this server gives
 * back, so that there may be more.
 */
extern int64 zkl_maximum_count(const ZklTarget *leases, bool surely,
							   const ZklDeadlines *at);

/* The maximum that stands in the semaphore's directory; 0: none does. */
extern int	zkl_maximum_recorded(const ZklTarget *directory);

/*
 * Sees to it that all have the same maximum: error 22023 if this is another
 * one, and zklock servers have leases.  Under the guard it is recorded if need be.  What
 * others keep in the directory is left alone, and nothing is compared then.
 */
extern void zkl_maximum_settle(const ZklTarget *directory,
							   const ZklTarget *leases, int max,
							   bool guarded, const ZklDeadlines *at);

#endif							/* ZKL_RECIPES_MAXIMUM_H */
