/*
 * stall.c
 *	  Whether a wait is for ZooKeeper, for the worker, or for other sessions that
 *	  have the lock.
 *
 * Owns nothing.  Run by backends.  Takes no locks but, through backend_slot.h,
 * those of what it copies, one at a time.
 *
 * Must not know how the wait ends, nor anything of the connection but what the
 * worker publishes.
 *
 * If a request has its place in the queue of a lock, it waits for the requests
 * ahead, as long as the lease is good.  Without a lease nothing is granted,
 * whatever is ahead.  As long as the place is not confirmed, nothing is known to
 * be ahead.
 */
#include "postgres.h"

#include "backend/backend_slot.h"
#include "backend/predecessor.h"
#include "backend/refusal.h"
#include "backend/stall.h"
#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/dirty.h"
#include "shared/lease.h"
#include "shared/root.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "storage/latch.h"
#include "utils/acl.h"
#include "utils/builtins.h"

/* How long a session waits for the worker to say who is ahead */
#define ANSWER_WAIT_MS	1000

int64
zkl_stall_time(int slotno)
{
	int64		now = zkl_boottime_ms();
	uint32		generation;
	int64		deadline;
	ZklSlot		slot;
	ZklStatus	status;
	bool		stalled;

	if (slotno == ZKL_NO_SLOT)
		return PG_INT64_MAX;
	zkl_slot_copy(slotno, &slot);
	zkl_lease_read(&generation, &deadline);
	if (slot.s_request.kind == ZKL_KIND_LOCK && deadline <= now)
		return deadline != 0 ? (now - deadline) * 1000 : PG_INT64_MAX;
	if (slot.s_request.kind == ZKL_KIND_LOCK)
		stalled = slot.s_znode.seq < 0 ||
			!zkl_lease_same_generation(slot.s_answer.generation, generation);
	else
	{
		zkl_status_copy(&status);
		stalled = status.state != ZKL_STATE_CONNECTED;
	}
	return stalled ? PG_INT64_MAX : -1;
}

bool
zkl_stall_is_worker(int slotno)
{
	return slotno == ZKL_NO_SLOT || zkl_dirty_is_set(slotno);
}

/*
 * Only a wait that is not one for the worker or for ZooKeeper is one for such a
 * server.
 */
bool
zkl_stall_is_cached(int slotno, ZklSlot *slot)
{
	if (zkl_stall_is_worker(slotno) || zkl_stall_time(slotno) >= 0)
		return false;
	zkl_slot_copy(slotno, slot);
	return slot->s_state == ZKL_SLOT_WAITING && slot->s_answer.behind_cached;
}

ZklWaitEvent
zkl_stall_event(int slotno)
{
	ZklSlot		slot;

	if (zkl_stall_is_worker(slotno) || zkl_stall_time(slotno) >= 0 ||
		zkl_slots[slotno].s_request.kind != ZKL_KIND_LOCK)
		return ZKL_EVENT_ZOOKEEPER;
	return zkl_stall_is_cached(slotno, &slot) ? ZKL_EVENT_CACHED_ANSWER :
		ZKL_EVENT_LOCK;
}

void
zkl_stall_notice(int slotno, const char *name)
{
	if (zkl_stall_is_worker(slotno))
		ereport(NOTICE,
				(errmsg("still waiting for the zklock worker, not for another holder of distributed lock \"%s\"",
						name),
				 errdetail("%s", zkl_refusal_worker_silence()),
				 errhint("The wait goes on.  See the server log, and the state of the process \"zklock worker\".")));
	else
		ereport(NOTICE,
				(errmsg("still waiting for ZooKeeper, not for another holder of distributed lock \"%s\"",
						name),
				 errdetail("ZooKeeper did not answer within \"zklock.connect_timeout\".  %s",
						   zkl_refusal_worker_trouble()),
				 errhint("The wait goes on.  %s", zkl_refusal_where_to_look())));
}

/* ---- what a wait was for ---- */

static bool
is_awaited_from_root(int slotno)
{
	ZklSlot		slot;

	zkl_slot_copy(slotno, &slot);
	return slot.s_state == ZKL_SLOT_GRANTED && zkl_root_is_awaited(&slot);
}

static const char *
away_words(void)
{
	TimestampTz since = zkl_status_away_since();

	return since == 0 ? "" :
		psprintf("  This server has had no connection since %s.",
				 timestamptz_to_str(since));
}

/*
 * The worker answers at once what it knows; a cancel waits for that, the end of the
 * session does not.
 */
static const char *
ask_who_is_ahead(int slotno, const char *name)
{
	bool		names = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	int64		until = zkl_boottime_ms() + ANSWER_WAIT_MS;
	ZklPredecessor ahead;
	const char *words;

	zkl_predecessor_init(&ahead);
	HOLD_INTERRUPTS();
	if (zkl_predecessor_ask(&ahead, slotno, name, false))
	{
		while (!zkl_predecessor_is_answered(&ahead) && !ProcDiePending &&
			   zkl_boottime_ms() < until)
		{
			(void) WaitLatch(MyLatch,
							 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
							 Max(until - zkl_boottime_ms(), 0),
							 zkl_compat_wait_event(ZKL_EVENT_LOCK));
			ResetLatch(MyLatch);
		}
	}
	words = zkl_predecessor_words(&ahead, name, names);
	zkl_predecessor_forget(&ahead);
	RESUME_INTERRUPTS();
	return words != NULL ? words :
		psprintf("Other sessions hold distributed lock \"%s\" or requested it earlier.",
				 name);
}

void
zkl_stall_explain(int slotno, const char *name, ZklStallReason *reason)
{
	ZklSlot		slot;

	memset(reason, 0, sizeof(*reason));
	if (zkl_stall_is_worker(slotno))
	{
		reason->detail = psprintf("The wait was for the zklock worker, not for another holder of distributed lock \"%s\".  %s",
								  name, zkl_refusal_worker_silence());
		reason->hint = "See the server log, and the state of the process \"zklock worker\".";
	}
	else if (zkl_stall_time(slotno) >= 0)
	{
		reason->detail = psprintf("The wait was for ZooKeeper, not for another holder of distributed lock \"%s\".%s  %s",
								  name, away_words(), zkl_refusal_worker_trouble());
		reason->hint = zkl_refusal_where_to_look();
	}
	else if (is_awaited_from_root(slotno))
		reason->detail = psprintf("The wait was for the dialects of root \"%s\", which this server has yet to read, not for another holder of distributed lock \"%s\".",
								  zkl_root, name);
	else if (zkl_stall_is_cached(slotno, &slot))
		reason->detail = psprintf("The wait was for %s, which may have distributed lock \"%s\" cached.",
								  zkl_refusal_server(slot.s_answer.caching_server), name);
	else if (zkl_slots[slotno].s_request.kind == ZKL_KIND_LOCK &&
			 zkl_slot_peek(slotno) == ZKL_SLOT_WAITING)
	{
		reason->detail = ask_who_is_ahead(slotno, name);
		reason->hint = psprintf("See SELECT * FROM zk_queue(%s).",
								quote_literal_cstr(name));
	}
}

void
zkl_stall_raise_lock_timeout(int slotno, const char *name, int64 timeout_ms)
{
	ZklStallReason reason;

	zkl_stall_explain(slotno, name, &reason);
	if (slotno != ZKL_NO_SLOT)
		zkl_backend_slot_give_up(slotno);
	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 timeout_ms == 0 ?
			 errmsg("canceling statement due to lock timeout") :
			 errmsg("could not acquire distributed lock \"%s\" within %lld ms",
					name, (long long) timeout_ms),
			 reason.detail != NULL ? errdetail("%s", reason.detail) : 0,
			 reason.hint != NULL ? errhint("%s", reason.hint) : 0));
	pg_unreachable();
}
