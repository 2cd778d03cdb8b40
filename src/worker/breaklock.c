/*
 * breaklock.c
 *	  The worker's side of zk_break_lock(): the breaks that are under way.
 *
 * Owns the slots of kind BREAK between their submission and their answer.  Runs
 * in the worker only; takes no locks of its own.  How a lock is broken is
 * breaking.c's.
 */
#include "postgres.h"

#include "nodes/pg_list.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "utils/memutils.h"

#include "worker/breaking.h"
#include "worker/breaklock.h"
#include "worker/byslot.h"

static ZklBreaklockSend send_operation;
static ZklBySlot by_slot;
static List *breaks = NIL;		/* of ZklBreak, in TopMemoryContext */

static void
send_tagged(ZklAction *action)
{
	action->tag |= ZKL_BREAKLOCK_TAG;
	send_operation(action);
}

void
zkl_breaklock_begin(ZklBreaklockSend send)
{
	send_operation = send;
	by_slot = zkl_byslot_make();
	zkl_breaking_send = send_tagged;
}

/* ---- slots ---- */

void
zkl_breaklock_submit(int slotno)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	ZklBreak   *b = palloc0(sizeof(ZklBreak));
	ZklSlot		slot;

	zkl_slot_copy(slotno, &slot);
	b->slotno = slotno;
	b->dialect = (ZklDialect) slot.s_dialect;
	b->lock = pstrdup(slot.s_path);
	b->directory = psprintf("%s%s", zkl_root, slot.s_path);
	breaks = lappend(breaks, b);
	by_slot[slotno] = b;
	MemoryContextSwitchTo(old);
}

static bool
is_pausing(const ZklBreak *b)
{
	return b->phase == ZKL_BREAK_IDLE || b->phase == ZKL_BREAK_WAITING;
}

static void
finish(ZklBreak *b)
{
	breaks = list_delete_ptr(breaks, b);
	by_slot[b->slotno] = NULL;
	zkl_breakhead_free(&b->head);
	zkl_breakhead_free(&b->target);
	pfree(b->lock);
	pfree(b->directory);
	pfree(b);
}

void
zkl_breaklock_release(int slotno)
{
	ZklBreak   *b = zkl_byslot_get(by_slot, slotno);

	if (b != NULL)
		finish(b);
	zkl_slot_free(slotno);
}

void
zkl_breaklock_disconnected(void)
{
	ListCell   *cell;

	foreach(cell, breaks)
	{
		ZklBreak   *b = lfirst(cell);

		zkl_breaking_stop(b);
		zkl_retry_reset(&b->retry);
	}
}

/* ---- answers ---- */

void
zkl_breaklock_reply(uint64 tag, const ZklReply *reply, int32 version)
{
	ZklBreak   *b = zkl_byslot_get(by_slot, (int) (uint32) tag);

	if (b == NULL || is_pausing(b) ||
		zkl_breaking_attempt(tag) != b->attempt)
		return;
	zkl_breaking_reply(b, reply, version);
	if (b->over)
		finish(b);
}

/* ---- time ---- */

void
zkl_breaklock_tick(bool ready, int64 now)
{
	ListCell   *cell;

	if (!ready)
		return;
	foreach(cell, breaks)
	{
		ZklBreak   *b = lfirst(cell);

		if (!is_pausing(b) || now < b->retry.due)
			continue;
		if (b->phase == ZKL_BREAK_IDLE)
			zkl_breaking_begin(b);
		else
			zkl_breaking_look(b, now);
	}
}

int64
zkl_breaklock_timer(void)
{
	int64		due = -1;
	ListCell   *cell;

	foreach(cell, breaks)
	{
		const ZklBreak *b = lfirst(cell);

		if (is_pausing(b))
			due = zkl_retry_earlier(due, b->retry.due);
	}
	return due;
}
