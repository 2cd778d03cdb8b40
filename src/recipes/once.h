/*
 * once.h
 *	  Turns of jobs, from SQL arguments.
 */
#ifndef ZKL_RECIPES_ONCE_H
#define ZKL_RECIPES_ONCE_H

#include "fmgr.h"
#include "recipes/job.h"

/*
 * Which turn the arguments with these numbers mean: that of a period, with its time zone,
 * or of a run key.  Error 22004 if there is neither, 22023 if there are both.
 */
extern void zkl_once_read_id(FunctionCallInfo fcinfo, int period, int zone, int key,
							 ZklTurnId *id);

/* The job of that name, of which a call takes turns: its lock */
extern ZklTarget zkl_once_job(const text *name);

/* The guarantee of that name, "at_most_once" or "at_least_once"; else error 22023 */
extern bool zkl_once_is_at_least(const text *guarantee);

/*
 * Waits for the job's lock, and takes the turn for the transaction; in the period of
 * called_ms, when the caller was called, by zkl_job_time(), or of now (0).  False: it
 * was used up.  Error 0A000 if the transaction has another turn of the job.
 */
extern bool zkl_once_take(const ZklTarget *job, const ZklTurnId *id, bool at_least_once,
						  int64 called_ms);

/*
 * Takes the turn for a session that has the job's lock, in the period of called_ms.  It
 * has the turn until that lock ends, or the turn is used up or passed on: see job.h.
 * False: it was used up.
 */
extern bool zkl_once_take_for_session(const ZklTarget *job, const ZklTurnId *id,
									  bool at_least_once, int64 called_ms);

#endif							/* ZKL_RECIPES_ONCE_H */
