/*
 * jobs.h
 *	  All jobs of zk_once() that have a history.
 */
#ifndef ZKL_RECIPES_JOBS_H
#define ZKL_RECIPES_JOBS_H

#include "recipes/job.h"

/*
 * Calls fn for each job that has a history, in no order; "name" is the job's, in UTF-8.
 * What fn allocates is soon gone.  Waits for ZooKeeper, two reads for each job, many
 * at a time; error 08006 if it does not answer.
 */
extern void zkl_jobs_each(void (*fn) (void *arg, const char *name,
									  const ZklJobRecord *record), void *arg);

/*
 * Error 53400 if that role may make no other history: it has ZKL_JOBS_PER_ROLE.
 * Superusers may make more.  Waits for ZooKeeper.
 */
#define ZKL_JOBS_PER_ROLE	1000

extern void zkl_jobs_check_room(const char *role);

/*
 * Deletes the histories that are readable, belong to that role (NULL: to any), and
 * were written so many ms ago, by ZooKeeper's clock, or earlier; but none of a job
 * that a transaction has a turn of, or waits for.  Returns how many.
 */
extern int64 zkl_jobs_purge(int64 unused_ms, const char *role);

#endif							/* ZKL_RECIPES_JOBS_H */
