/*
 * fencefuncs.c
 *	  The SQL-callable functions that refuse stale fencing tokens.
 *
 * Owns the statements that change the table of fences, and those that fence a table.  Run
 * by backends, of any database that has the extension: neither the worker nor ZooKeeper is
 * needed.  Takes no locks but that of the name's row, until the transaction ends, and those
 * of CREATE TRIGGER.
 *
 * Must not know what a token is for, nor who holds a lock.
 *
 * Where no library can be loaded, sql/zklock_fence--1.0.sql has the same functions in SQL.
 * There a function runs either as its caller or as its owner; here rights by prefix are
 * the caller's, and the rows the owner's.
 *
 * The caller has no right to the table, so the statements run as its owner, as those
 * of foreign keys do (ri_PerformCheck in ri_triggers.c).  They name everything with its
 * schema.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "backend/target.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "shared/compat.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#define ERRCODE_STALE_FENCING_TOKEN	MAKE_SQLSTATE('Z', 'K', '0', '0', '1')
#define TOKEN_SETTING	"zklock.fencing_token"

ZKL_FUNCTION(zkl_sql_fence);
ZKL_FUNCTION(zkl_sql_fence_reset);
ZKL_FUNCTION(zkl_sql_fence_trigger);
ZKL_FUNCTION(zkl_sql_fence_table);

/* ---- statements ---- */

/*
 * Locks the row of the name, whether the token is higher or not: so the statement
 * behind it reads what counts.
 */
#define PASS_ROW \
	"INSERT INTO %s AS f (name, token) VALUES ($1, $2)" \
	" ON CONFLICT (name) DO UPDATE SET token = excluded.token, at = excluded.at" \
	" WHERE f.token OPERATOR(pg_catalog.<) excluded.token"
#define READ_ROW \
	"SELECT token, at::pg_catalog.text FROM %s WHERE name OPERATOR(pg_catalog.=) $1"
#define RESET_ROW \
	"INSERT INTO %s AS f (name, token) VALUES ($1, $2)" \
	" ON CONFLICT (name) DO UPDATE SET token = excluded.token, at = excluded.at" \
	" RETURNING xmax OPERATOR(pg_catalog.<>) '0'"

/* With the name and the token as its parameters.  Returns how many rows there were. */
static uint64
run_fence_statement(const char *format, const char *table, Datum *values)
{
	Oid			types[] = {TEXTOID, INT8OID};
	char	   *sql = psprintf(format, table);
	int			rc = SPI_execute_with_args(sql, lengthof(types), types, values,
										   NULL, false, 0);

	if (rc < 0)
		elog(ERROR, "could not run \"%s\": %s", sql, SPI_result_code_string(rc));
	return SPI_processed;
}

/* Error ZK001 unless the token in the row is this one */
static void
check_passed(const char *table, Datum *values, const char *name)
{
	int64		passed;
	bool		isnull;

	if (run_fence_statement(READ_ROW, table, values) == 0)
		elog(ERROR, "the row of fence \"%s\" is gone", name);
	passed = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0],
										 SPI_tuptable->tupdesc, 1, &isnull));
	if (passed > DatumGetInt64(values[1]))
		ereport(ERROR,
				(errcode(ERRCODE_STALE_FENCING_TOKEN),
				 errmsg("stale fencing token"),
				 errdetail("Token %lld for \"%s\" is lower than token %lld, which passed at %s.",
						   (long long) DatumGetInt64(values[1]), zkl_text_for_client(name),
						   (long long) passed,
						   SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2)),
				 errhint("Another session has got the lock since.  Do not repeat the work.")));
}

static bool
pass(const char *table, Datum *values, const char *name)
{
	if (run_fence_statement(PASS_ROW, table, values) == 0)
		check_passed(table, values, name);
	return true;
}

/* Whether there was such a row */
static bool
reset(const char *table, Datum *values, const char *name)
{
	bool		isnull;

	(void) run_fence_statement(RESET_ROW, table, values);
	return DatumGetBool(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc,
									  1, &isnull));
}

/* ---- what has passed ---- */

/*
 * The last token that a trigger has passed.  It need not pass again while the
 * subtransaction lasts: that has locked the name's row, so only this session can pass a
 * higher one, which forgets this.  A trigger of rows fires for each of many.
 */
static struct
{
	FullTransactionId xid;
	SubTransactionId subid;
	Oid			owner;			/* of the trigger's table */
	int64		token;
	char		name[ZKL_MAX_NAME + 1]; /* as the trigger has it */
}			passed;

static bool
is_passed(Oid owner, const char *name, int64 token)
{
	FullTransactionId xid = GetTopFullTransactionIdIfAny();

	return FullTransactionIdIsValid(xid) && FullTransactionIdEquals(xid, passed.xid) &&
		passed.subid == GetCurrentSubTransactionId() && passed.owner == owner &&
		passed.token == token && strcmp(passed.name, name) == 0;
}

static void
note_passed(Oid owner, const char *name, int64 token)
{
	if (strlcpy(passed.name, name, sizeof(passed.name)) >= sizeof(passed.name))
		return;
	passed.xid = GetTopFullTransactionIdIfAny();
	passed.subid = GetCurrentSubTransactionId();
	passed.owner = owner;
	passed.token = token;
}

/* ---- changes ---- */

/* Runs such a step as the owner of the table.  An error ends the transaction's role, too. */
static bool
change_fence(const char *name, int64 token,
			 bool (*step) (const char *table, Datum *values, const char *name))
{
	Datum		values[2] = {CStringGetTextDatum(name), Int64GetDatum(token)};
	Oid			owner;
	Oid			user;
	int			context;
	char	   *table;
	bool		done;

	passed.xid = InvalidFullTransactionId;
	SPI_connect();
	table = zkl_rights_qualified_table(ZKL_FENCES_TABLE, &owner);
	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(owner, context | SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_NOFORCE_RLS);
	done = step(table, values, name);
	SetUserIdAndSecContext(user, context);
	SPI_finish();
	return done;
}

/* ---- arguments: name, token ---- */

/* A fence has the name of a lock, and a right to it is one to that name. */
static char *
read_fence_name(text *argument, ZklPrivileges needed)
{
	char	   *name = text_to_cstring(argument);
	char	   *path = zkl_text_name_to_utf8(name, (int) strlen(name));

	zkl_rights_check(path, name, needed);
	return name;
}

static void
check_token(int64 token)
{
	if (token <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("fencing token must be positive")));
}

Datum
zkl_sql_fence(PG_FUNCTION_ARGS)
{
	char	   *name;

	zkl_target_need(fcinfo, 0, "name of a fence");
	zkl_target_need(fcinfo, 1, "fencing token");
	name = read_fence_name(PG_GETARG_TEXT_PP(0), ZKL_MAY_FENCE);
	check_token(PG_GETARG_INT64(1));
	(void) change_fence(name, PG_GETARG_INT64(1), pass);
	PG_RETURN_VOID();
}

/* 0: any token passes next. */
Datum
zkl_sql_fence_reset(PG_FUNCTION_ARGS)
{
	char	   *name;

	zkl_target_need(fcinfo, 0, "name of a fence");
	zkl_target_need(fcinfo, 1, "fencing token");
	zkl_rights_check_superuser("must be superuser to reset a fence");
	name = read_fence_name(PG_GETARG_TEXT_PP(0), ZKL_NEEDS_NOTHING);
	if (PG_GETARG_INT64(1) != 0)
		check_token(PG_GETARG_INT64(1));
	PG_RETURN_BOOL(change_fence(name, PG_GETARG_INT64(1), reset));
}

/* ---- the trigger ---- */

static int64
read_setting(void)
{
	const char *value = GetConfigOption(TOKEN_SETTING, true, false);

	if (value == NULL || value[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("\"%s\" is not set", TOKEN_SETTING),
				 errhint("Set it to the fencing token of the lock, with SET LOCAL.")));
	return DatumGetInt64(DirectFunctionCall1(int8in, CStringGetDatum(value)));
}

/* Who owns the table decides which names its triggers fence. */
static char *
read_name_as(Oid owner, text *argument)
{
	char	   *name;
	Oid			user;
	int			context;

	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(owner, context | SECURITY_LOCAL_USERID_CHANGE);
	name = read_fence_name(argument, ZKL_MAY_FENCE);
	SetUserIdAndSecContext(user, context);
	return name;
}

static char *
trigger_argument(const TriggerData * trigger)
{
	if (trigger->tg_trigger->tgnargs != 1)
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("zk_fence_trigger() needs one argument, the name of a fence")));
	return trigger->tg_trigger->tgargs[0];
}

/* That the transaction's token has passed, or must pass now */
static void
pass_trigger(const char *argument, Oid owner, int64 token)
{
	if (is_passed(owner, argument, token))
		return;
	check_token(token);
	(void) change_fence(read_name_as(owner, cstring_to_text(argument)), token, pass);
	note_passed(owner, argument, token);
}

Datum
zkl_sql_fence_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("zk_fence_trigger() must be called as a trigger")));
	pass_trigger(trigger_argument(trigger), trigger->tg_relation->rd_rel->relowner,
				 read_setting());
	if (!TRIGGER_FIRED_FOR_ROW(trigger->tg_event))
		return PointerGetDatum(NULL);
	return PointerGetDatum(TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ?
						   trigger->tg_newtuple : trigger->tg_trigtuple);
}

/* ---- a table ---- */

/* With the name of the table, and an argument that names the fence */
#define FENCE_STATEMENTS \
	"CREATE OR REPLACE TRIGGER zk_fence BEFORE INSERT OR UPDATE OR DELETE%s ON %s" \
	" FOR EACH STATEMENT EXECUTE FUNCTION %s(%s)"
#define FENCE_ROWS \
	"CREATE OR REPLACE TRIGGER zk_fence_rows BEFORE INSERT OR UPDATE OR DELETE ON %s" \
	" FOR EACH ROW EXECUTE FUNCTION %s(%s)"

static char *
qualified_name(Oid schema, const char *name)
{
	return quote_qualified_identifier(get_namespace_name(schema), name);
}

static void
create_trigger(const char *sql)
{
	int			rc = SPI_execute(sql, false, 0);

	if (rc != SPI_OK_UTILITY)
		elog(ERROR, "could not run \"%s\": %s", sql, SPI_result_code_string(rc));
}

/*
 * A trigger of statements comes before the first row is locked, so that a writer waits for
 * the fence first.  Partitions that come later have only what PostgreSQL copies to them: a
 * trigger of rows.
 */
static void
fence_one(Oid table, bool is_first, const char *function, const char *argument)
{
	char	   *name = qualified_name(get_rel_namespace(table), get_rel_name(table));
	char		kind = get_rel_relkind(table);
	bool		truncates = kind != RELKIND_FOREIGN_TABLE || ZKL_FOREIGN_TRUNCATE_TRIGGERS;

	create_trigger(psprintf(FENCE_STATEMENTS, truncates ? " OR TRUNCATE" : "", name,
							function, argument));
	if (is_first && kind == RELKIND_PARTITIONED_TABLE)
		create_trigger(psprintf(FENCE_ROWS, name, function, argument));
}

/*
 * The table's own triggers come first: with them it is locked, and no further table
 * becomes a partition of it, or inherits from it.
 */
static int
fence_tree(Oid table, const char *function, const char *argument)
{
	List	   *tables;
	ListCell   *cell;

	fence_one(table, true, function, argument);
	tables = find_all_inheritors(table, ShareRowExclusiveLock, NULL);
	foreach(cell, tables)
	{
		CHECK_FOR_INTERRUPTS();
		if (lfirst_oid(cell) != table)
			fence_one(lfirst_oid(cell), false, function, argument);
	}
	return list_length(tables);
}

static Oid
owner_of(Oid table)
{
	Relation	relation = relation_open(table, AccessShareLock);
	Oid			owner = relation->rd_rel->relowner;

	relation_close(relation, NoLock);
	return owner;
}

/* (table, name) */
Datum
zkl_sql_fence_table(PG_FUNCTION_ARGS)
{
	char	   *function = qualified_name(get_func_namespace(fcinfo->flinfo->fn_oid),
										  "zk_fence_trigger");
	Oid			table;
	char	   *name;
	int			n;

	zkl_target_need(fcinfo, 0, "table");
	zkl_target_need(fcinfo, 1, "name of a fence");
	table = PG_GETARG_OID(0);
	name = read_name_as(owner_of(table), PG_GETARG_TEXT_PP(1));
	SPI_connect();
	n = fence_tree(table, function, quote_literal_cstr(name));
	SPI_finish();
	PG_RETURN_INT32(n);
}
