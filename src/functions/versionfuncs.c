/*
 * versionfuncs.c
 *	  The SQL-callable function that tells the versions of zklock's parts.
 *
 * Owns nothing.  Run by backends.  Takes no locks but, through status.h, the one
 * of the worker's status.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_proc.h"
#include "functions/row.h"
#include "shared/loaded.h"
#include "shared/status.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "wire/version.h"
#include "znode/znode.h"

#define VERSION_COLUMNS	5

ZKL_FUNCTION(zkl_sql_version);

/* The version of the extension that a function belongs to; NULL: of none */
static char *
script_version(Oid function)
{
	Oid			extension = getExtensionOfObject(ProcedureRelationId, function);
	Relation	catalog = table_open(ExtensionRelationId, AccessShareLock);
	char	   *version = NULL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_extension_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(extension));
	scan = systable_beginscan(catalog, ExtensionOidIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		bool		isnull;
		Datum		value = heap_getattr(tuple, Anum_pg_extension_extversion,
										 RelationGetDescr(catalog), &isnull);

		version = isnull ? NULL : TextDatumGetCString(value);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return version;
}

Datum
zkl_sql_version(PG_FUNCTION_ARGS)
{
	char	   *script = script_version(fcinfo->flinfo->fn_oid);
	ZklRow		row = {0};
	ZklStatus	status;

	zkl_loaded_check();
	InitMaterializedSRF(fcinfo, 0);
	zkl_status_copy(&status);
	zkl_row_text(&row, ZKL_VERSION);
	zkl_row_utf8_or_null(&row, script ? script : "", script ? strlen(script) : 1);
	zkl_row_utf8_or_null(&row, status.session_version,
						 sizeof(status.session_version));
	zkl_row_pid_or_null(&row, (int) status.link_protocol);
	zkl_row_add(&row, Int32GetDatum(ZKL_ZNODE_PROTOCOL));

	Assert(row.n == VERSION_COLUMNS);
	zkl_row_put(fcinfo, &row);
	return (Datum) 0;
}
