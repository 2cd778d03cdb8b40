/*
 * operator.c
 *	  The SQL-callable functions for operators, and those that grant rights by
 *	  prefix.
 *
 * Owns the statements that change the table of grants, and its trigger.  Run by
 * backends, mostly of superusers.  Takes no locks; zk_drain() waits on the process
 * latch.  Must not know how the worker carries things out, nor what a holder does
 * that is asked to release its lock, nor what a privilege allows.
 *
 * Such a request is written into the data of the holder's znode, which the holder
 * watches.  For other clients it is Curator's fixed message, which replaces the
 * data.  In zklock's own znodes it is a mark that names the asking session, and
 * the data still names the holder.
 */
#include "postgres.h"

#include "backend/admission.h"
#include "backend/errand.h"
#include "backend/hold.h"
#include "backend/refusal.h"
#include "backend/target.h"
#include "backend/wait.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "functions/row.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "recipes/break_lock.h"
#include "recipes/dialects.h"
#include "recipes/semaphore.h"
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "storage/dsm.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/varlena.h"
#include "znode/znode.h"

ZKL_FUNCTION(zkl_sql_break_lock);
ZKL_FUNCTION(zkl_sql_accept_lower_tokens);
ZKL_FUNCTION(zkl_sql_reconnect);
ZKL_FUNCTION(zkl_sql_drain);
ZKL_FUNCTION(zkl_sql_undrain);
ZKL_FUNCTION(zkl_sql_set_dialects);

/* A release does not wake zk_drain(). */
#define DRAIN_LOOK_MS	50

#define DRAIN_COLUMNS	9

/* EXECUTE can be granted, but only a superuser may interfere with others. */
static void
require_superuser(const char *message)
{
	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("%s", message)));
}

static void
log_call(const char *what)
{
	ereport(LOG,
			(errmsg("zklock: process %d (user \"%s\") %s",
					MyProcPid, GetUserNameFromId(GetUserId(), true), what)));
}

/* Breaks the oldest permit of a semaphore. */
static bool
break_permit(const ZklTarget *lock)
{
	ZklTarget	permits = *lock;

	permits.path = psprintf("%s%s", lock->path, ZKL_SEMAPHORE_PERMITS);
	permits.dialect = ZKL_DIALECT_PERMIT;
	return strlen(permits.path) <= ZKL_MAX_NAME && zkl_break_lock(&permits);
}

Datum
zkl_sql_break_lock(PG_FUNCTION_ARGS)
{
	ZklTarget	lock;

	zkl_gate_check();
	require_superuser("must be superuser to break a distributed lock");
	lock = zkl_target_any(PG_GETARG_TEXT_PP(0), ZKL_NEEDS_NOTHING);
	PG_RETURN_BOOL(zkl_break_lock(&lock) || break_permit(&lock));
}

/* The worker reads the value when it connects, at most a few seconds later. */
Datum
zkl_sql_accept_lower_tokens(PG_FUNCTION_ARGS)
{
	zkl_gate_check();
	require_superuser("must be superuser to accept lower fencing tokens");
	pg_atomic_write_u64(&zkl_control->ctl_zxid_seen, 0);
	ereport(LOG,
			(errmsg("zklock: process %d (user \"%s\") accepted lower fencing tokens",
					MyProcPid, GetUserNameFromId(GetUserId(), true))));
	PG_RETURN_VOID();
}

/* ---- another connection ---- */

#define FAULT_ROOM		((Size) 1024)

static void
reconnect_context(void *name)
{
	errcontext("while waiting for another connection to ZooKeeper");
}

/* The worker tries all hosts before it says that none works. */
static int64
longest_trial_ms(void)
{
	int64		ms = zkl_status_answer_timeout_ms();

	for (int i = 0; zkl_hosts_nth(zkl_connect_string, i) != NULL; i++)
		ms += ZKL_HOST_TRIAL_MS;
	return ms;
}

/* Returns what is wrong, or an empty text. */
static char *
reconnect(void)
{
	dsm_segment *segment = dsm_create(FAULT_ROOM, 0);
	ZklTarget	none = {"", "", ZKL_DIALECT_CURATOR_RW};
	ZklQuestion question = {.kind = ZKL_KIND_RECONNECT,.segment = dsm_segment_handle(segment)};
	ZklDeadlines at;
	ZklSlot		answer;
	char	   *fault;

	zkl_wait_begin_answer(&at, ZKL_FOREVER, longest_trial_ms(), false);
	zkl_wait_for_answer(&none, &question, reconnect_context, &at, &answer);
	if (answer.s_state == ZKL_SLOT_FAILED)
		zkl_refusal_raise_failed("", answer.s_answer.error, answer.s_answer.zkrc);
	fault = pstrdup(dsm_segment_address(segment));
	dsm_detach(segment);
	return fault;
}

Datum
zkl_sql_reconnect(PG_FUNCTION_ARGS)
{
	const char *fault;

	zkl_gate_check();
	require_superuser("must be superuser to reconnect to ZooKeeper");
	log_call("reconnects this server to ZooKeeper");
	fault = reconnect();
	if (fault[0] != '\0')
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("could not reconnect to ZooKeeper"),
				 errdetail("A trial has failed, so the connection was not replaced: %s.",
						   zkl_text_to_display(fault, (int) strlen(fault))),
				 errhint("Check the settings of the connection and the files that they name, then call zk_reconnect() again.")));
	PG_RETURN_VOID();
}

/* ---- draining ---- */

/* It would wait for itself. */
static void
refuse_to_drain_own(void)
{
	if (!zkl_hold_is_any())
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_IN_USE),
			 errmsg("cannot drain the server in a session that holds distributed locks"),
			 errhint("Release them first, with zk_unlock_all(), or use another session.")));
}

static void
check_drain(uint32 drain)
{
	if (drain == 0 || zkl_gate_drain() != drain)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the server is no longer being drained"),
				 errdetail("Another session called zk_undrain().")));
}

/* Returns once nothing is left, or the time is over. */
static void
wait_until_drained(uint32 drain, int64 timeout_ms)
{
	int64		until = timeout_ms == ZKL_FOREVER ? ZKL_NEVER :
	zkl_wait_after_ms(zkl_wait_clock(), timeout_ms);

	check_drain(drain);
	while (zkl_admission_drain_ask_all(drain) > 0 && zkl_wait_clock() < until)
	{
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 DRAIN_LOOK_MS, zkl_compat_wait_event(ZKL_EVENT_LOCK));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		check_drain(drain);
	}
	check_drain(drain);
}

static void
put_left(FunctionCallInfo fcinfo, const ZklSlot *slot)
{
	ZklRow		row = {0};

	zkl_row_utf8(&row, slot->s_request.path, zkl_slot_shown_length(slot));
	zkl_row_text(&row, zkl_row_slot_mode(slot));
	zkl_row_text_or_null(&row, zkl_row_slot_lifetime(slot));
	zkl_row_text(&row, zkl_row_slot_state(slot));
	zkl_row_int_or_null(&row, zkl_row_slot_has_session(slot) ? slot->s_request.pid : 0);
	zkl_row_slot_add_session(&row, slot, true);
	zkl_row_time_or_null(&row, zkl_row_slot_granted_at(slot));
	Assert(row.n == DRAIN_COLUMNS);
	zkl_row_put(fcinfo, &row);
}

/* The drain stays, also if the call is cancelled. */
Datum
zkl_sql_drain(PG_FUNCTION_ARGS)
{
	int64		timeout_ms = zkl_target_timeout_ms(fcinfo, 0);
	int			i;

	zkl_gate_check();
	require_superuser("must be superuser to drain the server");
	refuse_to_drain_own();
	InitMaterializedSRF(fcinfo, 0);
	if (zkl_gate_begin_drain())
		log_call("drains this server of distributed locks");
	wait_until_drained(zkl_gate_drain(), timeout_ms);
	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		ZklSlot		slot;

		if (zkl_slot_peek(i) <= ZKL_SLOT_CLAIMED)
			continue;
		zkl_slot_copy(i, &slot);
		if (zkl_admission_drain_is_left(&slot))
			put_left(fcinfo, &slot);
	}
	return (Datum) 0;
}

Datum
zkl_sql_undrain(PG_FUNCTION_ARGS)
{
	bool		ended;

	zkl_gate_check();
	require_superuser("must be superuser to end the drain of the server");
	ended = zkl_gate_end_drain();
	if (ended)
		log_call("ended the drain of this server");
	PG_RETURN_BOOL(ended);
}

Datum
zkl_sql_set_dialects(PG_FUNCTION_ARGS)
{
	char	   *given = text_to_cstring(PG_GETARG_TEXT_PP(0));
	char	   *list = pg_server_to_any(given, (int) strlen(given), PG_UTF8);
	const char *broken_rule = zkl_dialect_check_list(list);

	zkl_gate_check();
	require_superuser("must be superuser to change the dialects of distributed locks");
	if (broken_rule != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid list of dialects: \"%s\"", given),
				 errdetail("%s", broken_rule)));
	zkl_dialects_change(list);
	ereport(LOG,
			(errmsg("zklock: process %d (user \"%s\") set the dialects of root \"%s\" to \"%s\"",
					MyProcPid, GetUserNameFromId(GetUserId(), true), zkl_root, given)));
	PG_RETURN_VOID();
}

/* ---- asking for a release ---- */

#define ANSWER_ROOM		ZKL_MAX_NODE_DATA	/* zklock's data is no longer */
#define MAX_TRIES		10		/* while others write to the same znode */

ZKL_FUNCTION(zkl_sql_request_release);

/* Describes this session for the holder, in UTF-8. */
static char *
describe_asker(void)
{
	char	   *usename = GetUserNameFromId(GetSessionUserId(), true);
	char	   *database = get_database_name(MyDatabaseId);
	char		user[NAMEDATALEN];
	char		name[NAMEDATALEN];

	zkl_text_copy_to_utf8(user, sizeof(user), usename ? usename : "");
	zkl_text_copy_to_utf8(name, sizeof(name), database ? database : "");
	return psprintf("process %d of %s (user \"%s\", database \"%s\")",
					MyProcPid, zkl_settings_server_name(), user, name);
}

/* Fills in the data that replaces the data that the errand has just read. */
static void
make_message(ZklErrand *errand, bool is_zklock, const char *asker)
{
	bool		whole = errand->answer.size <= errand->room;

	if (is_zklock)
		errand->length = (uint32)
			zkl_node_data_revoke(errand->answer.bytes, whole ? errand->answer.size : 0,
								 asker, errand->data);
	else
	{
		errand->length = strlen(ZKL_REVOKE_MESSAGE);
		memcpy(errand->data, ZKL_REVOKE_MESSAGE, errand->length);
	}
}

static bool
is_written(const ZklErrand *errand)
{
	return errand->answer.size == errand->length &&
		memcmp(errand->answer.bytes, errand->data, errand->length) == 0;
}

/*
 * False: it no longer holds the lock.  Each call writes, even if the data is the
 * same as before, because the holder counts writes.  Only if the answer to a
 * write was lost does the next turn check whether it was done.
 */
static bool
ask_holder(const ZklTarget *lock, const char *znode, bool is_zklock,
		   const char *asker)
{
	ZklErrand  *errand = zkl_errand_make(ZKL_ERRAND_GET, lock, znode,
										 ANSWER_ROOM);
	bool		unknown = false;
	int			tries = 0;
	int32		rc;

	for (;;)
	{
		errand->kind = ZKL_ERRAND_GET;
		rc = zkl_errand_run(errand, lock);
		if (rc != ZKL_RC_OK)
			break;
		make_message(errand, is_zklock, asker);
		if (unknown && is_written(errand))
			break;
		errand->kind = ZKL_ERRAND_SET;
		errand->version = errand->answer.stat.version;
		rc = zkl_errand_run(errand, lock);
		if ((rc != ZKL_RC_BADVERSION && rc != ZKL_RC_UNKNOWN) ||
			++tries == MAX_TRIES)
			break;
		unknown |= rc == ZKL_RC_UNKNOWN;
	}
	zkl_errand_free(errand);
	if (rc != ZKL_RC_OK && rc != ZKL_RC_NONODE)
		zkl_refusal_raise_failed(lock->name, ZKL_ERROR_ZOOKEEPER, rc);
	return rc == ZKL_RC_OK;
}

/* Asks the entries that zk_queue() shows as granted. */
Datum
zkl_sql_request_release(PG_FUNCTION_ARGS)
{
	ZklTarget	lock = zkl_target_lock(PG_GETARG_TEXT_PP(0), ZKL_MAY_REQUEST_RELEASE);
	char	   *asker = describe_asker();
	ZklLockQueue queue;
	int32		asked = 0;
	int			i;

	zkl_errand_read_queue(&lock, &queue);
	for (i = 0; i < queue.n && (i == 0 || queue.entries[i].mode == ZKL_SHARED); i++)
	{
		const ZklQueueEntry *entry = &queue.entries[i];

		asked += ask_holder(&lock, entry->name,
							entry->has_uuid && zkl_uuid_is_zklock(&entry->uuid),
							asker);
		if (entry->mode == ZKL_EXCLUSIVE)
			break;
	}
	PG_RETURN_INT32(asked);
}

/* ---- grantfuncs: the SQL-callable functions that write grants: rights by prefix ---- */

/*
 * Run by backends of superusers; the trigger by whatever process changes the table.
 *
 * Must not know what a privilege allows.
 *
 * The statements name everything with its schema, so that no search_path leads
 * them elsewhere.
 */

ZKL_FUNCTION(zkl_sql_grant);
ZKL_FUNCTION(zkl_sql_revoke);
ZKL_FUNCTION(zkl_sql_rights_changed);

/* ---- arguments: prefix, role, privileges ---- */

static void
check_prefix(const text *prefix)
{
	const char *data = VARDATA_ANY(prefix);
	int			length = (int) VARSIZE_ANY_EXHDR(prefix);

	if (length != 1 || data[0] != '/')
		pfree(zkl_text_name_to_utf8(data, length));
}

static void
add_privilege(const char *name, ZklPrivileges *set)
{
	ZklPrivileges privilege = strcmp(name, "all") == 0 ? ZKL_MAY_ALL :
	zkl_rights_privilege(name);

	if (privilege == ZKL_NEEDS_NOTHING)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unrecognized privilege: \"%s\"", name),
				 errhint("Valid privileges are %s, and \"all\".",
						 zkl_rights_privilege_names())));
	*set |= privilege;
}

/* An array of the names of the privileges in a list */
static Datum
read_privileges(const text *argument)
{
	char	   *list = text_to_cstring(argument);
	Datum		elements[32];
	ZklPrivileges set = ZKL_NEEDS_NOTHING;
	const char *name;
	List	   *names;
	ListCell   *cell;
	int			n = 0;

	if (!SplitIdentifierString(pstrdup(list), ',', &names) || names == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid list of privileges: \"%s\"", list),
				 errhint("Write privileges as in 'lock, shared'.")));
	foreach(cell, names)
		add_privilege(lfirst(cell), &set);
	while ((name = zkl_rights_next_name(&set)) != NULL)
		elements[n++] = CStringGetTextDatum(name);
	return PointerGetDatum(construct_array(elements, n, TEXTOID, -1, false,
										   TYPALIGN_INT));
}

static void
check_role(const char *role)
{
	if (strcmp(role, ZKL_RIGHTS_PUBLIC) != 0)
		(void) get_role_oid(role, false);
}

/* ---- statements ---- */

/*
 * Runs a statement about the table, whose name is the %s in it, with the prefix,
 * the role and the privileges as its parameters.  Returns how many rows there were.
 */
static uint64
run_statement(const char *format, Datum *values)
{
	Oid			types[] = {TEXTOID, NAMEOID, TEXTARRAYOID};
	Oid			owner;
	char	   *sql = psprintf(format, zkl_rights_qualified_table(ZKL_RIGHTS_TABLE, &owner));
	int			rc = SPI_execute_with_args(sql, lengthof(types), types, values,
										   NULL, false, 0);

	if (rc < 0)
		elog(ERROR, "could not run \"%s\": %s", sql, SPI_result_code_string(rc));
	return SPI_processed;
}

#define INSERT_ROWS \
	"INSERT INTO %s (prefix, role, privilege)" \
	" SELECT $1, $2, p FROM pg_catalog.unnest($3) AS p ON CONFLICT DO NOTHING"
#define DELETE_ROWS \
	"DELETE FROM %s WHERE prefix OPERATOR(pg_catalog.=) $1" \
	" AND role OPERATOR(pg_catalog.=) $2" \
	" AND privilege OPERATOR(pg_catalog.=) ANY ($3)"
#define SELECT_ROWS \
	"SELECT FROM %s WHERE prefix OPERATOR(pg_catalog.=) $1"

static void
begin_statements(FunctionCallInfo fcinfo, Datum *values)
{
	zkl_rights_check_superuser("must be superuser to change rights by prefix");
	check_prefix(PG_GETARG_TEXT_PP(0));
	values[0] = PG_GETARG_DATUM(0);
	values[1] = PG_GETARG_DATUM(1);
	values[2] = read_privileges(PG_GETARG_TEXT_PP(2));
	SPI_connect();
}

/*
 * The role is locked against nothing: if it is dropped meanwhile, the grant is one
 * of a name that is no role, as if it was dropped later.
 */
Datum
zkl_sql_grant(PG_FUNCTION_ARGS)
{
	Datum		values[3];

	begin_statements(fcinfo, values);
	check_role(NameStr(*PG_GETARG_NAME(1)));
	(void) run_statement(INSERT_ROWS, values);
	SPI_finish();
	PG_RETURN_VOID();
}

/* Without grants, a prefix decides nothing: so more may be allowed than before. */
Datum
zkl_sql_revoke(PG_FUNCTION_ARGS)
{
	Datum		values[3];
	bool		any;

	begin_statements(fcinfo, values);
	any = run_statement(DELETE_ROWS, values) > 0;
	if (any && run_statement(SELECT_ROWS, values) == 0)
		ereport(NOTICE,
				(errmsg("prefix \"%s\" has no grants left",
						zkl_text_for_client(TextDatumGetCString(values[0]))),
				 errdetail("The grants for a shorter prefix decide now.  Without any, all roles that can call the functions may use these locks.")));
	SPI_finish();
	PG_RETURN_BOOL(any);
}

/* ---- the trigger ---- */

Datum
zkl_sql_rights_changed(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo))
		elog(ERROR, "zk_rights_changed() was not called by a trigger");
	CacheInvalidateRelcache(trigger->tg_relation);
	return PointerGetDatum(NULL);
}
