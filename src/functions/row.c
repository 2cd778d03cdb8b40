/*
 * row.c
 *	  Rows of set-returning functions, a column at a time.
 *
 * Owns nothing.  Run by backends.  Takes no locks.  Must not know what the
 * columns mean.
 */
#include "postgres.h"

#include "backend/admission.h"
#include "backend/text.h"
#include "functions/row.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/tuplestore.h"

static void
add_column(ZklRow *row, Datum value, bool null)
{
	if (row->n >= ZKL_ROW_COLUMNS)
		elog(ERROR, "a row of zklock has more than %d columns", ZKL_ROW_COLUMNS);
	row->values[row->n] = value;
	row->nulls[row->n++] = null;
}

void
zkl_row_add(ZklRow *row, Datum value)
{
	add_column(row, value, false);
}

void
zkl_row_null(ZklRow *row)
{
	add_column(row, (Datum) 0, true);
}

void
zkl_row_text(ZklRow *row, const char *value)
{
	zkl_row_add(row, CStringGetTextDatum(value));
}

void
zkl_row_utf8(ZklRow *row, const char *value, size_t size)
{
	zkl_row_text(row, zkl_text_to_display(value, (int) strnlen(value, size)));
}

void
zkl_row_text_or_null(ZklRow *row, const char *value)
{
	if (value[0] != '\0')
		zkl_row_text(row, value);
	else
		zkl_row_null(row);
}

void
zkl_row_utf8_or_null(ZklRow *row, const char *value, size_t size)
{
	if (value[0] != '\0')
		zkl_row_utf8(row, value, size);
	else
		zkl_row_null(row);
}

void
zkl_row_time_or_null(ZklRow *row, TimestampTz value)
{
	if (value != 0)
		zkl_row_add(row, TimestampTzGetDatum(value));
	else
		zkl_row_null(row);
}

void
zkl_row_unix_ms_or_null(ZklRow *row, int64 ms)
{
	int64		days = POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE;

	if (ms > 0 && ms < END_TIMESTAMP / 1000)
		zkl_row_add(row, TimestampTzGetDatum((ms - days * SECS_PER_DAY * 1000) *
											 1000));
	else
		zkl_row_null(row);
}

void
zkl_row_pid_or_null(ZklRow *row, int pid)
{
	if (pid != 0)
		zkl_row_add(row, Int32GetDatum(pid));
	else
		zkl_row_null(row);
}

void
zkl_row_interval_ms(ZklRow *row, int64 ms)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->time = ms * 1000;
	zkl_row_add(row, IntervalPGetDatum(interval));
}

void
zkl_row_session_id(ZklRow *row, int64 id)
{
	if (id != 0)
		zkl_row_text(row, psprintf("0x%016llx", (unsigned long long) id));
	else
		zkl_row_null(row);
}

/* To read some columns of the view does not suffice: the function shows them all. */
static void
refuse_view(Oid view, const char *name)
{
	bool		some = OidIsValid(view) &&
	pg_attribute_aclcheck_all(view, GetUserId(), ACL_SELECT,
							  ACLMASK_ANY) == ACLCHECK_OK;

	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied for view %s", name),
			 some ? errhint("The role needs SELECT on the whole view.") : 0));
}

/* The extension's script creates the view in the function's schema. */
void
zkl_row_begin_view(FunctionCallInfo fcinfo, const char *name)
{
	Oid			view = get_relname_relid(name,
										 get_func_namespace(fcinfo->flinfo->fn_oid));

	if (!OidIsValid(view) ||
		pg_class_aclcheck(view, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
		refuse_view(view, name);
	InitMaterializedSRF(fcinfo, 0);
}

void
zkl_row_put(FunctionCallInfo fcinfo, ZklRow *row)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	/* An older script may lack the last columns, a newer one have more. */
	if (result->setDesc->natts > row->n)
		zkl_admission_check_script();
	if (result->setDesc->natts > row->n)
		elog(ERROR, "zklock returns %d columns, and not %d",
			 row->n, result->setDesc->natts);
	tuplestore_putvalues(result->setResult, result->setDesc,
						 row->values, row->nulls);
}

const char *
zkl_row_mode_name(ZklLockMode mode)
{
	return mode == ZKL_SHARED ? "shared" : "exclusive";
}
