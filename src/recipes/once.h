/*
 * once.h
 *	  What SQL does with jobs: zk_once() and zk_run_once() give a turn to one
 *	  transaction among all servers.
 */
#ifndef ZKL_RECIPES_ONCE_H
#define ZKL_RECIPES_ONCE_H

#include "recipes/job.h"

/* ---- jobs: all jobs of zk_once() that have a history ---- */

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

/*
 * Deletes the histories that are readable, belong to that role (NULL: to any), and
 * were written so many ms ago, by ZooKeeper's clock, or earlier; but none of a job
 * that a transaction has a turn of, or waits for.  Returns how many.
 */
extern int64 zkl_jobs_purge(int64 unused_ms, const char *role);

#endif							/* ZKL_RECIPES_ONCE_H */
