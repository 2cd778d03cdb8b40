/*
 * errand.c
 *	  Errands: operations on znodes that the worker carries out for a backend; and
 *	  reading many znodes, ZKL_ERRAND_READS at a time.
 *
 * Owns the DSM segments of errands.  Run by backends.  Takes no locks; waits as
 * wait.c does.
 *
 * Must not know what an errand is for, nor how the worker does it.
 *
 * If an answer to one of many reads is too long, or one of them ends the connection
 * again and again, each read without an answer is repeated by itself.
 */
#include "postgres.h"

#include "access/xact.h"
#include "backend/errand.h"
#include "backend/refusal.h"
#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/errand_layout.h"
#include "shared/settings.h"
#include "shared/status.h"
#include "utils/memutils.h"

/* ---- errands ---- */

#define FIRST_ROOM		((Size) 16384)	/* for the names of a directory */

static void
errand_context(void *name)
{
	errcontext("while waiting for ZooKeeper's answer about \"%s\"",
			   (char *) name);
}

/*
 * An errand in a segment of its own; GET, LIST or RIGHTS: of up to ZKL_ERRAND_READS children,
 * with room for so many bytes of each
 */
static ZklErrand *
make_reads(ZklErrandKind kind, const ZklTarget *target,
		   const char *const *children, int n, Size room)
{
	StringInfoData paths;
	dsm_segment *segment;
	ZklErrand  *errand;
	int			i;

	initStringInfo(&paths);
	for (i = 0; i < n; i++)
	{
		const char *child = children[i];

		appendStringInfo(&paths, "%s%s%s%s", zkl_root, target->path,
						 child ? "/" : "", child ? child : "");
		appendStringInfoChar(&paths, '\0');
	}
	segment = dsm_create(zkl_errand_layout_size(n, room, paths.len), 0);
	errand = dsm_segment_address(segment);
	memset(errand, 0, offsetof(ZklErrand, answer));
	errand->kind = kind;
	errand->handle = dsm_segment_handle(segment);
	errand->n = (uint32) n;
	errand->version = -1;
	errand->room = room;
	errand->paths_size = (Size) paths.len;
	memcpy(zkl_errand_layout_paths(errand), paths.data, paths.len);
	pfree(paths.data);
	return errand;
}

ZklErrand *
zkl_errand_make(ZklErrandKind kind, const ZklTarget *target, const char *child,
				Size room)
{
	return make_reads(kind, target, &child, 1, room);
}

void
zkl_errand_free(ZklErrand *errand)
{
	dsm_detach(dsm_find_mapping(errand->handle));
}

/*
 * If it is not known what became of a write, its caller will look or write again:
 * after a pause, and not without end in one statement.
 */
static void
pause_unknown(const ZklErrand *errand, const ZklTarget *target)
{
	static TimestampTz statement = 0;
	static ZklRetry retry;

	if (statement != GetCurrentStatementStartTimestamp() ||
		errand->answer.rc != ZKL_RC_UNKNOWN)
		zkl_retry_reset(&retry);
	statement = GetCurrentStatementStartTimestamp();
	if (errand->answer.rc != ZKL_RC_UNKNOWN)
		return;
	if (!zkl_retry_later(&retry, zkl_boottime_us()))
		zkl_refusal_raise_failed(target->name, ZKL_ERROR_ZOOKEEPER, ZKL_RC_UNKNOWN);
	zkl_wait_sleep_until(retry.due);
}

int32
zkl_errand_try(ZklErrand *errand, const ZklTarget *target, ZklDeadlines *at)
{
	ZklQuestion question = {
		.kind = ZKL_KIND_ERRAND,
		.segment = errand->handle,
		.awaits = errand->kind == ZKL_ERRAND_AWAIT
	};
	ZklSlot		answer;
	uint32		i;

	for (i = 0; i < errand->n; i++)
	{
		ZklErrandAnswer *unknown = zkl_errand_layout_answer(errand, i);

		memset(unknown, 0, offsetof(ZklErrandAnswer, bytes));
		unknown->rc = ZKL_RC_UNKNOWN;
	}
	zkl_wait_for_answer(target, &question, errand_context, at, &answer);
	if (answer.s_state == ZKL_SLOT_FAILED)
		zkl_refusal_raise_failed(target->name, answer.s_answer.error,
								 answer.s_answer.zkrc);
	return errand->answer.rc;
}

/* The worker has repeated a read as often as makes sense. */
static int32
run_errand(ZklErrand *errand, const ZklTarget *target, ZklDeadlines *at)
{
	(void) zkl_errand_try(errand, target, at);
	if (zkl_errand_layout_is_write(errand))
		pause_unknown(errand, target);
	else if (errand->answer.rc == ZKL_RC_UNKNOWN)
		zkl_refusal_raise_failed(target->name, ZKL_ERROR_ZOOKEEPER, ZKL_RC_UNKNOWN);
	return errand->answer.rc;
}

void
zkl_errand_begin(ZklDeadlines *at)
{
	zkl_wait_begin_answer(at, ZKL_FOREVER, zkl_status_answer_timeout_ms(), false);
}

int32
zkl_errand_run(ZklErrand *errand, const ZklTarget *target)
{
	ZklDeadlines at;

	zkl_errand_begin(&at);
	return run_errand(errand, target, &at);
}

int32
zkl_errand_await(ZklErrand *errand, const ZklTarget *target, int64 timeout_ms,
				 bool takes)
{
	ZklDeadlines at;

	zkl_wait_begin_answer(&at, timeout_ms,
						  timeout_ms > ZKL_FOREVER - zkl_status_answer_timeout_ms() ?
						  ZKL_FOREVER : timeout_ms + zkl_status_answer_timeout_ms(),
						  true);
	at.takes = takes;
	if (at.lock_timeout != ZKL_NEVER)
		at.lock_timeout = zkl_wait_after_ms(at.time_out, ZKL_AHEAD_WAIT_MS);
	return run_errand(errand, target, &at);
}

int32
zkl_errand_run_within(ZklErrand *errand, const ZklTarget *target,
					  const ZklDeadlines *at)
{
	ZklDeadlines part = *at;

	part.time_out = part.look = ZKL_NEVER;
	return run_errand(errand, target, &part);
}

ZklErrand *
zkl_errand_list(const ZklTarget *directory, bool sync)
{
	Size		room = FIRST_ROOM;

	for (;;)
	{
		ZklErrand  *errand = zkl_errand_make(ZKL_ERRAND_LIST, directory, NULL,
											 room);
		int32		rc;

		errand->large = true;
		errand->sync = sync;
		rc = zkl_errand_run(errand, directory);
		if (rc != ZKL_RC_OK && rc != ZKL_RC_NONODE)
			zkl_refusal_raise_failed(directory->name, ZKL_ERROR_ZOOKEEPER, rc);
		if (errand->answer.size <= room)
			return errand;
		if (errand->answer.size > ZKL_LONGEST_LISTING)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("list of the znodes below \"%s\" is too long to be read",
							directory->name),
					 errdetail("It takes %zu bytes; the limit is %zu bytes.",
							   errand->answer.size, ZKL_LONGEST_LISTING)));
		room = errand->answer.size + errand->answer.size / 4;
		zkl_errand_free(errand);
	}
}

const char *
zkl_errand_next(const ZklErrand *listing, const char *name)
{
	const ZklErrandAnswer *answer = &listing->answer;

	name = name == NULL ? answer->bytes : name + strlen(name) + 1;
	return name < answer->bytes + answer->size ? name : NULL;
}

/* ---- many reads ---- */

#define LEAST_ROOM	((Size) 4096)	/* for the names in a directory, or rights */

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
	bool		cut = answer->size > room && reading->kind != ZKL_ERRAND_GET;

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
	ZklErrand  *errand = make_reads(reading->kind, reading->directory,
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
zkl_errand_read_each(ZklErrandKind kind, const ZklTarget *directory,
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
				  kind == ZKL_ERRAND_GET ? ZKL_MAX_NODE_DATA : LEAST_ROOM);
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
zkl_errand_read_listed(const ZklTarget *lock, const ZklErrand *listing,
					   ZklLockQueue *queue)
{
	QueueReading reading = {lock, queue, 0, CurrentMemoryContext};
	const char **names = take_contenders(queue, lock, listing);
	int			i;

	for (i = 0; i < queue->n; i++)
		names[i] = queue->entries[i].name;
	zkl_errand_read_each(ZKL_ERRAND_GET, lock, names, queue->n, take_queued, &reading);
	queue->n = reading.nthere;
	pfree(names);
}

void
zkl_errand_read_queue(const ZklTarget *lock, ZklLockQueue *queue)
{
	ZklErrand  *listing = zkl_errand_list(lock, false);

	zkl_errand_read_listed(lock, listing, queue);
	zkl_errand_free(listing);
}

/* ---- what keeps a directory ---- */

#define CONTAINERS_OWNER	PG_INT64_MIN	/* what ZooKeeper calls the
											 * session */

typedef struct
{
	const char *const *names;
	const char *found;
} LastingSearch;

static void
take_lasting(void *arg, int number, const ZklErrandAnswer *answer)
{
	LastingSearch *search = arg;

	if (answer->rc == ZKL_RC_OK &&
		(answer->stat.session_id == 0 || answer->stat.session_id == CONTAINERS_OWNER))
		search->found = search->names[number];
}

/* A request of a zklock server ends with its session. */
static bool
may_last(const ZklTarget *directory, const char *name)
{
	ZklLockMode mode;
	ZklSeq		seq;
	bool		has_uuid;
	ZklUuid		uuid;

	return !zkl_znode_parse(directory->dialect, name, &mode, &seq, &has_uuid, &uuid) ||
		!has_uuid || !zkl_uuid_is_zklock(&uuid);
}

const char *
zkl_errand_find_lasting(const ZklTarget *directory)
{
	ZklErrand  *listing = zkl_errand_list(directory, false);
	const char *names[ZKL_ERRAND_READS];
	LastingSearch search = {names, NULL};
	const char *name = NULL;
	int			n = 0;

	while (n < ZKL_ERRAND_READS && (name = zkl_errand_next(listing, name)) != NULL)
	{
		if (may_last(directory, name))
			names[n++] = pstrdup(name);
	}
	zkl_errand_free(listing);
	zkl_errand_read_each(ZKL_ERRAND_GET, directory, names, n, take_lasting, &search);
	return search.found;
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
zkl_errand_read_servers(void (*fn) (void *arg, const ZklFleetServer *server), void *arg)
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
	zkl_errand_read_each(ZKL_ERRAND_GET, &fleet, names, n, take_server, &reading);
	qsort(reading.servers, reading.nthere, sizeof(ZklFleetServer), compare_servers);
	for (i = 0; i < reading.nthere; i++)
	{
		CHECK_FOR_INTERRUPTS();
		fn(arg, &reading.servers[i]);
	}
}
