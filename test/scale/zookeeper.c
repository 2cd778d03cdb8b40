/*
 * zookeeper.c
 *	  One ZooKeeper server in virtual time: the tree is test/model's, the time
 *	  that things take is ours.
 *
 * Owns the tree and the server's one processor.  Requests take a fixed time to
 * arrive, are executed one after the other, each at its cost, and answers take
 * a fixed time back.  Must not know what the servers make of that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agenda.h"
#include "scale.h"

#define DIRECTORIES		SCALE_ROOT "/lock/"

Model		zookeeper;

static double free_at = 0;
static double busy = 0;

void
zookeeper_noticed(ModelConnection *connection)
{
	const Server *s = connection->owner;

	agenda_add(agenda_now + (int64_t) options.latency, AGENDA_DELIVER,
			   s->number);
}

const char *
zookeeper_path(uint32_t name)
{
	static char path[ZKL_MAX_PATH];

	snprintf(path, sizeof(path), DIRECTORIES "%06u", (unsigned) name);
	return path;
}

/* The directories are there already. */
void
zookeeper_begin(void)
{
	uint32_t	i;

	model_start(&zookeeper);
	for (i = 0; i < options.names; i++)
		model_mkdir(&zookeeper, zookeeper_path(i));
	if (options.reap > 0)
		agenda_add(agenda_now, AGENDA_REAP, 0);
}

bool
zookeeper_name(const char *path, uint32_t *name)
{
	size_t		length = strlen(DIRECTORIES);

	if (path == NULL || strncmp(path, DIRECTORIES, length) != 0)
		return false;
	*name = (uint32_t) strtoul(path + length, NULL, 10);
	return true;
}

static double
cost(const ZklAction *action)
{
	switch (action->send)
	{
		case ZKL_SEND_MULTI:
			return options.batch_cost +
				options.operation_cost * (double) (action->nmulti - 1);
		case ZKL_SEND_CREATE_CONTAINER:
		case ZKL_SEND_DELETE:
			return options.batch_cost;
		default:
			return options.read_cost;
	}
}

/* The processor's time for something that comes now */
static void
work(double at, double takes)
{
	free_at = (at > free_at ? at : free_at) + takes;
	busy += takes;
}

void
zookeeper_send(ModelConnection *connection, uint32_t server,
			   const ZklAction *action)
{
	model_send(connection, action);
	work((double) agenda_now + options.latency, cost(action));
	agenda_add((int64_t) free_at, AGENDA_SERVE, server);
}

void
zookeeper_serve(ModelConnection *connection)
{
	Server	   *s = connection->owner;

	if (!model_serve(connection))
		broken("nothing to serve");
	if (connection->watcher.watches > s->most_watches)
		s->most_watches = connection->watcher.watches;
}

/* As ZooKeeper does it: only a container that was in use is deleted. */
void
zookeeper_reap(uint32_t name)
{
	const char *path = zookeeper_path(name);
	const Node *directory = tree_find(path);

	if (directory != NULL && directory->counter > 0 &&
		directory->nchildren == 0)
	{
		work((double) agenda_now, options.batch_cost);
		(void) model_delete(&zookeeper, path);
	}
	agenda_add(agenda_now + (int64_t) (options.reap / options.names),
			   AGENDA_REAP, (name + 1) % options.names);
}

double
zookeeper_busy(void)
{
	return busy;
}

void
zookeeper_check_empty(void)
{
	uint32_t	i;

	for (i = 0; i < options.names; i++)
	{
		const char *path = zookeeper_path(i);
		const Node *directory = tree_find(path);

		if (directory != NULL && directory->nchildren > 0)
			broken("%d znodes are left in %s",
				   directory->nchildren, path);
	}
}
