/*
 * lock_queue.c
 *	  The queue of a lock, as ZooKeeper has it.
 *
 * Owns nothing.  Run by backends.  Takes no locks; waits as wait.c does.
 *
 * Must not know how the worker reads znodes.
 */
#include "postgres.h"

#include "backend/lock_queue.h"
#include "backend/reading.h"

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

	zkl_reading_check(reading->lock, answer);
	if (answer->rc == ZKL_RC_NONODE)
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
zkl_lock_queue_read(const ZklTarget *lock, ZklLockQueue *queue)
{
	QueueReading reading = {lock, queue, 0, CurrentMemoryContext};
	ZklErrand  *listing = zkl_errand_list(lock, false);
	const char **names = take_contenders(queue, lock, listing);
	int			i;

	zkl_errand_free(listing);
	for (i = 0; i < queue->n; i++)
		names[i] = queue->entries[i].name;
	zkl_reading_each(ZKL_ERRAND_GET, lock, names, queue->n, take_queued, &reading);
	queue->n = reading.nthere;
	pfree(names);
}
