/*
 * lockstats.c
 *	  Cumulative statistics of locks, by name.
 *
 * Owns the table of names in shared memory.  The worker adds, backends copy a few
 * rows at a time, or reset.  Takes no locks.
 *
 * Must not know what a slot is, nor what the counts mean.
 *
 * The rows in use are the first ones.  Each is in two lists, linked by their
 * numbers: that of its hash bucket, and one from the name that was counted last
 * to the one that makes room next.
 *
 * A reset is a new value of "since".  Rows that were counted since another time
 * are of no use: backends show none of them, and the worker forgets them before
 * it adds the next one.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "shared/lockstats.h"
#include "shared/status.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#define TRACKED_LOCKS	1000	/* names */
#define NO_ROW	(-1)

typedef struct Entry
{
	ZklLockstatsRow row;
	int			next;			/* in its bucket */
	int			newer,
				older;
} Entry;

typedef struct Table
{
	pg_atomic_uint64 since;		/* TimestampTz; a reset changes it */
	ZklChanges	changes;		/* of all that follows */
	TimestampTz counted_since;
	int64		evicted;
	int			used;			/* entries */
	int			newest,
				oldest;
} Table;

static Table *table = NULL;
static Entry *entries = NULL;
static int *buckets = NULL;		/* as many as entries */

/* ---- memory ---- */

static Size
entries_offset(void)
{
	return MAXALIGN(sizeof(Table));
}

static Size
buckets_offset(void)
{
	return add_size(entries_offset(),
					mul_size(TRACKED_LOCKS, MAXALIGN(sizeof(Entry))));
}

Size
zkl_lockstats_size(void)
{
	return add_size(buckets_offset(), mul_size(TRACKED_LOCKS, sizeof(int)));
}

void
zkl_lockstats_attach(void *memory)
{
	char	   *base = memory;

	StaticAssertStmt(sizeof(Entry) == MAXALIGN(sizeof(Entry)),
					 "entries are an array");
	table = memory;
	entries = (Entry *) (base + entries_offset());
	buckets = (int *) (base + buckets_offset());
}

static TimestampTz
last_reset(void)
{
	return (TimestampTz) pg_atomic_read_u64(&table->since);
}

static void
clear_table(TimestampTz now)
{
	int			i;

	table->counted_since = now;
	table->evicted = 0;
	table->used = 0;
	table->newest = table->oldest = NO_ROW;
	for (i = 0; i < TRACKED_LOCKS; i++)
		buckets[i] = NO_ROW;
}

void
zkl_lockstats_init(void)
{
	TimestampTz now = GetCurrentTimestamp();

	pg_atomic_init_u64(&table->since, (uint64) now);
	pg_atomic_init_u32(&table->changes, 0);
	clear_table(now);
}

/* ---- names ---- */

static int *
bucket_of(const char *path, int length)
{
	return &buckets[hash_bytes((const unsigned char *) path, length) %
					TRACKED_LOCKS];
}

static int
find_entry(const char *path, int length)
{
	int			i = *bucket_of(path, length);

	while (i != NO_ROW && (strncmp(entries[i].row.path, path, length) != 0 ||
						   entries[i].row.path[length] != '\0'))
		i = entries[i].next;
	return i;
}

static void
leave_order(int i)
{
	Entry	   *entry = &entries[i];

	*(entry->newer != NO_ROW ? &entries[entry->newer].older :
	  &table->newest) = entry->older;
	*(entry->older != NO_ROW ? &entries[entry->older].newer :
	  &table->oldest) = entry->newer;
}

static void
become_newest(int i)
{
	entries[i].newer = NO_ROW;
	entries[i].older = table->newest;
	*(table->newest != NO_ROW ? &entries[table->newest].newer :
	  &table->oldest) = i;
	table->newest = i;
}

/* Takes the oldest name out of the table; returns its place. */
static int
evict_oldest(void)
{
	int			i = table->oldest;
	const char *path = entries[i].row.path;
	int		   *link = bucket_of(path, (int) strlen(path));

	while (*link != i)
		link = &entries[*link].next;
	*link = entries[i].next;
	leave_order(i);
	table->evicted++;
	return i;
}

static int
make_entry(const char *path, int length)
{
	int			i = table->used < TRACKED_LOCKS ? table->used++ :
	evict_oldest();
	int		   *bucket = bucket_of(path, length);
	Entry	   *entry = &entries[i];

	memset(entry, 0, sizeof(Entry));
	memcpy(entry->row.path, path, length);
	entry->next = *bucket;
	*bucket = i;
	return i;
}

/* ---- what others call ---- */

static void
add_counts(ZklLockstatsCounts *sum, const ZklLockstatsCounts *more)
{
	sum->acquires += more->acquires;
	sum->waited += more->waited;
	sum->wait_time += more->wait_time;
	sum->longest_wait = Max(sum->longest_wait, more->longest_wait);
	sum->hold_time += more->hold_time;
	sum->longest_hold = Max(sum->longest_hold, more->longest_hold);
	sum->timeouts += more->timeouts;
	sum->denials += more->denials;
	sum->losses += more->losses;
	sum->deadlocks += more->deadlocks;
}

void
zkl_lockstats_add(const char *path, int length,
				  const ZklLockstatsCounts *counts)
{
	int			i;

	length = Min(length, ZKL_MAX_NAME);
	zkl_changes_begin(&table->changes);
	if (table->counted_since != last_reset())
		clear_table(last_reset());
	i = find_entry(path, length);
	if (i == NO_ROW)
		i = make_entry(path, length);
	else
		leave_order(i);
	become_newest(i);
	add_counts(&entries[i].row.counts, counts);
	zkl_changes_end(&table->changes);
}

int
zkl_lockstats_read(int from, ZklLockstatsRow *rows, int n)
{
	uint32		number;
	int			used;
	int			i;

	do
	{
		number = zkl_changes_so_far(&table->changes);
		used = table->counted_since == last_reset() ? table->used : 0;
		for (i = 0; i < n && from + i < used; i++)
			rows[i] = entries[from + i].row;
	} while (zkl_changes_since(&table->changes, number));
	return i;
}

void
zkl_lockstats_since(TimestampTz *reset_at, int64 *evicted)
{
	uint32		number;

	do
	{
		number = zkl_changes_so_far(&table->changes);
		*reset_at = last_reset();
		*evicted = table->counted_since == *reset_at ? table->evicted : 0;
	} while (zkl_changes_since(&table->changes, number));
}

void
zkl_lockstats_reset(void)
{
	pg_atomic_write_u64(&table->since, (uint64) GetCurrentTimestamp());
}
