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
#include "backend/reading.h"
#include "miscadmin.h"

static int
compare_servers(const void *a, const void *b)
{
	const ZklFleetServer *x = a,
			   *y = b;

	if (x->system != y->system)
		return x->system < y->system ? -1 : 1;
	return x->session_id < y->session_id ? -1 : x->session_id > y->session_id;
}

static const ZklTarget fleet = {ZKL_FLEET_DIRECTORY, ZKL_FLEET_DIRECTORY, ZKL_DIALECT_CURATOR_RW};

typedef struct
{
	ZklFleetServer *servers;
	int			nthere;			/* were not gone when they were read */
} FleetReading;

static void
take_server(void *arg, int number, const ZklErrandAnswer *answer)
{
	FleetReading *reading = arg;
	ZklFleetServer *server = &reading->servers[reading->nthere];

	zkl_reading_check(&fleet, answer);
	if (answer->rc == ZKL_RC_NONODE)
		return;
	*server = reading->servers[number];
	server->readable = zkl_fleet_read(answer->bytes, answer->size, &server->entry);
	reading->nthere++;
}

void
zkl_fleet_servers_each(void (*fn) (void *arg, const ZklFleetServer *server), void *arg)
{
	ZklErrand  *listing = zkl_errand_list(&fleet, false);
	Size		most = (Size) listing->answer.nchildren + 1;
	FleetReading reading = {palloc0(most * sizeof(ZklFleetServer))};
	const char **names = palloc(most * sizeof(char *));
	const char *name = NULL;
	int			n = 0;
	int			i;

	while ((name = zkl_errand_next(listing, name)) != NULL)
	{
		if (zkl_fleet_read_name(name, &reading.servers[n].system,
								&reading.servers[n].session_id))
			names[n++] = pstrdup(name);
	}
	zkl_errand_free(listing);
	zkl_reading_each(ZKL_ERRAND_GET, &fleet, names, n, take_server, &reading);
	qsort(reading.servers, reading.nthere, sizeof(ZklFleetServer), compare_servers);
	for (i = 0; i < reading.nthere; i++)
	{
		CHECK_FOR_INTERRUPTS();
		fn(arg, &reading.servers[i]);
	}
}
