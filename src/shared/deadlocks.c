/*
 * deadlocks.c
 *	  What the worker tells a session about the deadlock that its request is in,
 *	  and when sessions look at PostgreSQL's own locks.
 *
 * Owns both in shared memory: texts that the worker writes and backends read,
 * and the times of looks, which backends write.  Takes no locks: a process that
 * is stopped while it looks must not stop the worker.
 *
 * Must not know what a deadlock is.
 */
#include "postgres.h"

#include "port/atomics.h"
#include "shared/deadlocks.h"
#include "shared/status.h"

#define TEXTS			16

/* A look that takes long comes less often: it takes a twentieth of the time. */
#define LOOK_SHARE		20

/* How often, at most, sessions that have become patient cause a look */
#define LOOKS_PER_PATIENCE	10

/* A session that finds that others look leaves it to them for as long. */
#define LEAVE_TO_OTHERS	4

typedef struct Text
{
	ZklChanges	changes;
	int			slotno;
	uint32		serial;
	char		text[ZKL_MAX_DEADLOCK_TEXT];
} Text;

typedef struct Deadlocks
{
	pg_atomic_uint64 next_look; /* not before this */
	pg_atomic_uint64 last_look; /* when the last one that is done began */
	pg_atomic_uint32 found;
	uint32		next_text;		/* the worker's */
	Text		texts[TEXTS];
} Deadlocks;

static Deadlocks *deadlocks = NULL;

Size
zkl_deadlocks_size(void)
{
	return sizeof(Deadlocks);
}

void
zkl_deadlocks_attach(void *memory)
{
	deadlocks = memory;
}

void
zkl_deadlocks_init(void)
{
	int			i;

	pg_atomic_init_u64(&deadlocks->next_look, 0);
	pg_atomic_init_u64(&deadlocks->last_look, 0);
	pg_atomic_init_u32(&deadlocks->found, 0);
	deadlocks->next_text = 0;
	for (i = 0; i < TEXTS; i++)
	{
		pg_atomic_init_u32(&deadlocks->texts[i].changes, 0);
		deadlocks->texts[i].slotno = -1;
	}
}

/* ---- texts ---- */

void
zkl_deadlocks_tell(int slotno, uint32 serial, const char *text)
{
	Text	   *to = &deadlocks->texts[deadlocks->next_text++ % TEXTS];

	zkl_changes_begin(&to->changes);
	to->slotno = slotno;
	to->serial = serial;
	strlcpy(to->text, text, sizeof(to->text));
	zkl_changes_end(&to->changes);
}

/* False: it is another one's, or changes just now. */
static bool
copy_text(Text *from, int slotno, uint32 serial, char *text)
{
	uint32		number = pg_atomic_read_u32(&from->changes);
	bool		good;

	pg_read_barrier();
	good = number % 2 == 0 && from->slotno == slotno && from->serial == serial;
	memcpy(text, from->text, ZKL_MAX_DEADLOCK_TEXT);
	text[ZKL_MAX_DEADLOCK_TEXT - 1] = '\0';
	return good && !zkl_changes_since(&from->changes, number);
}

bool
zkl_deadlocks_hear(int slotno, uint32 serial, char *text)
{
	int			i;

	for (i = 0; i < TEXTS; i++)
	{
		if (copy_text(&deadlocks->texts[i], slotno, serial, text))
			return true;
	}
	return false;
}

/* ---- looks ---- */

bool
zkl_deadlocks_may_look(int64 now, int64 *since, int patience, int64 *next)
{
	int64		patience_us = (int64) patience * 1000;
	int64		pause = patience_us / LOOKS_PER_PATIENCE;
	uint64		not_before = pg_atomic_read_u64(&deadlocks->next_look);

	if ((int64) pg_atomic_read_u64(&deadlocks->last_look) > *since)
	{
		*since = now;
		*next = now + LEAVE_TO_OTHERS * patience_us;
		return false;
	}
	*next = Max((int64) not_before, now + pause);
	if ((int64) not_before > now ||
		!pg_atomic_compare_exchange_u64(&deadlocks->next_look, &not_before,
										(uint64) (now + pause)))
		return false;
	*since = now;
	*next = now + patience_us;
	return true;
}

void
zkl_deadlocks_looked(int64 began, int64 now, bool found)
{
	uint64		pause = (uint64) (now + LOOK_SHARE * (now - began));

	if (pg_atomic_read_u64(&deadlocks->next_look) < pause)
		pg_atomic_write_u64(&deadlocks->next_look, pause);
	pg_atomic_write_u64(&deadlocks->last_look, (uint64) began);
	pg_atomic_write_u32(&deadlocks->found, found);
}

bool
zkl_deadlocks_found(void)
{
	return pg_atomic_read_u32(&deadlocks->found) != 0;
}
