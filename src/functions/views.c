/*
 * views.c
 *	  The set-returning functions behind zk_locks and zk_status, and zk_version().
 *
 * Decides what a role may see of requests and of the worker.  Run by backends.
 * Takes no locks but, through slot.h, those of the slots that it copies, one at a
 * time: each row is consistent, but the set is no snapshot.
 *
 * Must not know which locks this backend holds.
 *
 * Each role sees all rows.  Which lock it is and whose session, the token and the
 * znode are only shown to the role of that session and to roles that may read all
 * statistics: the one would tell the other.
 */
#include "postgres.h"

#include "backend/admission.h"
#include "backend/refusal.h"
#include "functions/row.h"
#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "utils/timestamp.h"
#include "wire/version.h"
#include "znode/znode.h"

ZKL_FUNCTION(zkl_sql_locks);
ZKL_FUNCTION(zkl_sql_status);
ZKL_FUNCTION(zkl_sql_version);

/* ---- zk_locks ---- */

/* Copies a slot consistently.  False: it is not to be shown. */
static bool
copy_shown(int slotno, ZklSlot *slot)
{
	if (zkl_slot_peek(slotno) == ZKL_SLOT_FREE)
		return false;
	zkl_slot_copy(slotno, slot);
	if (slot->s_request.guard && slot->s_state != ZKL_SLOT_WAITING)
		return false;
	if (slot->s_record.stays && slot->s_state == ZKL_SLOT_RELEASED)
		return false;			/* other rows show the hold that its znode is
								 * for */
	return slot->s_request.kind == ZKL_KIND_LOCK &&
		zkl_row_slot_state(slot) != NULL;
}

static void
add_slot_znode(ZklRow *row, const ZklSlot *slot)
{
	char		name[ZKL_MAX_ZNODE_NAME + 1];

	if (!slot->s_record.sent || slot->s_record.seq < 0)
	{
		zkl_row_null(row);
		return;
	}
	zkl_znode_name((ZklDialect) slot->s_request.dialect, &slot->s_record.uuid,
				   slot->s_record.mode, slot->s_record.seq, name);
	zkl_row_znode(row, slot->s_request.path, name, (int) strlen(name));
}

static bool
is_asked_for(const ZklSlot *slot)
{
	uint32		drain = zkl_gate_drain();

	return slot->s_answer.asked_zxid != 0 ||
		(drain != 0 && slot->s_drain == drain);
}

/* Of ms by boottime.h; 0: there is none, or it is over. */
static TimestampTz
time_ahead(int64 ms)
{
	int64		left_ms = ms - zkl_boottime_ms();

	return left_ms <= 0 ? 0 : GetCurrentTimestamp() + left_ms * 1000;
}

/* When the hold or the reservation ends, or the lock is kept no longer */
static TimestampTz
held_until(const ZklSlot *slot)
{
	if (slot->s_state == ZKL_SLOT_GRANTED)
		return time_ahead(slot->s_until);
	if (slot->s_state != ZKL_SLOT_RELEASED)
		return 0;
	return time_ahead(Max(slot->s_keep_until, slot->s_lost_until));
}

static void
put_slot(FunctionCallInfo fcinfo, const ZklSlot *slot)
{
	ZklRow		row = {0};
	bool		visible = zkl_row_slot_is_visible(slot);
	bool		granted = slot->s_state == ZKL_SLOT_GRANTED;
	bool		cached = slot->s_state == ZKL_SLOT_CACHED;

	row.hidden = !visible;
	zkl_row_utf8(&row, slot->s_request.path, zkl_slot_shown_length(slot));
	row.hidden = false;
	zkl_row_text(&row, zkl_row_slot_mode(slot));
	zkl_row_text_or_null(&row, zkl_row_slot_lifetime(slot));
	zkl_row_text(&row, zkl_row_slot_state(slot));
	row.hidden = !visible || !zkl_row_slot_has_session(slot);
	zkl_row_int_or_null(&row, slot->s_request.pid);
	row.hidden = !visible || zkl_row_slot_granted_at(slot) == 0;
	zkl_row_int64(&row, slot->s_answer.token);
	row.hidden = false;
	zkl_row_add(&row, Int32GetDatum(granted ? (int32) slot->s_holder.holds : 0));
	zkl_row_time_or_null(&row, cached ? 0 : slot->s_request.requested_at);
	zkl_row_time_or_null(&row, zkl_row_slot_granted_at(slot));
	row.hidden = !visible;
	add_slot_znode(&row, slot);
	row.hidden = false;
	zkl_row_bool(&row, is_asked_for(slot));
	zkl_row_time_or_null(&row, held_until(slot));
	zkl_row_time_or_null(&row, time_ahead(slot->s_promised_until));
	zkl_row_slot_add_session(&row, slot, visible);

	zkl_row_put(fcinfo, &row);
}

Datum
zkl_sql_locks(PG_FUNCTION_ARGS)
{
	int			slotno;

	zkl_gate_check();
	zkl_row_begin_view(fcinfo, "zk_locks");
	for (slotno = 0; slotno < zkl_control->ctl_nrequests; slotno++)
	{
		ZklSlot		slot;

		CHECK_FOR_INTERRUPTS();
		if (copy_shown(slotno, &slot))
			put_slot(fcinfo, &slot);
	}
	return (Datum) 0;
}

/* ---- zk_status ---- */

typedef struct SlotCounts
{
	int64		held;
	int64		waiting;
	int64		cached;
} SlotCounts;

/*
 * Without the slots' mutexes, which the worker would wait for if this backend were
 * stopped.  Whether a request is for a guard stays as it is until the slot is free.
 */
static SlotCounts
count_slots(void)
{
	SlotCounts	counts = {0};
	int			slotno;

	for (slotno = 0; slotno < zkl_control->ctl_nrequests; slotno++)
	{
		ZklSlotState state = zkl_slot_peek(slotno);

		counts.held += (state == ZKL_SLOT_GRANTED &&
						!zkl_slots[slotno].s_request.guard) ||
			zkl_slot_is_reserved(&zkl_slots[slotno]);
		counts.waiting += state == ZKL_SLOT_WAITING;
		counts.cached += state == ZKL_SLOT_CACHED;
	}
	return counts;
}

static void
add_lease(ZklRow *row)
{
	uint32		generation;
	int64		deadline;

	zkl_lease_read(&generation, &deadline);
	if (deadline != 0)
		zkl_row_interval_ms(row, Max(deadline - zkl_boottime_ms(), 0));
	else
		zkl_row_null(row);
}

Datum
zkl_sql_status(PG_FUNCTION_ARGS)
{
	ZklStatus	status;
	SlotCounts	counts;
	ZklRow		row = {0};
	bool		hosts = zkl_refusal_may_see_hosts();

	zkl_gate_check();
	zkl_row_begin_view(fcinfo, "zk_status");
	zkl_status_copy(&status);
	counts = count_slots();

	zkl_row_text(&row, zkl_refusal_worker_state_name(&status));
	row.hidden = !hosts;
	zkl_row_utf8_or_null(&row, status.server, sizeof(status.server));
	row.hidden = false;
	zkl_row_session_id(&row, status.session_id);
	zkl_row_interval_ms_or_null(&row, status.timeout_ms);
	add_lease(&row);
	zkl_row_time_or_null(&row, status.state == ZKL_STATE_CONNECTED ?
						 status.connected_since : 0);
	zkl_row_int64(&row, counts.held);
	zkl_row_int64(&row, counts.waiting);
	zkl_row_int64(&row, counts.cached);
	zkl_row_bool(&row, zkl_gate_drain() != 0);
	row.hidden = !hosts;
	zkl_row_utf8_or_null(&row, status.last_error, sizeof(status.last_error));
	row.hidden = false;
	zkl_row_time_or_null(&row, status.last_error_at);
	zkl_row_int_or_null(&row, status.worker_pid);
	zkl_row_int_or_null(&row, status.session_pid);

	zkl_row_put(fcinfo, &row);
	return (Datum) 0;
}

/* ---- zk_version() ---- */

Datum
zkl_sql_version(PG_FUNCTION_ARGS)
{
	ZklScriptAge age;
	char	   *script = zkl_admission_script_version(&age);
	ZklRow		row = {0};
	ZklStatus	status;

	zkl_gate_check();
	InitMaterializedSRF(fcinfo, 0);
	zkl_status_copy(&status);
	zkl_row_text(&row, ZKL_VERSION);
	zkl_row_utf8_or_null(&row, script ? script : "", script ? strlen(script) : 1);
	zkl_row_utf8_or_null(&row, status.session_version,
						 sizeof(status.session_version));
	zkl_row_int_or_null(&row, (int) status.link_protocol);
	zkl_row_add(&row, Int32GetDatum(ZKL_ZNODE_PROTOCOL));

	zkl_row_put(fcinfo, &row);
	return (Datum) 0;
}
