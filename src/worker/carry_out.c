/*
 * carry_out.c
 *	  From the core to the slots and the link: carries out the core's actions.
 *
 * Owns the published transaction id and counters.  Runs in the worker only.  Takes
 * the slots' mutexes through worker_slot.h, one at a time.  It decides nothing
 * about locks.
 */
#include "postgres.h"

#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "shared/status.h"
#include "utils/timestamp.h"
#include "worker/answers.h"
#include "worker/carry_out.h"
#include "worker/errands.h"
#include "worker/events.h"
#include "worker/identity.h"
#include "worker/link.h"
#include "worker/operation.h"
#include "worker/peers.h"
#include "worker/report.h"
#include "worker/supervisor.h"
#include "worker/worker.h"
#include "worker/worker_slot.h"

static int64 published_lease = 0;
static uint32 published_generation = 0;

/* ---- to the link ---- */

static void
put_multi(ZklWireBuffer *out, const ZklAction *action)
{
	size_t		i;

	zkl_wire_put_u32(out, (uint32) action->nmulti);
	for (i = 0; i < action->nmulti; i++)
	{
		const ZklMultiOp *op = &action->multi[i];

		zkl_wire_put_u8(out, (uint8) op->kind);
		zkl_wire_put_text(out, op->path);
		zkl_wire_put_string(out, op->data, op->data_length);
		zkl_wire_put_i32(out, op->version);
	}
}

/*
 * A connection has one watch on the children of a znode, which the core and the
 * errands share.  When one of them takes the watch back, all of them look again
 * and set it if they need it.
 */
static void
announce_unwatch(const char *path)
{
	zkl_errands_event(path);
	zkl_worker_tell(ZKL_EVENT(CHILDREN,.path = path));
}

static void
put_operation(const ZklAction *action)
{
	ZklWireBuffer *out = zkl_link_output();
	size_t		frame;

	if (zkl_supervisor_generation() == 0)
		return;					/* the core knows that, or soon will */
	frame = zkl_wire_begin(out, ZKL_WIRE_SEND, zkl_supervisor_generation(),
						   zkl_carry_out_tag(action->send, action->tag), 0);
	zkl_wire_put_u8(out, (uint8) action->send);
	if (action->send == ZKL_SEND_MULTI)
		put_multi(out, action);
	else
	{
		zkl_wire_put_text(out, action->path);
		zkl_wire_put_u8(out, action->watch);
	}
	zkl_wire_end(out, frame);
	zkl_liveness_sent(zkl_boottime_us());
	if (action->send == ZKL_SEND_UNWATCH_CHILDREN)
		announce_unwatch(action->path);
}

/* ---- to the slots ---- */

static ZklError
failure_error(ZklFailure failure)
{
	static const ZklError errors[] = {
		[ZKL_FAILURE_DEADLOCK] = ZKL_ERROR_UPGRADE,
		[ZKL_FAILURE_ZOOKEEPER] = ZKL_ERROR_ZOOKEEPER,
		[ZKL_FAILURE_PARENTS] = ZKL_ERROR_PARENTS,
		[ZKL_FAILURE_NO_NUMBER] = ZKL_ERROR_NO_NUMBER,
		[ZKL_FAILURE_SESSION_EXPIRED] = ZKL_ERROR_SESSION_EXPIRED,
		[ZKL_FAILURE_NODE_DELETED] = ZKL_ERROR_NODE_DELETED,
		[ZKL_FAILURE_BROKEN] = ZKL_ERROR_BROKEN,
		[ZKL_FAILURE_UNREADABLE] = ZKL_ERROR_UNREADABLE,
		[ZKL_FAILURE_OVERTAKEN] = ZKL_ERROR_OVERTAKEN,
	};

	return errors[failure];
}

static void
fail_request(int slotno, const ZklAction *action)
{
	ZklError	error = failure_error(action->failure);

	if (action->failure == ZKL_FAILURE_DEADLOCK && action->reason != NULL)
	{
		zkl_report_deadlock(slotno, action->reason);
		error = ZKL_ERROR_DEADLOCK;
	}
	if (action->rc == ZKL_RC_NOAUTH)
	{
		ZklSlot		slot;

		zkl_slot_copy(slotno, &slot);
		zkl_identity_note_refused(slot.s_request.path);
	}
	zkl_worker_slot_fail(slotno, error, action->rc);
}

/* The server's log gets one line, whatever the holder learns and when. */
static void
lose_hold(int slotno, ZklError error)
{
	ZklSlot		slot;

	zkl_slot_copy(slotno, &slot);
	if (zkl_worker_slot_lose(slotno, error) &&
		(slot.s_state != ZKL_SLOT_RELEASED || zkl_slot_is_reserved(&slot) ||
		 zkl_slot_is_ticket(&slot)))
		zkl_report_lost(&slot, error);
}

/*
 * A client can call itself in ZooKeeper whatever it likes, but that must not break a
 * line of the log.
 */
static void
copy_asker(const ZklAction *action, char asker[ZKL_MAX_ASKER_TEXT])
{
	char	   *c;

	strlcpy(asker, action->asker, ZKL_MAX_ASKER_TEXT);
	for (c = asker; *c != '\0'; c++)
	{
		if ((unsigned char) *c < ' ' || *c == 0x7f)
			*c = '?';
	}
}

/* Likewise. */
static void
ask_for_release(int slotno, const ZklAction *action)
{
	char		asker[ZKL_MAX_ASKER_TEXT];
	ZklSlot		slot;

	copy_asker(action, asker);
	zkl_slot_copy(slotno, &slot);
	if (zkl_worker_slot_request_release(slotno, action->asked_zxid, asker))
		ereport(LOG,
				(errmsg("release of distributed lock \"%.*s\" of process %d was requested",
						zkl_slot_shown_length(&slot), slot.s_request.path, slot.s_request.pid),
				 asker[0] != '\0' ?
				 errdetail("The request came from %s.", asker) :
				 errdetail("The request came from a client other than zklock.")));
}

static void
count_lost_writes(void)
{
	ZklStatus  *status = zkl_status_begin();

	status->lost_writes++;
	status->lost_writes_at = zkl_boottime_ms();
	zkl_status_end();
}

/* If the hold has ended meanwhile, it had nobody beside it any more. */
static void
tell_of_other_holder(int slotno, const ZklAction *action)
{
	char		other[ZKL_MAX_ASKER_TEXT];
	ZklSlot		slot;

	copy_asker(action, other);
	zkl_slot_copy(slotno, &slot);
	if (slot.s_state == ZKL_SLOT_GRANTED)
		zkl_diagnosis_warn_of_other_holder(slot.s_request.path,
										   zkl_slot_shown_length(&slot), other);
}

static void
carry_out_action(const ZklAction *action)
{
	int			slotno = (int) action->request;

	switch (action->kind)
	{
		case ZKL_ACTION_SEND:
			put_operation(action);
			break;
		case ZKL_ACTION_RECORD:
			zkl_worker_slot_record(slotno, &action->record);
			break;
		case ZKL_ACTION_GRANT:
			zkl_worker_slot_grant(slotno, action->token, action->solitary);
			zkl_bounds_granted(slotno);
			zkl_report_granted(slotno);
			zkl_tickets_granted(slotno);
			break;
		case ZKL_ACTION_BLOCKED:
			zkl_worker_slot_block(slotno);
			break;
		case ZKL_ACTION_BEHIND_CACHED:
			zkl_worker_slot_set_behind_cached(slotno, action->server);
			break;
		case ZKL_ACTION_DENY:
			zkl_worker_slot_deny(slotno);
			break;
		case ZKL_ACTION_FAIL:
			fail_request(slotno, action);
			break;
		case ZKL_ACTION_LOSE:
			lose_hold(slotno, failure_error(action->failure));
			zkl_bounds_look(slotno);
			break;
		case ZKL_ACTION_RELEASE_REQUEST:
			ask_for_release(slotno, action);
			break;
		case ZKL_ACTION_FREE:
			zkl_from_slots_free(slotno);
			break;
		case ZKL_ACTION_REVIVED:
			count_lost_writes();
			tell_of_other_holder(slotno, action);
			break;
		case ZKL_ACTION_LOST_WRITES:
			count_lost_writes();
			zkl_diagnosis_warn_of_lost_writes();
			break;
		case ZKL_ACTION_ASK:
			zkl_peers_send(ZKL_PEER_ASK, &action->peer);
			break;
		case ZKL_ACTION_WORD:
			zkl_peers_send(ZKL_PEER_WORD, &action->peer);
			break;
		case ZKL_ACTION_ASKED:
			zkl_worker_slot_set_asked(slotno);
			break;
		case ZKL_ACTION_RECONNECT:
			zkl_supervisor_reconnect(action->rc);
			break;
	}
}

/*
 * This comes before the grants: a backend that picks up a grant compares the
 * generation of its slot with that of the lease.
 */
static void
publish_lease(void)
{
	uint32		generation = zkl_control->ctl_status.generation;
	int64		lease = zkl_manager_lease(zkl_core) / 1000;
	int64_t		before = published_lease;

	if (zkl_fleet_entry_is_undecided())
		lease = 0;
	if (lease == published_lease && generation == published_generation)
		return;
	published_lease = lease;
	published_generation = generation;
	zkl_lease_publish(generation, lease);

	/* Backends that saw the lease as passed look again. */
	pg_memory_barrier();
	if (before <= zkl_boottime_ms())
		zkl_worker_slot_wake_holders();
}

/* This comes before the grants whose tokens are made of it. */
static void
publish_zxid(void)
{
	static int64 published_zxid = 0;
	int64		zxid = zkl_manager_zxid(zkl_core);

	if (zxid == published_zxid)
		return;
	published_zxid = zxid;
	pg_atomic_write_u64(&zkl_control->ctl_zxid_seen, (uint64) zxid);
}

static void
publish_counters(void)
{
	static ZklCounters last;	/* of this worker: zk_stat_server goes on */
	static ZklDeadlockCounters before;
	ZklCounters now;
	ZklDeadlockCounters found;
	ZklStatus  *status;

	zkl_manager_counters(zkl_core, &now);
	zkl_deadlock_count(zkl_core, &found);
	if (memcmp(&now, &last, sizeof(now)) == 0 &&
		memcmp(&found, &before, sizeof(found)) == 0)
		return;
	status = zkl_status_begin();
	status->batches += now.batches - last.batches;
	status->operations += now.operations - last.operations;
	status->listings += now.listings - last.listings;
	status->creates += now.creates - last.creates;
	status->continuous_creates += now.continuous - last.continuous;
	status->watches = now.watches;
	status->deadlocks += found.deadlocks - before.deadlocks;
	status->deadlock_checks += found.checks - before.checks;
	status->given_up_checks += found.given_up - before.given_up;
	status->unpublished_waits += found.unpublished - before.unpublished;
	status->recalls += now.recalls - last.recalls;
	status->asks += now.asks - last.asks;
	status->words += now.words - last.words;
	status->words_taken += now.words_taken - last.words_taken;
	status->words_late += now.words_late - last.words_late;
	zkl_status_end();
	last = now;
	before = found;
}

void
zkl_carry_out_actions(void)
{
	const ZklAction *actions;
	size_t		n,
				i;

	publish_zxid();
	publish_lease();

	zkl_trace_actions(&zkl_tracefile);

	/* An action that ends the connection makes the core act again. */
	for (i = 0; actions = zkl_manager_actions(zkl_core, &n), i < n; i++)
	{
		ZklAction	action = actions[i];

		carry_out_action(&action);
	}
	zkl_trace_clear(&zkl_tracefile);
	zkl_manager_clear_actions(zkl_core);
	publish_counters();
}

void
zkl_carry_out_begin(void)
{
	zkl_lease_read(&published_generation, &published_lease);
	zkl_operation_init(put_operation);
}

void
zkl_carry_out_take_over(void)
{
	int			i;

	for (i = 0; i < zkl_control->ctl_nslots; i++)
	{
		if (zkl_slot_peek(i) <= ZKL_SLOT_CLAIMED)
			continue;
		if (i < zkl_control->ctl_nrequests)
		{
			zkl_worker_slot_take_over(i);
			lose_hold(i, ZKL_ERROR_WORKER_ENDED);
		}
		zkl_from_slots_take_over(i);
	}
}
