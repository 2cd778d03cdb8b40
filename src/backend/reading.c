/*
 * reading.c
 *	  Reading many znodes, ZKL_ERRAND_READS at a time: any, the queue of a lock, and
 *	  the servers of the fleet.
 *
 * Owns the errands by which the worker reads.  Run by backends.  Takes no locks;
 * waits as wait.c does.
 *
 * Must not know how the worker reads, nor what is read for.
 *
 * If an answer is too long, or one of the reads ends the connection again and
 * again, each read without an answer is repeated by itself.
 */
#include "postgres.h"

#include "backend/reading.h"
#include "backend/refusal.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* ---- any ---- */

#define FIRST_ROOM	((Size) 4096)	/* for the names in a directory */

typedef struct
{
	ZklErrandKind kind;
	const ZklTarget *directory;
	const char *const *names;
	ZklReadingTaker take;
	void	   *arg;
} Reading;

static void read_part(const Reading *reading, int first, int n, Size room);

static void
give_answer(const Reading *reading, int number, bool alone, Size room,
			ZklErrandAnswer *answer)
{
	bool		cut = answer->size > room && reading->kind == ZKL_ERRAND_LIST;

	if ((cut && answer->size <= ZKL_LONGEST_LISTING) ||
		(answer->rc == ZKL_RC_UNKNOWN && !alone))
	{
		read_part(reading, number, 1, Max(room, answer->size + answer->size / 4));
		return;
	}
	if (cut)
		answer->rc = ZKL_RC_TOO_LONG;
	answer->size = answer->rc == ZKL_RC_OK ? Min(answer->size, room) : 0;
	reading->take(reading->arg, number, answer);
}

/* No segment is left while answers are taken: others may be read then. */
static void
read_part(const Reading *reading, int first, int n, Size room)
{
	Size		stride = zkl_errand_layout_stride(room);
	ZklErrand  *errand = zkl_errand_make_reads(reading->kind, reading->directory,
											   reading->names + first, n, room);
	ZklDeadlines at;
	char	   *answers;
	int			i;

	errand->large = true;
	zkl_errand_begin(&at);
	(void) zkl_errand_try(errand, reading->directory, &at);
	answers = MemoryContextAllocHuge(CurrentMemoryContext, n * stride);
	memcpy(answers, &errand->answer, n * stride);
	zkl_errand_free(errand);
	for (i = 0; i < n; i++)
		give_answer(reading, first + i, n == 1, room,
					(ZklErrandAnswer *) (answers + i * stride));
	pfree(answers);
}

void
zkl_reading_each(ZklErrandKind kind, const ZklTarget *directory,
				 const char *const *names, int n, ZklReadingTaker take, void *arg)
{
	Reading		reading = {kind, directory, names, take, arg};
	MemoryContext old = CurrentMemoryContext;
	MemoryContext moment = AllocSetContextCreate(old, "zklock reading",
												 ALLOCSET_DEFAULT_SIZES);
	int			first;

	MemoryContextSwitchTo(moment);
	for (first = 0; first < n; first += ZKL_ERRAND_READS)
	{
		read_part(&reading, first, Min(n - first, ZKL_ERRAND_READS),
				  kind == ZKL_ERRAND_GET ? ZKL_MAX_NODE_DATA : FIRST_ROOM);
		MemoryContextReset(moment);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(moment);
}

/* Whether a znode is there, readable or not; an error if the answer does not tell. */
static bool
is_there(const ZklTarget *directory, const ZklErrandAnswer *answer)
{
	if (answer->rc != ZKL_RC_OK && answer->rc != ZKL_RC_TOO_LONG &&
		!zkl_zkapi_is_definite(answer->rc))
		zkl_refusal_raise_failed(directory->name, ZKL_ERROR_ZOOKEEPER, answer->rc);
	return answer->rc != ZKL_RC_NONODE;
}

/* ---- the queue of a lock ---- */

static int
compare_entries(const void *a, const void *b)
{
	const ZklQueueEntry *x = a,
			   *y = b;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return (int) x->mode - (int) y->mode;
}

/* In their order; returns room for all of their names. */
static const char **
take_contenders(ZklLockQueue *queue, const ZklTarget *lock, const ZklErrand *listing)
{
	Size		most = (Size) listing->answer.nchildren + 1;
	const char *name = NULL;

	queue->n = 0;
	queue->entries = MemoryContextAllocHuge(CurrentMemoryContext,
											most * sizeof(ZklQueueEntry));
	while ((name = zkl_errand_next(listing, name)) != NULL)
	{
		ZklQueueEntry *entry = &queue->entries[queue->n];

		memset(entry, 0, sizeof(*entry));
		if (!zkl_znode_parse(lock->dialect, name, &entry->mode, &entry->seq,
							 &entry->has_uuid, &entry->uuid))
			continue;
		entry->name = pstrdup(name);
		queue->n++;
	}
	qsort(queue->entries, queue->n, sizeof(ZklQueueEntry), compare_entries);
	return MemoryContextAllocHuge(CurrentMemoryContext, most * sizeof(char *));
}

typedef struct
{
	const ZklTarget *lock;
	ZklLockQueue *queue;
	int			nthere;			/* were not gone when they were read */
	MemoryContext context;		/* of the queue */
} QueueReading;

/* A znode whose data cannot be read stands in the queue all the same. */
static void
take_queued(void *arg, int number, const ZklErrandAnswer *answer)
{
	QueueReading *reading = arg;
	ZklQueueEntry *entry = &reading->queue->entries[reading->nthere];

	if (!is_there(reading->lock, answer))
		return;
	*entry = reading->queue->entries[number];
	entry->data = memcpy(MemoryContextAlloc(reading->context, answer->size + 1),
						 answer->bytes, answer->size);
	entry->length = (uint32) answer->size;
	entry->session_id = answer->stat.session_id;
	entry->ctime_ms = answer->stat.ctime;
	reading->nthere++;
}

void
zkl_reading_listed(const ZklTarget *lock, const ZklErrand *listing,
				   ZklLockQueue *queue)
{
	QueueReading reading = {lock, queue, 0, CurrentMemoryContext};
	const char **names = take_contenders(queue, lock, listing);
	int			i;

	for (i = 0; i < queue->n; i++)
		names[i] = queue->entries[i].name;
	zkl_reading_each(ZKL_ERRAND_GET, lock, names, queue->n, take_queued, &reading);
	queue->n = reading.nthere;
	pfree(names);
}

void
zkl_reading_queue(const ZklTarget *lock, ZklLockQueue *queue)
{
	ZklErrand  *listing = zkl_errand_list(lock, false);

	zkl_reading_listed(lock, listing, queue);
	zkl_errand_free(listing);
}

/* ---- the fleet ---- */

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

	if (!is_there(&fleet, answer))
		return;
	*server = reading->servers[number];
	server->readable = zkl_fleet_read(answer->bytes, answer->size, &server->entry);
	reading->nthere++;
}

void
zkl_reading_servers(void (*fn) (void *arg, const ZklFleetServer *server), void *arg)
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
