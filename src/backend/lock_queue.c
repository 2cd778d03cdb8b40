/*
 * lock_queue.c
 *	  The queue of a lock, as the worker reads it.
 *
 * Owns nothing.  Run by backends.  Takes no locks; waits as wait.c does.
 *
 * Must not know how the worker reads it.
 */
#include "postgres.h"

#include "backend/lock_queue.h"
#include "backend/long_answer.h"

static void
queue_context(void *name)
{
	errcontext("while waiting for the queue of distributed lock \"%s\"",
			   (char *) name);
}

dsm_segment *
zkl_lock_queue_read(const ZklTarget *lock, ZklEntries *list)
{
	Size		needed;
	dsm_segment *segment = zkl_long_answer_read(lock, ZKL_KIND_QUEUE,
												queue_context, list, &needed);

	if (segment == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("queue of distributed lock \"%s\" is too long to be shown",
						lock->name),
				 errdetail("It takes %zu bytes; the limit is %zu bytes.",
						   needed, ZKL_LONG_ANSWER_MAX)));
	return segment;
}
