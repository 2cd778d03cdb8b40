/*
 * grantfuncs.c
 *	  The SQL-callable functions that write grants: rights by prefix.
 *
 * Owns the statements that change the table of grants, and its trigger.  Run by
 * backends of superusers; the trigger by whatever process changes the table.
 * Takes no locks of its own.
 *
 * Must not know what a privilege allows.
 *
 * The statements name everything with its schema, so that no search_path leads
 * them elsewhere.
 */
#include "postgres.h"

#include "backend/target.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "shared/compat.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/varlena.h"

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
