/*
 * long_answer.c
 *	  An answer of the worker that is as long as it is.
 *
 * Owns the DSM segment that the worker puts the answer into, until the caller
 * has it.  Run by backends.  Takes no locks; waits as wait.c does.
 *
 * Must not know what the answer means.
 */
#include "postgres.h"

#include "backend/long_answer.h"
#include "backend/refusal.h"
#include "backend/wait.h"
#include "shared/settings.h"
#include "shared/status.h"

#define FIRST_SIZE	((Size) 64 * 1024)

/* Returns 0, or the size of the segment that it takes. */
static Size
read_answer_once(const ZklTarget *target, ZklSlotKind kind,
				 void (*where) (void *name), dsm_handle segment)
{
	ZklDeadlines at;
	ZklSlot		answer;

	zkl_wait_begin_answer(&at, ZKL_FOREVER, zkl_status_connect_timeout_ms(), false);
	zkl_wait_for_answer(target, kind, segment, where, &at, &answer);
	if (answer.s_state == ZKL_SLOT_GRANTED)
		return 0;
	if (answer.s_answer.error != ZKL_ERROR_TOO_LARGE)
		zkl_refusal_raise_failed(target->name, answer.s_answer.error, answer.s_answer.zkrc);
	return answer.s_answer.dsm_size;
}

dsm_segment *
zkl_long_answer_read(const ZklTarget *target, ZklSlotKind kind,
					 void (*where) (void *name), ZklEntries *list,
					 Size *needed)
{
	Size		size = FIRST_SIZE;
	dsm_segment *segment;

	for (;;)
	{
		segment = dsm_create(size, 0);
		*needed = read_answer_once(target, kind, where,
								   dsm_segment_handle(segment));
		if (*needed == 0)
			break;
		dsm_detach(segment);
		if (*needed > ZKL_LONG_ANSWER_MAX)
			return NULL;
		/* It may grow before the next attempt. */
		size = Min(Max(*needed + *needed / 4, size * 2), ZKL_LONG_ANSWER_MAX);
	}
	zkl_entries_open(list, dsm_segment_address(segment),
					 dsm_segment_map_length(segment));
	return segment;
}
