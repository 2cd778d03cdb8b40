/*
 * fleet_servers.c
 *	  Reading the directory of the fleet.
 *
 * Owns nothing.  Run by backends.  Takes no locks; waits as wait.c does.
 *
 * Must not know how the worker reads it, nor what the entries are for.
 */
#include "postgres.h"

#include "backend/fleet_servers.h"
#include "backend/long_answer.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"

static void
fleet_context(void *name)
{
	errcontext("while waiting for the list of servers");
}

static int
compare_servers(const ListCell *a, const ListCell *b)
{
	const ZklFleetServer *x = lfirst(a),
			   *y = lfirst(b);

	if (x->system != y->system)
		return x->system < y->system ? -1 : 1;
	return x->session_id < y->session_id ? -1 : x->session_id > y->session_id;
}

static ZklFleetServer *
read_server(const ZklZnodeEntry *entry)
{
	ZklFleetServer *server = palloc0(sizeof(ZklFleetServer));

	if (!zkl_fleet_read_name(pnstrdup(entry->name, entry->name_length),
							 &server->system, &server->session_id))
		return NULL;
	server->readable = zkl_fleet_read(entry->data, entry->data_length,
									  &server->entry);
	return server;
}

void
zkl_fleet_servers_each(void (*fn) (void *arg, const ZklFleetServer *server), void *arg)
{
	ZklTarget	fleet = {ZKL_FLEET_DIRECTORY, ZKL_FLEET_DIRECTORY, ZKL_DIALECT_CURATOR_RW};
	List	   *servers = NIL;
	ListCell   *cell;
	ZklEntries	list;
	ZklZnodeEntry entry;
	Size		needed;
	dsm_segment *segment = zkl_long_answer_read(&fleet, ZKL_KIND_FLEET,
												fleet_context, &list, &needed);

	if (segment == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("list of servers is too long to be shown"),
				 errdetail("It takes %zu bytes; the limit is %zu bytes.",
						   needed, ZKL_LONG_ANSWER_MAX)));
	while (zkl_entries_next(&list, &entry))
	{
		ZklFleetServer *server = read_server(&entry);

		CHECK_FOR_INTERRUPTS();
		if (server != NULL)
			servers = lappend(servers, server);
	}
	dsm_detach(segment);
	list_sort(servers, compare_servers);
	foreach(cell, servers)
		fn(arg, lfirst(cell));
}
