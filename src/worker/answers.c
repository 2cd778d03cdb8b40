/*
 * answers.c
 *	  Questions of backends that need no operation of their own: zk_dump(), what
 *	  is ahead, zk_reconnect(), renewals, and claims of tickets.
 *
 * Owns the slots of kinds DUMP, AHEAD, RECONNECT, RENEWAL and CLAIM between their
 * submission and their answer.  Runs in the worker only.  Takes the slots' mutexes
 * through worker_slot.h, one at a time.  It decides nothing about locks, and must
 * not know what a dump tells, nor how a connection is made.
 *
 * What is ahead has one or two entries: the nearest request that is in the way, and, if
 * that is another one, the first of the queue.  What the core does not know of them
 * is read from ZooKeeper, if the session wants that, a znode each.
 */
#include "postgres.h"

#include "observe/inspect.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/errand_layout.h"
#include "shared/fleet.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "worker/answers.h"
#include "worker/events.h"
#include "worker/report.h"
#include "worker/supervisor.h"
#include "worker/worker.h"
#include "worker/worker_slot.h"

/* ---- zk_dump() ---- */

static void
put_dump_text(ZklEntries *list, const char *text)
{
	zkl_entries_put_bytes(list, text, (uint32) strlen(text));
}

/*
 * The pid is that of the request's backend; 0: the item is about no request, or no
 * session has the lock that it is about.
 */
static void
put_item(void *context, const ZklDumpItem *item)
{
	ZklEntries *list = context;
	ZklSlot		slot;
	int32		pid = 0;

	if (item->request >= 0)
	{
		zkl_slot_copy((int) item->request, &slot);
		pid = slot.s_state == ZKL_SLOT_CACHED ? 0 : slot.s_request.pid;
	}
	put_dump_text(list, item->path);
	put_dump_text(list, item->item);
	zkl_entries_put(list, &pid, sizeof(int32));
	put_dump_text(list, item->state);
	list->count++;
}

static Size
write_dump(void *address, Size size, void *arg)
{
	ZklEntries	list;

	zkl_entries_begin(&list, address, size);
	zkl_dump_write(zkl_core, zkl_boottime_us(), put_item, &list);
	return zkl_entries_end(&list);
}

static bool
submit_dump(ZklTask *task, const ZklSlot *slot, bool restored)
{
	zkl_segment_answer(task->slotno, slot->s_dsm, write_dump, NULL);
	return false;
}

const ZklTaskOwner zkl_answers_of_dumps = {
	.size = sizeof(ZklTask),
	.submit = submit_dump,
};

/* ---- what is ahead ---- */

#define MOST_QUEUED	2

/* One of those that are ahead */
typedef struct
{
	char		znode[ZKL_MAX_ZNODE_NAME + 1];	/* empty: of this server */
	TimestampTz kept_until;
	uint32		length;
	char		data[ZKL_MAX_NODE_DATA];
} Queued;

typedef struct
{
	ZklTask		task;
	dsm_handle	segment;		/* for the answer */
	char		path[ZKL_MAX_NAME + 1]; /* of the lock */
	int64		place;
	int			n;
	int			unread;			/* how many are being read */
	Queued		queued[MOST_QUEUED];
} AheadTask;

static Size
write_ahead(void *address, Size size, void *arg)
{
	const AheadTask *ahead = arg;
	ZklEntries	list;
	int			i;

	zkl_entries_begin(&list, address, size);
	for (i = 0; i < ahead->n; i++)
	{
		const Queued *queued = &ahead->queued[i];
		ZklAheadEntry entry = {0};

		entry.place = ahead->place;
		entry.kept_until = queued->kept_until;
		entry.name = queued->znode;
		entry.name_length = (uint32) strlen(queued->znode);
		entry.data = queued->data;
		entry.data_length = queued->length;
		zkl_entries_add(&list, &entry);
	}
	return zkl_entries_end(&list);
}

static void
answer(AheadTask *ahead)
{
	zkl_segment_answer(ahead->task.slotno, ahead->segment, write_ahead, ahead);
}

static void
take_queued_data(Queued *queued, const char *data, size_t length)
{
	queued->length = (uint32) Min(length, sizeof(queued->data));
	memcpy(queued->data, data, queued->length);
}

/* Until when a lock without a session is surely kept, by boottime.h; 0: it has one. */
static int64
kept_until(const ZklSlot *slot)
{
	int64		until = slot->s_request.lifetime >= ZKL_HELD_LIFETIMES ?
	slot->s_keep_until : slot->s_promised_until;

	return slot->s_state == ZKL_SLOT_RELEASED && until > zkl_boottime_ms() &&
		slot->s_keep_until <= until ? until : 0;
}

/* What the core knows.  False: its name is too long for one of a contender. */
static bool
note(AheadTask *ahead, const ZklQueued *known)
{
	Queued	   *queued = &ahead->queued[ahead->n];
	ZklSlot		slot;
	int64		until;

	if (known->request >= 0)
	{
		zkl_slot_copy((int) known->request, &slot);
		queued->length = (uint32) zkl_from_slots_node_data(&slot, queued->data);
		until = kept_until(&slot);
		if (until != 0)
			queued->kept_until = GetCurrentTimestamp() + (until - zkl_boottime_ms()) * 1000;
	}
	else if (strlcpy(queued->znode, known->znode, sizeof(queued->znode)) >=
			 sizeof(queued->znode))
		return false;
	else if (known->data != NULL)
		take_queued_data(queued, known->data, known->data_length);
	ahead->n++;
	return true;
}

static bool
is_same(const ZklQueued *a, const ZklQueued *b)
{
	return a->request == b->request &&
		(a->request >= 0 || strcmp(a->znode, b->znode) == 0);
}

static bool
is_unread(const Queued *queued)
{
	return queued->znode[0] != '\0' && queued->length == 0;
}

static bool
is_any_unread(const AheadTask *ahead)
{
	return is_unread(&ahead->queued[0]) ||
		(ahead->n > 1 && is_unread(&ahead->queued[1]));
}

/* Answers at once if nothing has to be read. */
static bool
submit_ahead(ZklTask *task, const ZklSlot *slot, bool restored)
{
	AheadTask  *ahead = (AheadTask *) task;
	ZklNearest	nearest;

	ahead->segment = slot->s_dsm;
	if (!zkl_manager_nearest(zkl_core, (uint32) slot->s_request.about, &nearest) ||
		!note(ahead, &nearest.nearest))
	{
		(void) zkl_worker_slot_deny(task->slotno);
		return false;
	}
	ahead->place = nearest.place;
	if (!is_same(&nearest.nearest, &nearest.first))
		(void) note(ahead, &nearest.first);
	if (slot->s_request.reads && is_any_unread(ahead))
	{
		strlcpy(ahead->path, slot->s_request.path, sizeof(ahead->path));
		return true;
	}
	answer(ahead);
	return false;
}

static void
begin_ahead(ZklTask *task)
{
	AheadTask  *ahead = (AheadTask *) task;
	int			i;

	ahead->unread = 0;
	for (i = 0; i < ahead->n; i++)
	{
		char	   *path;

		if (!is_unread(&ahead->queued[i]))
			continue;
		path = psprintf("%s%s/%s", zkl_root, ahead->path, ahead->queued[i].znode);
		ahead->unread++;
		zkl_operation_send(task, (uint32) i, ZKL_SEND_GET, path, false);
		pfree(path);
	}
}

/*
 * The session does not wait long for it: nothing is read twice.  A znode that is gone
 * stays without data.
 */
static void
take_ahead_reply(ZklTask *task, uint32 part, const ZklReply *reply,
				 const ZklWireStat *stat)
{
	AheadTask  *ahead = (AheadTask *) task;

	if (reply->rc == ZKL_RC_OK)
		take_queued_data(&ahead->queued[part], reply->data, reply->data_length);
	if (--ahead->unread > 0)
		return;
	answer(ahead);
	zkl_operation_end(task);
}

const ZklTaskOwner zkl_answers_of_ahead = {
	.size = sizeof(AheadTask),
	.submit = submit_ahead,
	.begin = begin_ahead,
	.reply = take_ahead_reply,
};

/* ---- reconnects: backends that wait for another connection: zk_reconnect() ---- */

/*
 * Takes the slots' mutexes through worker_slot.h, one at a time.  It must not know
 * how settings are tried, nor how a connection is made.
 *
 * A task waits for the end of a trial that begins with it, which also answers those
 * that wait already, and then until a connection of after that is proved.  The answer
 * is a text: what is wrong, or nothing.
 */

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

/* ---- renewals: reservations that are renewed or cancelled ---- */

/*
 * Takes the slots' mutexes through worker_slot.h, one at a time.
 *
 * A reservation is a hold that is kept after its release.  Only the core knows whether
 * it still keeps it, and ends it by its own timer.  So a renewal goes through the
 * worker: it counts only if the core keeps the hold behind it.
 */

static bool
is_meant(const ZklSlot *reserved, const ZklSlotRequest *renewal)
{
	return zkl_slot_is_reserved(reserved) &&
		reserved->s_answer.token == renewal->token &&
		reserved->s_request.dialect == renewal->dialect &&
		strcmp(reserved->s_request.path, renewal->path) == 0;
}

/*
 * until: in ms of boottime.h; 0: the reservation ends.  What its role was told is kept,
 * unless it is that role who ends it.
 */
static bool
renew(int slotno, int64 until, bool by_other)
{
	bool		ends = until == 0;
	bool		kept;

	until = zkl_worker_slot_renew(slotno, until, by_other);
	zkl_worker_tell(ZKL_EVENT(RELEASE,.request = (uint32) slotno,
							  .end.keep_until = until * 1000));
	kept = zkl_manager_keeps(zkl_core, (uint32) slotno);
	zkl_worker_slot_keep(slotno, kept ? until : 0);
	return kept || ends;
}

/*
 * A renewal that counts is answered behind the next beat: then whoever asks for the lease
 * right afterwards is told as much as there can be.  All renewals wait for the same one.
 */
typedef struct
{
	ZklTask		task;
	dlist_node	node;			/* in "waiting"; of a claim before, in
								 * "claims" */
	int64		token;			/* the answer */
	int64		lease;			/* ms, as it was when the renewal came */
	int64		until;			/* us: it waits no longer than that */
} Renewal;

static dlist_head waiting = DLIST_STATIC_INIT(waiting);

static int64
lease_now(void)
{
	uint32		generation;
	int64		deadline_ms;

	zkl_lease_read(&generation, &deadline_ms);
	return deadline_ms;
}

/* A claim whose answer would be behind the end of the lease: see below. */
static void claim_again(Renewal *renewal);

/* Whether a beat has been acknowledged just now */
static bool
has_just_been_proved(int64 lease, int64 now)
{
	return lease - now / 1000 >= (int64) zkl_status_timeout_ms() * 60 / 100;
}

/* The answer waits for that beat, if there has been none just now and "proof" is wanted. */
static void
answer_soon(Renewal *renewal, int64 token, bool proof)
{
	int64		now = zkl_boottime_us();

	zkl_worker_tell(ZKL_EVENT(PROVE));
	renewal->token = token;
	renewal->lease = lease_now();
	renewal->until = now;
	if (proof && !has_just_been_proved(renewal->lease, now))
		renewal->until += (int64) Min(zkl_status_timeout_ms() / 10, ZKL_LONGEST_PROOF_MS) * 1000;
	dlist_push_tail(&waiting, &renewal->node);
}

static bool
submit_renewal(ZklTask *task, const ZklSlot *slot, bool restored)
{
	Renewal    *renewal = (Renewal *) task;
	const ZklSlotRequest *wanted = &slot->s_request;
	ZklSlot		reserved;

	zkl_slot_copy(wanted->about, &reserved);
	if (!is_meant(&reserved, wanted) ||
		!renew(wanted->about, wanted->renewed_for == 0 ? 0 :
			   zkl_boottime_ms() + wanted->renewed_for, wanted->by_other))
	{
		(void) zkl_worker_slot_deny(task->slotno);
		return false;
	}
	answer_soon(renewal, 0, wanted->renewed_for != 0);
	return true;
}

/* The frame has nothing to do for it. */
static void
begin_renewal(ZklTask *task)
{
	zkl_operation_pause(task, PG_INT64_MAX);
}

static void
end_renewal(ZklTask *task, bool connected)
{
	dlist_delete(&((Renewal *) task)->node);
}

const ZklTaskOwner zkl_renewals_owner = {
	.size = sizeof(Renewal),
	.submit = submit_renewal,
	.begin = begin_renewal,
	.end = end_renewal,
};

void
zkl_renewals_tick(void)
{
	int64		now = zkl_boottime_us();
	int64		lease = lease_now();
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &waiting)
	{
		Renewal    *renewal = dlist_container(Renewal, node, iter.cur);

		if (lease <= renewal->lease && now < renewal->until)
			continue;
		if (renewal->token != 0 && lease <= now / 1000)
		{
			claim_again(renewal);
			continue;
		}
		(void) zkl_worker_slot_grant(renewal->task.slotno, renewal->token, false);
		zkl_operation_end(&renewal->task);
	}
}

int64
zkl_renewals_timer(void)
{
	int64		due = -1;
	dlist_iter	iter;

	dlist_foreach(iter, &waiting)
	{
		const Renewal *renewal = dlist_container(Renewal, node, iter.cur);

		if (due < 0 || renewal->until < due)
			due = renewal->until;
	}
	return due;
}

void
zkl_renewals_log_end(void)
{
	int			i;

	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		ZklSlot		slot;

		if (zkl_slot_peek(i) != ZKL_SLOT_RELEASED)
			continue;
		zkl_slot_copy(i, &slot);
		if (zkl_slot_is_reserved(&slot))
			ereport(LOG,
					(errmsg("the reservation of distributed lock \"%s\" ends with the ZooKeeper session, as the server stops",
							slot.s_request.path),
					 errdetail("Role \"%s\" had reserved it until %s.  ZooKeeper lets others have the lock at the latest when the session has expired.",
							   slot.s_request.usename,
							   timestamptz_to_str(GetCurrentTimestamp() +
												  (slot.s_keep_until - zkl_boottime_ms()) * 1000))));
	}
}

/* ---- tickets: granted ones, and those who claim them ---- */

/*
 * Takes the slots' mutexes through worker_slot.h, one at a time; no lock that a session
 * holds while it waits.
 *
 * The worker alone gives tickets out, so each is given once.  A claim is a renewal of what
 * the core keeps: it counts only if the core keeps it behind it, and only while the lease
 * lasts, so that what is handed out is good.
 */

typedef struct
{
	Renewal		renewal;		/* first in "claims", then as all renewals */
	Oid			roleid;
	bool		hurries;		/* its time was over as it came */
	int64		ticket;			/* 0: the next one ... */
	char	   *names;			/* ... of these locks, each with its NUL, and
								 * an empty one; NULL: of any */
	bool		given;			/* the question has its ticket */
} Claim;

static dlist_head claims = DLIST_STATIC_INIT(claims);

/* By slot: tickets that are granted; an old one may be claimed, or over */
static dlist_head granted = DLIST_STATIC_INIT(granted);
static dlist_node *granted_nodes = NULL;
static bool *is_granted = NULL;
static bool claims_are_due = false; /* there is another ticket, or claim */

void
zkl_tickets_begin(void)
{
	Size		n = zkl_control->ctl_nrequests;

	granted_nodes = MemoryContextAllocZero(TopMemoryContext, n * sizeof(dlist_node));
	is_granted = MemoryContextAllocZero(TopMemoryContext, n * sizeof(bool));
}

static void
forget_granted(int slotno)
{
	if (is_granted[slotno])
		dlist_delete(&granted_nodes[slotno]);
	is_granted[slotno] = false;
}

void
zkl_tickets_granted(int slotno)
{
	if (zkl_slots[slotno].s_request.ticket == 0)
		return;
	forget_granted(slotno);
	dlist_push_tail(&granted, &granted_nodes[slotno]);
	is_granted[slotno] = claims_are_due = true;
}

void
zkl_tickets_lapsed(int slotno)
{
	ZklSlot		slot;

	zkl_status_begin()->tickets_lapsed++;
	zkl_status_end();
	zkl_slot_copy(slotno, &slot);
	zkl_report_lost(&slot, ZKL_ERROR_UNCLAIMED);
}

void
zkl_tickets_withdraw_all(void)
{
	int			i;

	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		ZklSlot		slot;

		if (zkl_slot_peek(i) <= ZKL_SLOT_CLAIMED)
			continue;
		zkl_slot_copy(i, &slot);
		if (zkl_slot_is_ticket(&slot))
			(void) zkl_slot_withdraw(i, slot.s_request.ticket, true);
	}
}

/* ---- claims ---- */

static bool
is_among(const char *names, const char *path)
{
	for (; names[0] != '\0'; names += strlen(names) + 1)
	{
		if (strcmp(names, path) == 0)
			return true;
	}
	return false;
}

/* What does not change while the slot is a ticket's is read without its mutex. */
static bool
suits(const Claim *claim, int slotno)
{
	const ZklSlotRequest *request = &zkl_slots[slotno].s_request;

	if (claim->ticket != 0)
		return request->ticket == claim->ticket;
	return request->roleid == claim->roleid &&
		(claim->names == NULL || is_among(claim->names, request->path));
}

/* From here on it is a reservation, with that token; 0: it is not to be had. */
static int64
give_out(int slotno)
{
	ZklSlot		slot;
	int64		until;

	zkl_slot_copy(slotno, &slot);
	if (slot.s_request.ticket == 0 || slot.s_state != ZKL_SLOT_RELEASED ||
		!zkl_slot_is_ticket(&slot))
	{
		forget_granted(slotno);
		return 0;
	}
	if (!zkl_lease_is_valid(slot.s_record.generation) || !zkl_root_admits(&slot))
	{
		claims_are_due = true;
		return 0;
	}
	until = zkl_boottime_ms() + slot.s_request.duration;
	zkl_worker_tell(ZKL_EVENT(RELEASE,.request = (uint32) slotno,
							  .end.keep_until = until * 1000));
	if (!zkl_manager_keeps(zkl_core, (uint32) slotno))
		return 0;
	if (!zkl_worker_slot_claim(slotno, slot.s_request.ticket, until))
	{
		/* It has ended since, but the core keeps it for the reservation. */
		zkl_dirty_set(slotno, ZKL_WAKE_NOW);
		return 0;
	}
	forget_granted(slotno);
	zkl_status_begin()->tickets_claimed++;
	zkl_status_end();
	return slot.s_answer.token;
}

/* The token of the first one that suits; 0: there is none. */
static int64
find_ticket(const Claim *claim)
{
	dlist_mutable_iter iter;
	int64		token;

	dlist_foreach_modify(iter, &granted)
	{
		int			slotno = (int) (iter.cur - granted_nodes);

		if (suits(claim, slotno) && (token = give_out(slotno)) != 0)
			return token;
	}
	return 0;
}

static void
read_names(void *address, Size size, void *arg)
{
	Claim	   *claim = arg;

	claim->names = MemoryContextAllocZero(TopMemoryContext, size + 2);
	memcpy(claim->names, address, size);
}

static bool
submit_claim(ZklTask *task, const ZklSlot *slot, bool restored)
{
	Claim	   *claim = (Claim *) task;

	claim->roleid = slot->s_request.roleid;
	claim->ticket = slot->s_request.token;
	claim->hurries = claim->ticket != 0 || slot->s_holder.timed_out;
	if (slot->s_dsm != DSM_HANDLE_INVALID && !zkl_segment_use(slot->s_dsm, read_names, claim))
	{
		(void) zkl_worker_slot_fail(task->slotno, ZKL_ERROR_SEGMENT, 0);
		return false;
	}
	dlist_push_tail(&claims, &claim->renewal.node);
	claims_are_due = true;
	return true;
}

static void
deny_claim(ZklTask *task)
{
	if (((Claim *) task)->given)
		return;
	(void) zkl_worker_slot_deny(task->slotno);
	zkl_operation_end(task);
}

static void
end_claim(ZklTask *task, bool connected)
{
	Claim	   *claim = (Claim *) task;

	dlist_delete(&claim->renewal.node);
	if (claim->names != NULL)
		pfree(claim->names);
}

const ZklTaskOwner zkl_claims_owner = {
	.size = sizeof(Claim),
	.submit = submit_claim,
	.begin = begin_renewal,
	.timed_out = deny_claim,
	.end = end_claim,
};

/*
 * Whoever asks for one ticket does not wait for it.  Without a lease nothing is given out,
 * so that nobody looks through all tickets, for each claim, as long as ZooKeeper is away.
 */
void
zkl_claims_tick(void)
{
	bool		has_lease = zkl_boottime_ms() < lease_now();
	dlist_mutable_iter iter;

	if (!claims_are_due)
		return;
	claims_are_due = !has_lease;
	dlist_foreach_modify(iter, &claims)
	{
		Claim	   *claim = (Claim *) dlist_container(Renewal, node, iter.cur);
		int64		token = has_lease ? find_ticket(claim) : 0;

		if (token != 0)
		{
			claim->given = true;
			zkl_worker_slot_note_claimed(claim->renewal.task.slotno, token);
			dlist_delete(&claim->renewal.node);
			answer_soon(&claim->renewal, token, true);
		}
		else if (claim->hurries)
			deny_claim(&claim->renewal.task);
	}
}

/* From the session that asked, or was to be told, to the core */
static void
give_back(int slotno, int64 token)
{
	int64		until = zkl_worker_slot_unclaim(slotno, token);

	if (until == 0)
		return;
	zkl_worker_tell(ZKL_EVENT(RELEASE,.request = (uint32) slotno,
							  .end.keep_until = until * 1000));
	if (zkl_gate_read() != ZKL_GATE_OPEN || zkl_gate_drain() != 0)
		(void) zkl_slot_withdraw(slotno, zkl_slots[slotno].s_request.ticket, true);
	else
		zkl_tickets_granted(slotno);
}

static void
give_token_back(int64 token)
{
	int			i;

	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		if (zkl_slot_peek(i) == ZKL_SLOT_RELEASED && zkl_slots[i].s_request.ticket != 0)
			give_back(i, token);
	}
}

void
zkl_claims_give_back(const ZklSlot *question)
{
	if (question->s_answer.token != 0 && !question->s_holder.taken)
		give_token_back(question->s_answer.token);
}

static void
claim_again(Renewal *renewal)
{
	Claim	   *claim = (Claim *) renewal;

	claim->given = false;
	claim->hurries |= zkl_slots[renewal->task.slotno].s_holder.timed_out;
	zkl_worker_slot_note_claimed(renewal->task.slotno, 0);
	dlist_delete(&renewal->node);
	dlist_push_head(&claims, &renewal->node);
	claims_are_due = true;
	give_token_back(renewal->token);
}
