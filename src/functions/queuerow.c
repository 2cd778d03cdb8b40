/*
 * queuerow.c
 *	  Rows of zk_queue() and zk_fleet_locks(): a client that holds or awaits a lock,
 *	  and what its znode tells of it.
 *
 * Owns the order of their columns, and the rule what a hidden row shows.  Run by
 * backends.  Takes no locks.  Must not know which queue a znode is in.
 *
 * A row that a role may not see shows neither which lock it is nor whose session:
 * the one would tell the other.  Server, mode and times stay, as in pg_locks.
 */
#include "postgres.h"

#include <arpa/inet.h>
#include <ctype.h>

#include "backend/errand.h"
#include "backend/target.h"
#include "catalog/pg_authid.h"
#include "functions/queuerow.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "shared/settings.h"
#include "utils/acl.h"
#include "utils/builtins.h"

#define MAX_FOREIGN_DATA	255 /* longer data is not shown */

/* ---- what a znode tells ---- */

/*
 * If the lock may be cached, the znode is made for the first of several sessions,
 * and the holder may be another one by now, or none.
 */
static void
hide_session(ZklNodeData *data)
{
	char		server[sizeof(data->server)];

	memcpy(server, data->server, sizeof(server));
	memset(data, 0, sizeof(*data));
	memcpy(data->server, server, sizeof(server));
	data->cached = true;
}

/* Whether data of another client is a short printable text */
static bool
is_short_text(const char *data, uint32 length)
{
	uint32		at = 0;

	if (length == 0 || length > MAX_FOREIGN_DATA)
		return false;
	while (at < length)
	{
		int			bytes = pg_encoding_verifymbchar(PG_UTF8, data + at,
													 (int) (length - at));

		if (bytes < 1 || (bytes == 1 && !isprint((unsigned char) data[at])))
			return false;
		at += bytes;
	}
	return true;
}

void
zkl_queuerow_add_server(ZklRow *row, const char *text, uint32 length,
						ZklNodeData *data, bool visible)
{
	bool		ours = zkl_node_data_parse(text, length, data);

	if (data->cached)
		hide_session(data);
	if (ours)
		zkl_row_utf8_or_null(row, data->server, sizeof(data->server));
	else if (visible && is_short_text(text, length))
		zkl_row_text(row, zkl_text_to_display(text, (int) length));
	else
		zkl_row_null(row);
}

/* ---- rows ---- */

#define QUEUE_COLUMNS	20

static void
remember_server(void *arg, const ZklFleetServer *server)
{
	ZklQueueRows *rows = arg;

	rows->servers = lappend(rows->servers, unconstify(ZklFleetServer *, server));
}

void
zkl_queuerow_begin(ZklQueueRows *rows, FunctionCallInfo fcinfo)
{
	rows->fcinfo = fcinfo;
	rows->stats = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	rows->servers = NIL;
	rows->read = false;
	rows->context = CurrentMemoryContext;
	InitMaterializedSRF(fcinfo, 0);
}

static void
add_nulls(ZklRow *row, int n)
{
	while (n-- > 0)
		zkl_row_null(row);
}

/* The caller's memory may be gone before the next row comes. */
static void
read_servers(ZklQueueRows *rows)
{
	MemoryContext old = MemoryContextSwitchTo(rows->context);

	zkl_errand_read_servers(remember_server, rows);
	MemoryContextSwitchTo(old);
	rows->read = true;
}

static void
add_server_host(ZklRow *row, ZklQueueRows *rows, int64 session_id)
{
	ListCell   *cell;

	if (rows->stats && !rows->read)
		read_servers(rows);
	foreach(cell, rows->servers)
	{
		const ZklFleetServer *server = lfirst(cell);

		if (server->session_id == session_id && session_id != 0)
		{
			zkl_row_utf8_or_null(row, server->entry.host,
								 sizeof(server->entry.host));
			return;
		}
	}
	zkl_row_null(row);
}

/* Another client may have written anything. */
static void
add_address(ZklRow *row, const char *address)
{
	unsigned char bytes[sizeof(struct in6_addr)];

	if (inet_pton(AF_INET, address, bytes) == 1 ||
		inet_pton(AF_INET6, address, bytes) == 1)
		zkl_row_add(row, DirectFunctionCall1(inet_in, CStringGetDatum(address)));
	else
		zkl_row_null(row);
}

/* Columns pid to backend_start */
static void
add_session_of(ZklRow *row, const ZklNodeData *data)
{
	zkl_row_int_or_null(row, data->pid);
	zkl_row_utf8_or_null(row, data->database, sizeof(data->database));
	zkl_row_utf8_or_null(row, data->usename, sizeof(data->usename));
	zkl_row_utf8_or_null(row, data->application_name,
						 sizeof(data->application_name));
	add_address(row, data->client);
	zkl_row_unix_ms_or_null(row, data->backend_start);
}

/*
 * Columns requested_at to held_until.  Of other clients, only ZooKeeper knows when
 * they came.  Numbers that another client has made up are none.
 */
static void
add_times(ZklRow *row, const ZklQueueRow *r, const ZklNodeData *data)
{
	bool		ours = data->since > 0 && data->since < END_TIMESTAMP / 1000;
	int64		granted = r->granted_ms;
	int64		until = r->until_ms;

	if (granted == 0 && ours && r->granted &&
		data->waited_ms < END_TIMESTAMP / 1000)
		granted = data->since + data->waited_ms;
	if (until == 0 && granted != 0 && data->at_most_ms > 0 &&
		data->at_most_ms < END_TIMESTAMP / 1000)
		until = granted + data->at_most_ms;
	zkl_row_unix_ms_or_null(row, ours ? data->since : data->cached ? 0 : r->ctime_ms);
	zkl_row_unix_ms_or_null(row, granted);
	zkl_row_unix_ms_or_null(row, until);
}

static void
add_path(ZklRow *row, const ZklQueueRow *r)
{
	if (!r->visible)
		zkl_row_null(row);
	else if (r->path_length == 0)
		zkl_row_text(row, "/");
	else
		zkl_row_utf8(row, r->path, (size_t) r->path_length);
}

static void
add_znode(ZklRow *row, const ZklQueueRow *r)
{
	char	   *znode;

	if (!r->visible)
	{
		zkl_row_null(row);
		return;
	}
	znode = psprintf("%s%s/%s", zkl_root, r->directory, r->name);
	zkl_row_utf8(row, znode, strlen(znode));
}

/*
 * A reservation belongs to a role, and to the client that made it: their session may have
 * ended, and its process number be another one's.
 */
static void
add_contender(ZklRow *row, ZklQueueRows *rows, const ZklQueueRow *r)
{
	ZklNodeData data;
	ZklNodeData nobody;
	bool		reserved;

	memset(&nobody, 0, sizeof(nobody));
	zkl_row_add(row, Int32GetDatum(r->position));
	zkl_row_bool(row, r->granted);
	zkl_row_text(row, r->mode);
	zkl_queuerow_add_server(row, r->data == NULL ? "" : r->data, r->length, &data,
							r->visible);
	add_server_host(row, rows, r->session_id);
	reserved = strcmp(data.lifetime, "reservation") == 0;
	if (reserved)
		data.pid = data.backend_start = 0;
	add_session_of(row, r->visible && (!r->kept || reserved) ? &data : &nobody);
	add_times(row, r, &data);
	zkl_row_text(row, r->dialect);
	zkl_row_bool(row, r->cached || data.cached);
	add_znode(row, r);
	zkl_row_session_id(row, r->visible ? r->session_id : 0);
}

void
zkl_queuerow_put(ZklQueueRows *rows, const ZklQueueRow *r)
{
	ZklRow		row = {0};

	add_path(&row, r);
	if (r->name == NULL)
		add_nulls(&row, QUEUE_COLUMNS - 2);
	else
		add_contender(&row, rows, r);
	zkl_row_text_or_null(&row, r->error == NULL ? "" : r->error);

	Assert(row.n == QUEUE_COLUMNS);
	zkl_row_put(rows->fcinfo, &row);
}
