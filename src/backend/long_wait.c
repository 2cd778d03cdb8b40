/*
 * long_wait.c
 *	  What a session does while it waits for a lock for longer than
 *	  "deadlock_timeout".
 *
 * Owns the question that it asks the worker for the log.  Run by backends.
 * Takes no locks but, through slot.h, those of slots.
 *
 * Must not know how the wait ends, nor what a deadlock is.
 *
 * There are two things to do.  It looks again and again which sessions wait for
 * it in PostgreSQL's own locks: behind.c.  And if "log_lock_waits" is on, it logs
 * once that it waits, and once that it has got the lock, as PostgreSQL does.  The
 * worker tells it what is ahead; that may cost a request to ZooKeeper, so the
 * session goes on waiting for the lock meanwhile.
 */
#include "postgres.h"

#include "backend/attempt.h"
#include "backend/behind.h"
#include "backend/long_wait.h"
#include "backend/request.h"
#include "backend/slot.h"
#include "backend/stall.h"
#include "backend/text.h"
#include "backend/wait.h"
#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/deadlocks.h"
#include "shared/listing.h"
#include "shared/settings.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

#define LEAST_PATIENCE_MS	100
#define ANSWER_SIZE			((Size) 8192)	/* a znode's data and name fit */
#define ANSWER_WAIT_MS		1000
#define MAX_SHOWN			256 /* bytes of a znode's data */
#define LAST_SINCE			(END_TIMESTAMP / 1000)	/* in ms */

int
zkl_long_wait_patience(void)
{
	return Max(DeadlockTimeout, LEAST_PATIENCE_MS);
}

static bool
is_waiting(const ZklLongWait *wait)
{
	return wait->slotno != ZKL_NO_SLOT &&
		zkl_slot_peek(wait->slotno) == ZKL_SLOT_WAITING;
}

static void
set_due(ZklLongWait *wait)
{
	wait->due = Min(wait->look, wait->report);
}

/* The wait that was the last one to end: another one may go on with it. */
static struct
{
	int			slotno;
	uint32		serial;
	int64		start;
	bool		reported;
}			last = {ZKL_NO_SLOT};

static void
continue_wait(ZklLongWait *wait)
{
	if (wait->slotno == ZKL_NO_SLOT || wait->slotno != last.slotno ||
		zkl_slots[wait->slotno].s_serial != last.serial)
		return;
	wait->start = last.start;
	wait->reported = last.reported;
}

void
zkl_long_wait_begin(ZklLongWait *wait, int slotno, const char *name)
{
	const ZklSlotRequest *request;

	memset(wait, 0, sizeof(*wait));
	wait->slotno = slotno;
	wait->name = name;
	wait->asked = ZKL_NO_SLOT;
	wait->start = zkl_wait_clock();
	wait->due = wait->look = wait->report = ZKL_NEVER;
	continue_wait(wait);
	if (!is_waiting(wait))
		return;
	request = &zkl_slots[slotno].s_request;
	if (request->kind != ZKL_KIND_LOCK)
		return;
	if (request->patience > 0)
		wait->look = zkl_wait_after_ms(wait->start, request->patience);
	if (log_lock_waits && !wait->reported)
		wait->report = zkl_wait_after_ms(wait->start, DeadlockTimeout);
	set_due(wait);
}

/* ---- deadlocks ---- */

static void
look_behind(ZklLongWait *wait, int64 now)
{
	const ZklSlot *slot = &zkl_slots[wait->slotno];
	int			patience = slot->s_request.patience;
	int64		boottime = zkl_boottime_us();
	int64		next;

	if (wait->since == 0)
	{
		zkl_slot_set_patient(wait->slotno);
		wait->since = boottime;
	}
	/* Who has told of others looks on until they are taken back. */
	if (!zkl_deadlock_detection && slot->s_behind.n == 0)
		next = boottime + (int64) patience * 1000;
	else if (zkl_deadlocks_may_look(boottime, &wait->since, patience, &next))
	{
		zkl_behind_look();
		wait->since = zkl_boottime_us();
	}

	/* Only right behind a look does the core decide on a deadlock. */
	if (slot->s_behind.n > 0)
		next = Min(next, boottime + (int64) patience * 1000 / 2);
	wait->look = now + next - boottime;
}

/* ---- the log ---- */

/*
 * The descriptor of a segment that was refused belongs to the resource owner, so this
 * is called in a subtransaction.  The segment outlives it.
 */
static void
make_segment(void *arg)
{
	ZklLongWait *wait = (ZklLongWait *) arg;

	wait->segment = dsm_create(ANSWER_SIZE, 0);
	dsm_pin_mapping(wait->segment);
}

/* If there is no memory for the answer, the wait goes on without it. */
static bool
can_make_segment(ZklLongWait *wait)
{
	if (zkl_attempt_run(make_segment, wait) != NULL)
	{
		wait->segment = NULL;
		return false;
	}
	dsm_unpin_mapping(wait->segment);
	return true;
}

static void
ask_what_is_ahead(ZklLongWait *wait)
{
	ZklTarget	target = {0};
	const ZklSlotRequest *request = &zkl_slots[wait->slotno].s_request;

	if (!zkl_request_has_own_slot() || !can_make_segment(wait))
		return;
	target.name = wait->name;
	target.path = request->path;
	target.dialect = (ZklDialect) request->dialect;
	wait->under_way = zkl_request_count();
	wait->asked = zkl_request_claim(&target, ZKL_KIND_AHEAD);
	zkl_slots[wait->asked].s_request.about = wait->slotno;
	zkl_slots[wait->asked].s_dsm = dsm_segment_handle(wait->segment);
	zkl_request_submit(wait->asked, false);
}

static void
forget_question(ZklLongWait *wait)
{
	if (wait->asked != ZKL_NO_SLOT)
		zkl_request_abandon(wait->under_way);
	if (wait->segment != NULL)
		dsm_detach(wait->segment);
	wait->asked = ZKL_NO_SLOT;
	wait->segment = NULL;
}

static const char *
shown(const char *text, size_t size)
{
	return zkl_text_to_display(text, (int) strnlen(text, size));
}

/* A leader, or another client: its znode has a text, or nothing readable. */
static const char *
describe_znode(const ZklListingEntry *entry)
{
	const char *name = zkl_text_to_display(entry->name,
										   (int) entry->name_length);

	if (entry->data_length == 0 || entry->data_length > MAX_SHOWN)
		return psprintf("znode \"%s\"", name);
	return psprintf("znode \"%s\", which says \"%s\"", name,
					zkl_text_to_display(entry->data,
										(int) entry->data_length));
}

/* What is ahead, as far as it says who it is; NULL: not known */
static const char *
describe_ahead(const ZklLongWait *wait, int64 *place)
{
	ZklListing	list;
	ZklListingEntry entry;
	ZklNodeData data;

	zkl_listing_open(&list, dsm_segment_address(wait->segment),
					 dsm_segment_map_length(wait->segment));
	if (!zkl_listing_next(&list, &entry))
		return NULL;
	*place = entry.seq;
	if (!zkl_node_data_parse(entry.data, entry.data_length, &data))
		return describe_znode(&entry);
	if (data.cached)
		return psprintf("server \"%s\", which may have it cached",
						shown(data.server, sizeof(data.server)));
	if (data.since < 0 || data.since >= LAST_SINCE)
		data.since = 0;			/* another client can write what it likes */
	return psprintf("process %d of server \"%s\", user \"%s\", since %s",
					data.pid, shown(data.server, sizeof(data.server)),
					shown(data.usename, sizeof(data.usename)),
					timestamptz_to_str(time_t_to_timestamptz((pg_time_t) (data.since / 1000))));
}

static void
report_wait(ZklLongWait *wait, int64 now)
{
	const char *ahead = NULL;
	int64		place = 0;
	int64		waited = now - wait->start;

	if (wait->asked != ZKL_NO_SLOT &&
		zkl_slot_peek(wait->asked) == ZKL_SLOT_GRANTED)
		ahead = describe_ahead(wait, &place);
	wait->report = ZKL_NEVER;
	wait->reported = true;
	ereport(LOG,
			(errmsg("process %d still waiting for distributed lock \"%s\" after %lld.%03d ms",
					MyProcPid, wait->name, (long long) (waited / 1000),
					(int) (waited % 1000)),
			 ahead == NULL ? 0 :
			 errdetail_log("Nearest request ahead: %s.  Place in the queue: %lld.",
						   ahead, (long long) place)));
	forget_question(wait);
}

/* First asks, then reports, when the answer is there or takes too long. */
static bool
act_on_report(ZklLongWait *wait, int64 now)
{
	bool		is_asked = wait->asked != ZKL_NO_SLOT;

	if (!is_asked && now >= wait->report)
	{
		ask_what_is_ahead(wait);
		if (wait->asked != ZKL_NO_SLOT)
			wait->report = zkl_wait_after_ms(now, ANSWER_WAIT_MS);
		else
			report_wait(wait, now);
		return true;
	}
	if (now >= wait->report ||
		(is_asked && zkl_slot_peek(wait->asked) != ZKL_SLOT_WAITING))
	{
		report_wait(wait, now);
		return true;
	}
	return false;
}

bool
zkl_long_wait_act(ZklLongWait *wait)
{
	int64		now;
	bool		acted;

	if (wait->due == ZKL_NEVER || !is_waiting(wait))
	{
		wait->due = ZKL_NEVER;
		return false;
	}
	now = zkl_wait_clock();
	acted = now >= wait->look;
	if (acted)
		look_behind(wait, now);
	if (wait->report != ZKL_NEVER)
		acted |= act_on_report(wait, now);
	set_due(wait);
	return acted;
}

void
zkl_long_wait_end(ZklLongWait *wait)
{
	int64		waited = zkl_wait_clock() - wait->start;

	forget_question(wait);
	if (wait->reported && zkl_slot_peek(wait->slotno) == ZKL_SLOT_GRANTED)
	{
		wait->reported = false;
		ereport(LOG,
				(errmsg("process %d acquired distributed lock \"%s\" after %lld.%03d ms",
						MyProcPid, wait->name, (long long) (waited / 1000),
						(int) (waited % 1000))));
	}
	if (wait->slotno == ZKL_NO_SLOT)
		return;
	last.slotno = wait->slotno;
	last.serial = zkl_slots[wait->slotno].s_serial;
	last.start = wait->start;
	last.reported = wait->reported;
}
