/*
 * lock_queue.c
 *	  The queue of a lock: reading it, and breaking the lock of its head.
 *
 * Owns nothing.  Run by backends.  Takes no locks; waits as wait.c does.
 *
 * Must not know how the worker reads a queue or breaks a lock.
 */
#include "postgres.h"

#include "backend/lock_queue.h"
#include "backend/long_answer.h"
#include "backend/refusal.h"
#include "backend/wait.h"

/* ---- queues ---- */

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

/* ---- breaking ---- */

/* A break that is given up is half done: the holder has lost the lock. */
static void
break_context(void *name)
{
	errcontext("while breaking distributed lock \"%s\", which is not done until zk_break_lock() returns",
			   (char *) name);
}

bool
zkl_lock_queue_break(const ZklTarget *lock)
{
	ZklDeadlines at;
	ZklSlot		answer;

	zkl_wait_begin_answer(&at, ZKL_FOREVER, ZKL_FOREVER, true);
	at.at_gate = false;			/* it takes nothing */
	zkl_wait_for_answer(lock, ZKL_KIND_BREAK, DSM_HANDLE_INVALID,
						break_context, &at, &answer);
	if (answer.s_state == ZKL_SLOT_FAILED)
		zkl_refusal_raise_failed(lock->name, answer.s_answer.error, answer.s_answer.zkrc);
	return answer.s_answer.token != 0;
}
