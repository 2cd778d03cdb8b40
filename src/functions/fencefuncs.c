/*
 * fencefuncs.c
 *	  The SQL-callable functions that refuse stale fencing tokens.
 *
 * Owns the statements that change the table of fences.  Run by backends, of any
 * database that has the extension: neither the worker nor ZooKeeper is needed.  Takes
 * no locks but that of the name's row, until the transaction ends.
 *
 * Must not know what a token is for, nor who holds a lock.
 *
 * The caller has no right to the table, so the statements run as its owner, as those
 * of foreign keys do (ri_PerformCheck in ri_triggers.c).  They name everything with its
 * schema.
 */
#include "postgres.h"

#include "backend/rights.h"
#include "backend/target.h"
#include "backend/text.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "shared/compat.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/rel.h"

#define ERRCODE_STALE_FENCING_TOKEN	MAKE_SQLSTATE('Z', 'K', '0', '0', '1')
#define TOKEN_SETTING	"zklock.fencing_token"

ZKL_FUNCTION(zkl_sql_fence);
ZKL_FUNCTION(zkl_sql_fence_reset);
ZKL_FUNCTION(zkl_sql_fence_trigger);

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
read_trigger_name(const TriggerData * trigger)
{
	char	   *name;
	Oid			user;
	int			context;

	if (trigger->tg_trigger->tgnargs != 1)
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("zk_fence_trigger() needs one argument, the name of a fence")));
	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(trigger->tg_relation->rd_rel->relowner,
						   context | SECURITY_LOCAL_USERID_CHANGE);
	name = read_fence_name(cstring_to_text(trigger->tg_trigger->tgargs[0]), ZKL_MAY_FENCE);
	SetUserIdAndSecContext(user, context);
	return name;
}

Datum
zkl_sql_fence_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	int64		token;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("zk_fence_trigger() must be called as a trigger")));
	token = read_setting();
	check_token(token);
	(void) change_fence(read_trigger_name(trigger), token, pass);
	if (!TRIGGER_FIRED_FOR_ROW(trigger->tg_event))
		return PointerGetDatum(NULL);
	return PointerGetDatum(TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ?
						   trigger->tg_newtuple : trigger->tg_trigtuple);
}
