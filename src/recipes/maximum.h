/*
 * maximum.h
 *	  The maximum of a semaphore, which all zklock servers share, and how many
 *	  permits there are.
 *
 * All raise an error if ZooKeeper refuses an answer or cannot be reached in
 * time: by the deadlines of the call, if given.
 */
#ifndef ZKL_RECIPES_MAXIMUM_H
#define ZKL_RECIPES_MAXIMUM_H

#include "backend/target.h"
#include "backend/wait.h"

/*
 * How many permits any client holds or awaits, as far as this server has seen.
 * surely: as of now, and without the permits that this server is releasing; so
 * there are at least as many.
 */
extern int64 zkl_maximum_count(const ZklTarget *permits, bool surely,
							   const ZklDeadlines *at);

/* The maximum that such data of the semaphore's directory records; 0: none. */
extern int	zkl_maximum_parse(const char *data, Size size);

/* The maximum recorded in the semaphore's directory; 0: none is. */
extern int	zkl_maximum_recorded(const ZklTarget *directory);

/*
 * Ensures that all zklock servers have the same maximum: error 22023 if another
 * one is recorded and a zklock server has a permit.  Under the guard, records
 * the maximum if need be.  If the directory holds data of another client, leaves
 * it alone and compares nothing.
 */
extern void zkl_maximum_settle(const ZklTarget *directory,
							   const ZklTarget *permits, int max,
							   bool guarded, const ZklDeadlines *at);

#endif							/* ZKL_RECIPES_MAXIMUM_H */
