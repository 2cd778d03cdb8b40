/*
 * segment.c
 *	  The DSM segments of backends, as the worker uses them.
 *
 * Owns nothing: a segment is attached only while it is written or read.  Runs in the worker
 * only.  Takes the locks of PostgreSQL's dsm.c, and the slots' mutexes through
 * worker_slot.h.  It must not know what the segments hold.
 *
 * The worker has no resource owner that would clean up after an error.
 * dsm_attach() takes a reference before it maps the segment.  If the mapping
 * fails, this file gives the reference back: otherwise the segment would stay
 * until the server stops, and the worker could never attach it again.
 */
#include "postgres.h"

#include "storage/lwlock.h"
#include "worker/segment.h"
#include "worker/worker_slot.h"

dsm_segment *
zkl_segment_attach(dsm_handle handle)
{
	MemoryContext old = CurrentMemoryContext;
	dsm_segment *volatile segment = NULL;

	PG_TRY();
	{
		segment = dsm_attach(handle);
	}
	PG_CATCH();
	{
		dsm_segment *half;

		/* dsm.c raises some errors while it holds its lock. */
		LWLockReleaseAll();
		half = dsm_find_mapping(handle);
		MemoryContextSwitchTo(old);
		EmitErrorReport();
		FlushErrorState();
		if (half != NULL)
			dsm_detach(half);
	}
	PG_END_TRY();
	return segment;
}

bool
zkl_segment_use(dsm_handle handle,
				void (*fn) (void *address, Size size, void *arg), void *arg)
{
	dsm_segment *segment = zkl_segment_attach(handle);

	if (segment == NULL)
		return false;
	fn(dsm_segment_address(segment), dsm_segment_map_length(segment), arg);
	dsm_detach(segment);
	return true;
}

typedef struct
{
	Size		(*write) (void *address, Size size, void *arg);
	void	   *arg;
	Size		needed;
	Size		size;			/* of the segment */
} SegmentAnswer;

static void
write_answer(void *address, Size size, void *arg)
{
	SegmentAnswer *answer = arg;

	answer->needed = answer->write(address, size, answer->arg);
	answer->size = size;
}

void
zkl_segment_answer(int slotno, dsm_handle handle,
				   Size (*write) (void *address, Size size, void *arg),
				   void *arg)
{
	SegmentAnswer answer = {write, arg, 0, 0};

	if (!zkl_segment_use(handle, write_answer, &answer))
		zkl_worker_slot_fail(slotno, ZKL_ERROR_SEGMENT, 0);
	else if (answer.needed > answer.size)
		zkl_worker_slot_too_large(slotno, answer.needed);
	else
		zkl_worker_slot_grant(slotno, 0, false);
}

void
zkl_segment_unpin(dsm_handle handle)
{
	MemoryContext old = CurrentMemoryContext;

	PG_TRY();
	{
		dsm_unpin_segment(handle);
	}
	PG_CATCH();
	{
		LWLockReleaseAll();
		MemoryContextSwitchTo(old);
		FlushErrorState();
	}
	PG_END_TRY();
}
