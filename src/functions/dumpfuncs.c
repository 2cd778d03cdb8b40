/*
 * dumpfuncs.c
 *	  The set-returning function zk_dump().
 *
 * Owns nothing.  Run by backends.  Takes no locks.  Must not know what the
 * texts of the core mean.
 */
#include "postgres.h"

#include "backend/long_answer.h"
#include "backend/text.h"
#include "functions/row.h"
#include "miscadmin.h"
#include "shared/entries.h"

#define DUMP_COLUMNS	4

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
	zkl_row_pid_or_null(&row, pid);
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

static dsm_segment *
read_dump(ZklEntries *list)
{
	ZklTarget	none = {"", "", ZKL_DIALECT_CURATOR_RW};
	Size		needed;
	dsm_segment *segment = zkl_long_answer_read(&none, ZKL_KIND_DUMP,
												dump_context, list, &needed);

	if (segment == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the zklock worker knows too many distributed locks to show them all"),
				 errdetail("The dump takes %zu bytes; the limit is %zu bytes.",
						   needed, ZKL_LONG_ANSWER_MAX)));
	return segment;
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
