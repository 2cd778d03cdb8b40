/*
 * lockstats.c
 *	  Cumulative statistics of locks, by name.
 *
 * Owns the table of names in shared memory.  The worker adds, backends read and
 * reset.  Takes ctl_lockstats_lock, and no other lock with it: the worker holds
 * it for one name, a backend for a few rows.
 *
 * Must not know what a slot is, nor what the counts mean.
 *
 * The rows in use are the first ones.  Each is in two lists, linked by their
 * numbers: that of its hash bucket, and one from the name that was counted last
 * to the one that makes room next.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "shared/control.h"
#include "shared/lockstats.h"
#include "shared/settings.h"
#include "utils/timestamp.h"

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
	TimestampTz since;
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
					mul_size(zkl_track_locks, MAXALIGN(sizeof(Entry))));
}

Size
zkl_lockstats_size(void)
{
	return add_size(buckets_offset(), mul_size(zkl_track_locks, sizeof(int)));
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

static void
clear_table(void)
{
	int			i;

	table->since = GetCurrentTimestamp();
	table->evicted = 0;
	table->used = 0;
	table->newest = table->oldest = NO_ROW;
	for (i = 0; i < zkl_track_locks; i++)
		buckets[i] = NO_ROW;
}

void
zkl_lockstats_init(void)
{
	clear_table();
}

/* ---- names ---- */

static int *
bucket_of(const char *path, int length)
{
	return &buckets[hash_bytes((const unsigned char *) path, length) %
					(uint32) zkl_track_locks];
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
	int			i = table->used < zkl_track_locks ? table->used++ :
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

	if (zkl_track_locks == 0)
		return;
	length = Min(length, ZKL_MAX_NAME);
	LWLockAcquire(zkl_control->ctl_lockstats_lock, LW_EXCLUSIVE);
	i = find_entry(path, length);
	if (i == NO_ROW)
		i = make_entry(path, length);
	else
		leave_order(i);
	become_newest(i);
	add_counts(&entries[i].row.counts, counts);
	LWLockRelease(zkl_control->ctl_lockstats_lock);
}

int
zkl_lockstats_read(int from, ZklLockstatsRow *rows, int n)
{
	int			i;

	LWLockAcquire(zkl_control->ctl_lockstats_lock, LW_SHARED);
	n = Min(n, table->used - from);
	for (i = 0; i < n; i++)
		rows[i] = entries[from + i].row;
	LWLockRelease(zkl_control->ctl_lockstats_lock);
	return Max(n, 0);
}

void
zkl_lockstats_since(TimestampTz *since, int64 *evicted)
{
	LWLockAcquire(zkl_control->ctl_lockstats_lock, LW_SHARED);
	*since = table->since;
	*evicted = table->evicted;
	LWLockRelease(zkl_control->ctl_lockstats_lock);
}

void
zkl_lockstats_reset(void)
{
	LWLockAcquire(zkl_control->ctl_lockstats_lock, LW_EXCLUSIVE);
	clear_table();
	LWLockRelease(zkl_control->ctl_lockstats_lock);
}
