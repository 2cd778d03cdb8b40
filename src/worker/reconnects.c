/*
 * reconnects.c
 *	  Backends that wait for another connection: zk_reconnect().
 *
 * Owns the slots of kind RECONNECT between their submission and their answer.  Runs in
 * the worker only.  Takes the slots' mutexes through worker_slot.h, one at a time.  It
 * must not know how settings are tried, nor how a connection is made.
 *
 * A task waits for the end of a trial that begins with it, which also answers those
 * that wait already, and then until a connection of after that is proved.  The answer
 * is a text: what is wrong, or nothing.
 */
#include "postgres.h"

#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/status.h"
#include "worker/reconnects.h"
#include "worker/segment.h"
#include "worker/supervisor.h"

typedef struct
{
	ZklTask		task;
	dlist_node	node;			/* in "all" */
	dsm_handle	segment;		/* for the answer */
	bool		moves;			/* behind its trial */
	uint32		connection;		/* moves: of the supervisor, as it was then */
} Reconnect;

static dlist_head all = DLIST_STATIC_INIT(all);

/* Calls fn, which may end it, for each of those. */
static void
for_each(bool moves, void (*fn) (Reconnect *reconnect, const char *fault),
		 const char *fault)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &all)
	{
		Reconnect  *reconnect = dlist_container(Reconnect, node, iter.cur);

		if (reconnect->moves == moves)
			fn(reconnect, fault);
	}
}

/* ---- answers ---- */

static Size
write_text(void *address, Size size, void *arg)
{
	strlcpy(address, arg, size);
	return 0;
}

static void
tell_end(Reconnect *reconnect, const char *fault)
{
	zkl_segment_answer(reconnect->task.slotno, reconnect->segment, write_text,
					   unconstify(char *, fault));
	zkl_operation_end(&reconnect->task);
}

void
zkl_reconnects_failed(const char *fault)
{
	for_each(false, tell_end, fault);
}

/* ---- another connection ---- */

static void
begin_move(Reconnect *reconnect, const char *fault)
{
	reconnect->moves = true;
	reconnect->connection = zkl_supervisor_attempt();
}

void
zkl_reconnects_move(void)
{
	for_each(false, begin_move, NULL);
}

static void
answer_if_there(Reconnect *reconnect, const char *fault)
{
	if (zkl_supervisor_attempt() != reconnect->connection)
		tell_end(reconnect, "");
}

void
zkl_reconnects_tick(void)
{
	if (zkl_control->ctl_status.state == ZKL_STATE_CONNECTED)
		for_each(true, answer_if_there, NULL);
}

bool
zkl_reconnects_are_waiting(void)
{
	dlist_iter	iter;

	dlist_foreach(iter, &all)
	{
		if (!dlist_container(Reconnect, node, iter.cur)->moves)
			return true;
	}
	return false;
}

/* ---- tasks ---- */

static bool
submit_reconnect(ZklTask *task, const ZklSlot *slot, bool restored)
{
	Reconnect  *reconnect = (Reconnect *) task;

	reconnect->segment = slot->s_dsm;
	dlist_push_tail(&all, &reconnect->node);

	/* Without a session, any connection will do. */
	reconnect->moves = !zkl_supervisor_move();
	return true;
}

/* The frame has nothing to do for it. */
static void
begin_reconnect(ZklTask *task)
{
	zkl_operation_pause(task, PG_INT64_MAX);
}

static void
end_reconnect(ZklTask *task, bool connected)
{
	dlist_delete(&((Reconnect *) task)->node);
}

const ZklTaskOwner zkl_reconnects_owner = {
	.size = sizeof(Reconnect),
	.submit = submit_reconnect,
	.begin = begin_reconnect,
	.end = end_reconnect,
};
