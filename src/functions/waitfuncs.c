/*
 * waitfuncs.c
 *	  The set-returning function behind zk_lock_waits.
 *
 * Decides what a role may see of waits.  Run by backends.  Takes no locks but,
 * through slot.h, those of the slots that it copies, one at a time.
 *
 * Must not know which locks this backend holds.
 *
 * The queue of each lock that a session of this server waits for is read from
 * ZooKeeper once.  A wait has a row for each contender ahead that conflicts with
 * it and holds the lock, and one for the nearest that conflicts, if that waits
 * itself.
 */
#include "postgres.h"

#include "backend/errand.h"
#include "backend/target.h"
#include "catalog/pg_authid.h"
#include "functions/ownqueue.h"
#include "functions/queuerow.h"
#include "functions/row.h"
#include "miscadmin.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "utils/acl.h"
#include "utils/memutils.h"

#define WAIT_COLUMNS	10

ZKL_FUNCTION(zkl_sql_lock_waits);

typedef struct
{
	ZklJudged  *all;
	int			n;
} Contenders;

/* ---- waits ---- */

static bool
copy_wait(int slotno, ZklSlot *slot)
{
	if (zkl_slot_peek(slotno) != ZKL_SLOT_WAITING)
		return false;
	zkl_slot_copy(slotno, slot);
	return slot->s_state == ZKL_SLOT_WAITING && slot->s_record.sent;
}

static int
compare_waits(const void *a, const void *b)
{
	const ZklSlot *x = a,
			   *y = b;

	if (x->s_request.dialect != y->s_request.dialect)
		return (int) x->s_request.dialect - (int) y->s_request.dialect;
	return strcmp(x->s_request.path, y->s_request.path);
}

/* Sorted by lock */
static ZklSlot *
find_waits(int *n)
{
	int			room = 16;
	ZklSlot    *waits = palloc(room * sizeof(ZklSlot));
	int			i;

	*n = 0;
	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!copy_wait(i, &waits[*n]))
			continue;
		if (++*n == room)
			waits = repalloc_huge(waits, (room *= 2) * sizeof(ZklSlot));
	}
	qsort(waits, *n, sizeof(ZklSlot), compare_waits);
	return waits;
}

/* ---- the queue of a lock ---- */

static void
read_queue(const ZklSlot *wait, Contenders *contenders)
{
	ZklTarget	lock;
	ZklLockQueue queue;

	lock.path = wait->s_request.path;
	lock.name = zkl_text_to_display(lock.path, (int) strlen(lock.path));
	lock.dialect = (ZklDialect) wait->s_request.dialect;
	zkl_errand_read_queue(&lock, &queue);
	contenders->all = zkl_ownqueue_judge(&lock, &queue, lock.dialect == ZKL_DIALECT_PERMIT ?
										 (int) wait->s_request.max : ZKL_BY_MODES,
										 &contenders->n);
}

/* ---- rows ---- */

/*
 * Columns blocking_server to blocking_znode.  As in all views, whose session it is,
 * only members of pg_read_all_stats see.
 */
static void
add_blocker(ZklRow *row, const ZklSlot *wait, const ZklJudged *c, bool visible)
{
	bool		names = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	ZklNodeData data;
	char	   *znode = psprintf("%s%s/%s", zkl_root, wait->s_request.path,
								 c->entry->name);

	zkl_queuerow_add_server(row, c->entry->data, c->entry->length, &data,
							visible);
	if (c->kept)
		memset(&data, 0, sizeof(data));
	zkl_row_int_or_null(row, visible ? data.pid : 0);
	if (names)
	{
		zkl_row_utf8_or_null(row, data.usename, sizeof(data.usename));
		zkl_row_utf8_or_null(row, data.application_name,
							 sizeof(data.application_name));
		zkl_row_utf8(row, znode, strlen(znode));
	}
	else
	{
		zkl_row_null(row);
		zkl_row_null(row);
		zkl_row_null(row);
	}
}

static void
put_wait_row(FunctionCallInfo fcinfo, const ZklSlot *wait, const ZklJudged *c)
{
	ZklRow		row = {0};
	bool		visible = zkl_row_slot_is_visible(wait);

	if (visible)
		zkl_row_utf8(&row, wait->s_request.path, zkl_slot_shown_length(wait));
	else
		zkl_row_null(&row);
	zkl_row_text(&row, zkl_row_slot_mode(wait));
	zkl_row_int_or_null(&row, visible ? wait->s_request.pid : 0);
	zkl_row_time_or_null(&row, wait->s_request.requested_at);
	add_blocker(&row, wait, c, visible);
	zkl_row_bool(&row, c->granted);

	Assert(row.n == WAIT_COLUMNS);
	zkl_row_put(fcinfo, &row);
}

static bool
is_waiter(const ZklSlot *wait, const ZklJudged *c)
{
	const ZklUuid *sought = &wait->s_record.uuid;

	return c->entry->has_uuid &&
		memcmp(&c->entry->uuid, sought, sizeof(ZklUuid)) == 0;
}

static bool
conflicts(const ZklSlot *wait, const ZklJudged *c)
{
	return c->owner != wait->s_owner &&
		(wait->s_request.dialect == ZKL_DIALECT_PERMIT ||
		 zkl_mode_conflicts(c->entry->mode, (ZklLockMode) wait->s_request.mode));
}

static void
put_wait(FunctionCallInfo fcinfo, const ZklSlot *wait, const Contenders *queue)
{
	bool		nearest = true;
	int			place = 0;
	int			i;

	CHECK_FOR_INTERRUPTS();
	while (place < queue->n && !is_waiter(wait, &queue->all[place]))
		place++;
	if (place == queue->n)
		return;					/* it is not in the queue, or was granted */
	for (i = place; i-- > 0;)
	{
		const ZklJudged *c = &queue->all[i];

		if (!conflicts(wait, c))
			continue;
		if (c->granted || nearest)
			put_wait_row(fcinfo, wait, c);
		nearest = false;
	}
}

/* The queue of each lock is read into memory of its own. */
static void
put_waits(FunctionCallInfo fcinfo)
{
	MemoryContext old = CurrentMemoryContext;
	MemoryContext moment = AllocSetContextCreate(old, "zklock queue",
												 ALLOCSET_DEFAULT_SIZES);
	int			n;
	ZklSlot    *waits = find_waits(&n);
	Contenders	contenders;
	int			i;

	MemoryContextSwitchTo(moment);
	for (i = 0; i < n; i++)
	{
		if (i == 0 || compare_waits(&waits[i], &waits[i - 1]) != 0)
		{
			MemoryContextReset(moment);
			read_queue(&waits[i], &contenders);
		}
		put_wait(fcinfo, &waits[i], &contenders);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(moment);
}

Datum
zkl_sql_lock_waits(PG_FUNCTION_ARGS)
{
	zkl_gate_check();
	zkl_row_begin_view(fcinfo, "zk_lock_waits");
	put_waits(fcinfo);
	return (Datum) 0;
}
