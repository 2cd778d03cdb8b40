/*
 * caching.c
 *	  Locks that stay on this server after their release: when, and their recall.
 *
 * Owns nothing.  Runs in the worker only.  Takes the slots' mutexes through
 * worker_slot.h and ctl_free_mutex, one at a time.  The core decides which locks
 * these are, and when one is recalled.
 */
#include "postgres.h"

#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "shared/root.h"
#include "shared/settings.h"
#include "worker/caching.h"
#include "worker/from_slots.h"
#include "worker/worker.h"
#include "worker/worker_slot.h"

/*
 * A cached lock takes a slot: so many of all slots are for other locks, besides
 * those that are reserved.
 */
#define LEAST_FREE	(zkl_control->ctl_nrequests / 8 + ZKL_RESERVED_SLOTS)

static ZklRecalledState
recalled_state(ZklSlotState state)
{
	return state == ZKL_SLOT_CACHED ? ZKL_RECALLED_CACHED :
		state == ZKL_SLOT_GRANTED ? ZKL_RECALLED_HELD : ZKL_RECALLED_ENDED;
}

void
zkl_caching_offer(void *host, uint32_t request)
{
	zkl_worker_slot_offer((int) request);
}

bool
zkl_caching_recall(void *host, uint32_t request, int64_t idle_since,
				   ZklRecalled *found)
{
	static char data[ZKL_MAX_NODE_DATA];
	ZklSlot		before;
	bool		done = zkl_worker_slot_recall((int) request, idle_since, &before);

	memset(found, 0, sizeof(*found));
	found->state = recalled_state((ZklSlotState) before.s_state);
	found->owner = before.s_owner;
	found->pid = before.s_request.pid;
	found->token = before.s_answer.token;
	found->released_at = before.s_holder.released_us;
	found->data = data;
	if (done)
		found->data_length = zkl_from_slots_node_data(&before, data);
	return done;
}

void
zkl_caching_recall_all(void)
{
	ZklSlot		before;
	int			i;

	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		if (zkl_slot_peek(i) > ZKL_SLOT_CLAIMED)
			(void) zkl_worker_slot_recall(i, 0, &before);
	}
}

/*
 * A lock that stands in a queue without a holder must not be in the way.  While
 * the settings are not known, no session takes one anyway, and they are soon read.
 */
static bool
dialects_are_changing(void)
{
	ZklRoot		root;
	int32		rc;

	return zkl_root_state() == ZKL_ROOT_DIFFERS && zkl_root_copy(&root, &rc) &&
		root.is_changing;
}

void
zkl_caching_tick(bool stop)
{
	bool		caches = !stop && zkl_gate_read() == ZKL_GATE_OPEN &&
	zkl_gate_drain() == 0 && !dialects_are_changing() &&
	zkl_log_locks != ZKL_LOG_LOCKS_ALL &&
	zkl_control_count_free() >= LEAST_FREE;

	zkl_worker_tell(ZKL_EVENT(CACHE,.cache_time = caches ?
							  (int64) zkl_cache_time * 1000 : 0));
}
