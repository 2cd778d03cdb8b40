/*
 * lock_queue.c
 *	  The queue of a lock: reading it, and breaking the lock of its head.
 *
 * Owns the DSM segment that the worker puts the queue into, until the caller
 * has it.  Run by backends.  Takes no locks; waits as wait.c does.
 *
 * Must not know how the worker reads a queue or breaks a lock.
 */
#include "postgres.h"

#include "backend/lock_queue.h"
#include "backend/refusal.h"
#include "backend/request.h"
#include "backend/wait.h"
#include "shared/settings.h"

#define QUEUE_FIRST_SIZE	((Size) 64 * 1024)
#define QUEUE_MAX_SIZE		((Size) 16 * 1024 * 1024)

/* ---- queues ---- */

static void
queue_context(void *name)
{
	errcontext("while waiting for the queue of distributed lock \"%s\"",
			   (char *) name);
}

/* Returns 0, or the size of the segment that it takes. */
static Size
read_queue_once(const ZklTarget *lock, dsm_handle segment)
{
	int			slotno = zkl_request_claim(lock, ZKL_KIND_QUEUE);
	ZklDeadlines at;
	ZklSlot		answer;

	zkl_wait_begin_answer(&at, ZKL_FOREVER, zkl_connect_timeout, false);
	zkl_slots[slotno].s_dsm = segment;
	zkl_wait_for_answer(slotno, queue_context, lock->name, &at, &answer);
	if (answer.s_state == ZKL_SLOT_GRANTED)
		return 0;
	if (answer.s_error != ZKL_ERROR_TOO_LARGE)
		zkl_refusal_raise_failed(lock->name, answer.s_error, answer.s_zkrc);
	return answer.s_dsm_size;
}

dsm_segment *
zkl_lock_queue_read(const ZklTarget *lock, ZklListing *list)
{
	Size		size = QUEUE_FIRST_SIZE;
	dsm_segment *segment;

	for (;;)
	{
		Size		needed;

		segment = dsm_create(size, 0);
		needed = read_queue_once(lock, dsm_segment_handle(segment));
		if (needed == 0)
			break;
		dsm_detach(segment);
		if (needed > QUEUE_MAX_SIZE)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("queue of distributed lock \"%s\" is too long to be shown",
							lock->name),
					 errdetail("It takes %zu bytes; the limit is %zu bytes.",
							   needed, QUEUE_MAX_SIZE)));
		/* It may grow while we ask again. */
		size = Min(Max(needed + needed / 4, size * 2), QUEUE_MAX_SIZE);
	}
	zkl_listing_open(list, dsm_segment_address(segment),
					 dsm_segment_map_length(segment));
	return segment;
}

/* ---- breaking ---- */

/* A break that is given up is half done: who holds the lock has lost it. */
static void
break_context(void *name)
{
	errcontext("while breaking distributed lock \"%s\", which is not done until zk_break_lock() returns",
			   (char *) name);
}

bool
zkl_lock_queue_break(const ZklTarget *lock)
{
	int			slotno = zkl_request_claim(lock, ZKL_KIND_BREAK);
	ZklDeadlines at;
	ZklSlot		answer;

	zkl_wait_begin_answer(&at, ZKL_FOREVER, ZKL_FOREVER, true);
	zkl_wait_for_answer(slotno, break_context, lock->name, &at, &answer);
	if (answer.s_state == ZKL_SLOT_FAILED)
		zkl_refusal_raise_failed(lock->name, answer.s_error, answer.s_zkrc);
	return answer.s_token != 0;
}
