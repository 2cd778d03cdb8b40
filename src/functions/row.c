/*
 * row.c
 *	  Rows of set-returning functions, a column at a time; and how requests and
 *	  checks are shown in them.
 *
 * Owns the names of modes and states.  Run by backends, on copies of slots.  Takes
 * no locks.  Must not know which function a row is for.
 */
#include "postgres.h"

#include "backend/admission.h"
#include "backend/target.h"
#include "catalog/pg_authid.h"
#include "functions/row.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/gate.h"
#include "shared/settings.h"
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
	row->nulls[row->n++] = null || row->hidden;
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
zkl_row_bool(ZklRow *row, bool value)
{
	zkl_row_add(row, BoolGetDatum(value));
}

void
zkl_row_int64(ZklRow *row, int64 value)
{
	zkl_row_add(row, Int64GetDatum(value));
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
zkl_row_int_or_null(ZklRow *row, int value)
{
	if (value != 0)
		zkl_row_add(row, Int32GetDatum(value));
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
zkl_row_interval_ms_or_null(ZklRow *row, int64 ms)
{
	if (ms != 0)
		zkl_row_interval_ms(row, ms);
	else
		zkl_row_null(row);
}

void
zkl_row_znode(ZklRow *row, const char *directory, const char *name, int length)
{
	char	   *path = psprintf("%s%s/%.*s", zkl_root, directory, length, name);

	zkl_row_utf8(row, path, strlen(path));
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

/* ---- requests ---- */

const char *
zkl_row_mode_name(ZklLockMode mode)
{
	return mode == ZKL_SHARED ? "shared" : "exclusive";
}

static const char *const slot_state_names[] = {
	[ZKL_SLOT_FREE] = NULL,
	[ZKL_SLOT_CLAIMED] = NULL,
	[ZKL_SLOT_WAITING] = "waiting",
	[ZKL_SLOT_GRANTED] = "granted",
	[ZKL_SLOT_CACHED] = "cached",
	[ZKL_SLOT_DENIED] = "denied",
	[ZKL_SLOT_FAILED] = "failed",
	[ZKL_SLOT_LOST] = "lost",
	[ZKL_SLOT_RELEASED] = "releasing"
};

const char *
zkl_row_slot_mode(const ZklSlot *slot)
{
	if (slot->s_request.guard || slot->s_request.dialect == ZKL_DIALECT_PERMIT)
		return "permit";
	return slot->s_request.dialect == ZKL_DIALECT_MEMBER ? "member" :
		slot->s_request.dialect == ZKL_DIALECT_LATCH ? "leader" :
		zkl_row_mode_name(slot->s_request.mode);
}

const char *
zkl_row_slot_lifetime(const ZklSlot *slot)
{
	if (slot->s_state == ZKL_SLOT_CACHED)
		return "";
	return zkl_slot_lifetime_name(slot);
}

TimestampTz
zkl_row_slot_granted_at(const ZklSlot *slot)
{
	return slot->s_state == ZKL_SLOT_CACHED ? 0 : slot->s_answer.granted_at;
}

bool
zkl_row_slot_has_session(const ZklSlot *slot)
{
	return slot->s_state != ZKL_SLOT_RELEASED &&
		slot->s_state != ZKL_SLOT_CACHED && slot->s_request.ticket == 0;
}

void
zkl_row_slot_add_session(ZklRow *row, const ZklSlot *slot, bool visible)
{
	bool		has_session = visible &&
	(zkl_row_slot_has_session(slot) || zkl_slot_is_reserved(slot) ||
	 zkl_slot_is_ticket(slot) || zkl_slot_is_untold(slot));
	const ZklSlotRequest *request = &slot->s_request;

	zkl_row_utf8_or_null(row, has_session ? request->database : "",
						 sizeof(request->database));
	zkl_row_utf8_or_null(row, has_session ? request->usename : "",
						 sizeof(request->usename));
	zkl_row_utf8_or_null(row, has_session ? request->application : "",
						 sizeof(request->application));
}

const char *
zkl_row_slot_state(const ZklSlot *slot)
{
	bool		reserved = zkl_slot_is_reserved(slot);
	bool		unclaimed = slot->s_state == ZKL_SLOT_RELEASED && zkl_slot_is_ticket(slot);

	if (zkl_slot_is_untold(slot))
		return slot_state_names[ZKL_SLOT_LOST];
	if (slot->s_state == ZKL_SLOT_RELEASED && !reserved && !unclaimed &&
		slot->s_keep_until > zkl_boottime_ms())
		return "kept";
	if ((slot->s_state == ZKL_SLOT_GRANTED || reserved || unclaimed) &&
		!zkl_lease_is_valid(slot->s_record.generation))
		return "unconfirmed";
	if (unclaimed)
		return "unclaimed";
	if (reserved)
		return slot_state_names[ZKL_SLOT_GRANTED];
	return slot_state_names[slot->s_state];
}

bool
zkl_row_slot_is_visible(const ZklSlot *slot)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		(slot->s_state != ZKL_SLOT_CACHED &&
		 has_privs_of_role(GetUserId(), slot->s_request.roleid));
}

/* ---- checkrow: a row of zk_healthcheck() ---- */

/*
 * It must not know what is checked.
 */

#define MOST_NAMES		5		/* that one sentence has */

void
zkl_checkrow_put(FunctionCallInfo fcinfo, const char *check, bool known, bool ok,
				 const char *detail)
{
	ZklRow		row = {0};

	zkl_row_text(&row, check);
	row.hidden = !known;
	zkl_row_bool(&row, ok);
	row.hidden = false;
	zkl_row_text(&row, detail);

	zkl_row_put(fcinfo, &row);
}

char *
zkl_checkrow_names(List *names)
{
	StringInfoData buf;
	ListCell   *cell;
	int			n = 0;

	initStringInfo(&buf);
	foreach(cell, names)
	{
		if (n++ == MOST_NAMES)
			break;
		appendStringInfo(&buf, "%s\"%s\"", n > 1 ? ", " : "",
						 (const char *) lfirst(cell));
	}
	if (n > MOST_NAMES)
		appendStringInfo(&buf, " and %d more", list_length(names) - MOST_NAMES);
	return buf.data;
}
