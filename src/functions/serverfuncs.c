/*
 * serverfuncs.c
 *	  The set-returning function behind zk_servers: all PostgreSQL servers of the
 *	  fleet.
 *
 * Decides what a role may see of them.  Run by backends.  Takes no locks.  Must
 * not know how a server comes to be in the fleet.
 *
 * The name of a server is in the queue of each lock that it takes.  Where it can
 * be reached, and what identifies it, are only shown to roles that may read all
 * statistics.
 */
#include "postgres.h"

#include "backend/reading.h"
#include "catalog/pg_authid.h"
#include "functions/row.h"
#include "miscadmin.h"
#include "utils/acl.h"

#define SERVERS_COLUMNS	12

ZKL_FUNCTION(zkl_sql_servers);

static void
add_text_if(ZklRow *row, bool shown, const char *text)
{
	zkl_row_utf8_or_null(row, shown ? text : "", strlen(text) + 1);
}

static void
add_int_or_null(ZklRow *row, int32 value)
{
	if (value != 0)
		zkl_row_add(row, Int32GetDatum(value));
	else
		zkl_row_null(row);
}

static void
add_ms_or_null(ZklRow *row, int32 ms)
{
	if (ms != 0)
		zkl_row_interval_ms(row, ms);
	else
		zkl_row_null(row);
}

static void
put_server(void *arg, const ZklFleetServer *server)
{
	const ZklFleetEntry *entry = &server->entry;
	bool		visible = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	ZklRow		row = {0};

	add_text_if(&row, true, entry->server);
	add_text_if(&row, visible, entry->host);
	add_int_or_null(&row, visible ? entry->port : 0);
	if (server->readable)
		zkl_row_add(&row, BoolGetDatum(entry->in_recovery));
	else
		zkl_row_null(&row);
	add_text_if(&row, true, entry->postgresql);
	add_text_if(&row, true, entry->zklock);
	add_int_or_null(&row, entry->protocol);
	add_ms_or_null(&row, entry->asked_ms);
	add_ms_or_null(&row, entry->timeout_ms);
	zkl_row_unix_ms_or_null(&row, entry->since_ms);
	if (visible)
		zkl_row_add(&row, Int64GetDatum((int64) server->system));
	else
		zkl_row_null(&row);
	zkl_row_session_id(&row, visible ? server->session_id : 0);

	Assert(row.n == SERVERS_COLUMNS);
	zkl_row_put(arg, &row);
}

Datum
zkl_sql_servers(PG_FUNCTION_ARGS)
{
	zkl_row_begin_view(fcinfo, "zk_servers");
	zkl_reading_servers(put_server, fcinfo);
	return (Datum) 0;
}
