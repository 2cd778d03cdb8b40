/*
 * versionfuncs.c
 *	  The SQL-callable function that tells the versions of zklock's parts.
 *
 * Owns nothing.  Run by backends.  Takes no locks.
 */
#include "postgres.h"

#include "backend/admission.h"
#include "functions/row.h"
#include "shared/gate.h"
#include "shared/status.h"
#include "wire/version.h"
#include "znode/znode.h"

#define VERSION_COLUMNS	5

ZKL_FUNCTION(zkl_sql_version);

Datum
zkl_sql_version(PG_FUNCTION_ARGS)
{
	ZklScriptAge age;
	char	   *script = zkl_admission_script_version(&age);
	ZklRow		row = {0};
	ZklStatus	status;

	zkl_gate_check();
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
