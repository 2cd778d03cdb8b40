/*
 * dumpfuncs.c
 *	  The set-returning function zk_dump().
 *
 * Owns the DSM segment of the dump.  Run by backends.  Takes no locks; waits as
 * wait.c does.  Must not know what the texts of the core mean.
 */
#include "postgres.h"

#include "backend/refusal.h"
#include "backend/text.h"
#include "backend/wait.h"
#include "functions/row.h"
#include "miscadmin.h"
#include "shared/entries.h"
#include "shared/status.h"

#define DUMP_COLUMNS	4
#define FIRST_SIZE		((Size) 64 * 1024)
#define MOST_SIZE		((Size) 16 * 1024 * 1024)

ZKL_FUNCTION(zkl_sql_dump);

/* Adds the next text of the segment, NULL for an empty one. */
static bool
add_text(ZklRow *row, ZklEntries *list)
{
	const char *bytes;
	uint32		length;

	if (!zkl_entries_get_bytes(list, &bytes, &length))
		return false;
	if (length > 0)
		zkl_row_text(row, zkl_text_to_display(bytes, (int) length));
	else
		zkl_row_null(row);
	return true;
}

static bool
put_dump_row(FunctionCallInfo fcinfo, ZklEntries *list)
{
	ZklRow		row = {0};
	int32		pid;

	if (!add_text(&row, list) || !add_text(&row, list) ||
		!zkl_entries_get(list, &pid, sizeof(int32)))
		return false;
	zkl_row_int_or_null(&row, pid);
	if (!add_text(&row, list))
		return false;

	Assert(row.n == DUMP_COLUMNS);
	zkl_row_put(fcinfo, &row);
	return true;
}

static void
dump_context(void *name)
{
	errcontext("while waiting for the dump of the zklock worker");
}

/* Returns 0, or the size of the segment that the dump takes. */
static Size
read_dump_once(dsm_handle segment)
{
	ZklTarget	none = {"", "", ZKL_DIALECT_CURATOR_RW};
	ZklDeadlines at;
	ZklSlot		answer;

	zkl_wait_begin_answer(&at, ZKL_FOREVER, zkl_status_connect_timeout_ms(), false);
	zkl_wait_for_answer(&none, ZKL_KIND_DUMP, segment, dump_context, &at, &answer);
	if (answer.s_state == ZKL_SLOT_GRANTED)
		return 0;
	if (answer.s_answer.error != ZKL_ERROR_TOO_LARGE)
		zkl_refusal_raise_failed("", answer.s_answer.error, answer.s_answer.zkrc);
	return answer.s_answer.dsm_size;
}

static dsm_segment *
read_dump(ZklEntries *list)
{
	Size		size = FIRST_SIZE;

	for (;;)
	{
		dsm_segment *segment = dsm_create(size, 0);
		Size		needed = read_dump_once(dsm_segment_handle(segment));

		if (needed == 0)
		{
			zkl_entries_open(list, dsm_segment_address(segment),
							 dsm_segment_map_length(segment));
			return segment;
		}
		dsm_detach(segment);
		if (needed > MOST_SIZE)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("the zklock worker knows too many distributed locks to show them all"),
					 errdetail("The dump takes %zu bytes; the limit is %zu bytes.",
							   needed, MOST_SIZE)));
		/* It may grow before the next attempt. */
		size = Min(Max(needed + needed / 4, size * 2), MOST_SIZE);
	}
}

Datum
zkl_sql_dump(PG_FUNCTION_ARGS)
{
	ZklEntries	list;
	dsm_segment *segment;
	uint32		i;

	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be superuser to look into the zklock worker")));
	InitMaterializedSRF(fcinfo, 0);
	segment = read_dump(&list);
	for (i = 0; i < list.count && put_dump_row(fcinfo, &list); i++)
		CHECK_FOR_INTERRUPTS();
	dsm_detach(segment);
	return (Datum) 0;
}
