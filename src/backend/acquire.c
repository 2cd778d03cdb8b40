/*
 * acquire.c
 *	  Locks that a call requests: from the call to the hold.
 *
 * Owns the slots of this backend that are under way, from the claim until they are
 * handed over to the caller or abandoned.  wait.c has the wait, hold.c the holds.
 * Run by backends.  Takes no locks but, through backend_slot.h, those of slots and
 * of the list of free slots.
 */
#include "postgres.h"

#include "backend/acquire.h"
#include "backend/admission.h"
#include "backend/commit.h"
#include "backend/errand.h"
#include "backend/refusal.h"
#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/fleet.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "znode/znode.h"

/* ---- under_way ---- */

/*
 * The requests of this backend that are under way, their slots, and how many it may
 * have.
 *
 * Takes no locks but, through backend_slot.h, those of slots.
 *
 * Must not know what a request is for, nor what becomes of it.
 *
 * No slot may leak.  So whatever can throw an error comes before the claim, or
 * inside a PG_TRY of the caller that abandons the request.  A FATAL error goes
 * past PG_CATCH: then an exit callback abandons what is under way.  Only
 * zkl_backend_slot_release decides whether a cancel or the grant came first; in
 * both cases the request ends.
 *
 * "zklock.max_requests_per_session" guards against accidents: one session that
 * takes locks in a loop should not take the last slot from all others.  Nor should
 * some sessions together: "zklock.max_requests_per_role".  The current values of the
 * settings count; they take no lock away.
 */

static uint64 my_owner = 0;		/* 0: this backend never made a request */

/* The slots of what was submitted, in that order; in TopMemoryContext */
static int *under_way = NULL;
static int	nunder_way = 0;
static int	under_way_room = 0;

/* ---- under way ---- */

static void
make_room_under_way(void)
{
	int			room = Max(8, 2 * under_way_room);

	if (nunder_way < under_way_room)
		return;
	if (under_way == NULL)
		under_way = MemoryContextAlloc(TopMemoryContext, room * sizeof(int));
	else
		under_way = repalloc(under_way, room * sizeof(int));
	under_way_room = room;
}

void
zkl_under_way_submit(int slotno, bool more)
{
	Assert(nunder_way < under_way_room);
	under_way[nunder_way++] = slotno;
	zkl_backend_slot_submit(slotno, more);
}

int
zkl_under_way_count(void)
{
	return nunder_way;
}

int
zkl_under_way_slot(int number)
{
	Assert(number < nunder_way);
	return under_way[number];
}

void
zkl_under_way_time_out_all(void)
{
	int			i;

	for (i = 0; i < nunder_way; i++)
		zkl_backend_slot_time_out(under_way[i]);
}

void
zkl_under_way_abandon(int first)
{
	while (nunder_way > first)
		(void) zkl_backend_slot_release(under_way[--nunder_way]);
}

bool
zkl_under_way_run(bool (*get) (void *arg), void *arg)
{
	int			first = nunder_way;
	bool volatile granted = false;

	PG_TRY();
	{
		granted = get(arg);
	}
	PG_FINALLY();
	{
		if (granted)
			nunder_way = first; /* the caller owns their slots */
		else
			zkl_under_way_abandon(first);
	}
	PG_END_TRY();
	return granted;
}

/* ---- the owner ---- */

static void
abandon_at_exit(int code, Datum arg)
{
	zkl_under_way_abandon(0);
}

static void
become_owner(void)
{
	if (my_owner != 0)
		return;
	on_shmem_exit(abandon_at_exit, 0);
	my_owner = pg_atomic_fetch_add_u64(&zkl_control->ctl_next_owner, 1);
}

/* The number by which the slots of this backend are known; 0: none has any */
static uint64
under_way_owner(void)
{
	return my_owner;
}

/* ---- claiming a slot ---- */

/* The address of the client, or "" */
static const char *
client_address(void)
{
	static char address[ZKL_MAX_CLIENT + 1];
	static bool known = false;

	LOCAL_FCINFO(fcinfo, 0);
	Datum		found;

	if (known)
		return address;
	InitFunctionCallInfoData(*fcinfo, NULL, 0, InvalidOid, NULL, NULL);
	found = inet_client_addr(fcinfo);
	if (!fcinfo->isnull)
		strlcpy(address, DatumGetCString(DirectFunctionCall1(inet_out, found)),
				sizeof(address));
	known = true;
	return address;
}

/* Whose request this is; converting a name may fail. */
static void
identify(ZklSlotRequest *who)
{
	char	   *database = NULL;
	char	   *usename = GetUserNameFromId(GetSessionUserId(), true);

	if (OidIsValid(MyDatabaseId))
		database = get_database_name(MyDatabaseId);
	zkl_text_copy_to_utf8(who->database, sizeof(who->database),
						  database ? database : "");
	zkl_text_copy_to_utf8(who->usename, sizeof(who->usename),
						  usename ? usename : "");
	zkl_text_copy_to_utf8(who->application, sizeof(who->application),
						  application_name ? application_name : "");
	strlcpy(who->client, client_address(), sizeof(who->client));
	who->backend_start = MyStartTimestamp;
}

/*
 * Fills in what all kinds of requests have, and zeroes the rest.  Whatever can
 * fail does so here, before a slot is claimed.
 */
static void
under_way_describe(ZklSlotTaker *taker, const ZklTarget *target,
				   ZklSlotKind kind)
{
	ZklSlotRequest *request = &taker->request;

	become_owner();
	make_room_under_way();
	memset(taker, 0, sizeof(ZklSlotTaker));
	identify(request);
	taker->owner = my_owner;
	request->kind = kind;
	request->sibling = -1;
	request->procno = zkl_compat_my_procno();
	request->pid = MyProcPid;
	request->roleid = GetSessionUserId();
	request->claimer = my_owner;
	request->lost_action = zkl_lost_lock_action;
	request->on_release_request = zkl_on_release_request;
	strlcpy(request->path, target->path, sizeof(request->path));
	request->dialect = target->dialect;
	request->requested_at = GetCurrentTimestamp();
}

int
zkl_under_way_claim(const ZklTarget *target, ZklSlotKind kind)
{
	ZklSlotTaker taker;

	under_way_describe(&taker, target, kind);
	return zkl_backend_slot_claim_own(&taker);
}

/* ---- how many there may be ---- */

#define DEFAULT_PER_SESSION	32	/* at least */

/*
 * How many free slots for locks this session leaves for superusers
 *
 * How many slots this session leaves for superusers.  The role that logged in
 * counts, as for the settings of roles.
 */
static int
under_way_spare_slots(void)
{
	return superuser_arg(GetSessionUserId()) ? 0 : ZKL_RESERVED_SLOTS;
}

/* How many slots for locks all sessions of this session's role can have together */
static int
slots_of_role(void)
{
	return zkl_control->ctl_nrequests - under_way_spare_slots();
}

static int
requests_per_session(void)
{
	int			most = zkl_max_requests_per_session;

	if (most < 0)
		most = Max(DEFAULT_PER_SESSION, zkl_control->ctl_nrequests / 4);
	return Min(most, slots_of_role());
}

/* The setting that such a limit comes from */
static const char *
setting_of(int most)
{
	return most == slots_of_role() ? "zklock.max_requests" :
		"zklock.max_requests_per_session";
}

static int
hint_at_setting(int most)
{
	if (most == slots_of_role())
		return errhint("Increase \"zklock.max_requests\" and restart the server.");
	return errhint("A superuser can increase \"zklock.max_requests_per_session\" for this session or its role.");
}

void
zkl_under_way_check_number(int64 wanted, bool of_session)
{
	int			most = of_session ? requests_per_session() : slots_of_role();

	if (wanted > most)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too many distributed locks requested at once"),
				 errdetail("The call needs %lld requests, but \"%s\" allows %d.",
						   (long long) wanted, setting_of(most), most),
				 hint_at_setting(most)));
}

/*
 * What a role has: a glance, without the mutexes, as it is a limit against accidents.
 * What was just released does not count, nor what no session holds.
 */
static int
count_of_role(Oid roleid)
{
	int			n = 0;
	int			i;

	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		const ZklSlot *slot = &zkl_slots[i];
		ZklSlotState state = zkl_slot_peek(i);

		n += state > ZKL_SLOT_CLAIMED && state != ZKL_SLOT_CACHED &&
			(state != ZKL_SLOT_RELEASED || slot->s_keep_until != 0 || slot->s_lost_until != 0 ||
			 slot->s_record.stays) &&
			slot->s_request.roleid == roleid;
	}
	return n;
}

/* As long as all roles together have no more, none has: then nothing is counted. */
void
zkl_under_way_check_role(int wanted)
{
	int			most = zkl_max_requests_per_role < 0 ? zkl_control->ctl_nrequests / 2 :
	zkl_max_requests_per_role;
	int			has;

	if (zkl_control->ctl_nrequests - zkl_control_count_free() + wanted <= most ||
		superuser_arg(GetSessionUserId()))
		return;
	has = count_of_role(GetSessionUserId());
	if (has + wanted <= most)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("too many distributed locks held or awaited by this role"),
			 errdetail("Its sessions, reservations and tickets have %d requests, and the call needs %d more, but \"%s\" allows %d.",
					   has, wanted, "zklock.max_requests_per_role", most),
			 errhint("A superuser can increase \"zklock.max_requests_per_role\" for the role, or \"zklock.max_requests\".")));
}

void
zkl_under_way_check_room(int held, int wanted)
{
	uint64		owner = under_way_owner();
	int			most = requests_per_session();
	int			room = most - held - wanted;
	int			kept;

	zkl_under_way_check_role(wanted);
	if (room >= zkl_backend_slot_count_kept(owner, room))
		return;
	kept = zkl_backend_slot_count_kept(owner, -1);
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("too many distributed locks held or awaited by this session"),
			 errdetail("The session has %d requests, %d of them for locks that are kept after their release, and needs %d more, but \"%s\" allows %d.",
					   held + kept, kept, wanted, setting_of(most), most),
			 hint_at_setting(most)));
}

void
zkl_under_way_check_reservations(int reserved)
{
	int			most = requests_per_session();

	if (reserved < most)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("too many distributed locks reserved by this role"),
			 errdetail("It has %d reservations, and \"%s\" allows %d.", reserved,
					   setting_of(most), most),
			 hint_at_setting(most)));
}

/* ---- acquire ---- */

/*
 * Must not know when a hold ends, nor anything of ZooKeeper but the numbers of its
 * errors, which refusal.c puts into words.
 *
 * Several locks are requested in one order, all at once, so that they ride in
 * one batch.  But no request may stand in a queue while its backend waits in an
 * earlier one: the holder of the earlier lock might want the later one next,
 * and each would wait for the other.  So if one request has to wait for others,
 * those behind it are abandoned, granted or not, and submitted again once it is
 * granted.
 */

/* How often a claim that waits for slots looks for them */
#define LOOK_MS			2

#define LEAST_PATIENCE_MS	100

/* ---- requests ---- */

/*
 * For how many ms a request waits before it takes part in deadlocks; 0: it never does.
 * A try ends by itself.  The permits of a semaphore, and its guard, belong to no
 * queue in which one request waits for certain others.
 */
static int
patience_of(const ZklLockRequest *request)
{
	return request->is_try || request->guard ||
		request->lock.dialect == ZKL_DIALECT_PERMIT ? 0 :
		Max(DeadlockTimeout, LEAST_PATIENCE_MS);
}

static bool
must_not_wait(const ZklLockRequest *request)
{
	return request->is_try &&
		(request->timeout_ms == 0 || request->at->timed_out);
}

static void
describe_request(const ZklLockRequest *request, bool together, ZklSlotTaker *taker)
{
	ZklSlotRequest *slot = &taker->request;

	under_way_describe(taker, &request->lock, ZKL_KIND_LOCK);
	slot->mode = request->mode;
	slot->lifetime = request->lifetime;
	slot->is_try = request->is_try;
	slot->together = together;
	slot->max = request->max;
	slot->guard = request->guard;
	slot->waited = request->waited;
	slot->patience = patience_of(request);
	slot->asked_us = request->asked_us != 0 ? request->asked_us :
		zkl_boottime_us();

	/* A try that must not wait at all is submitted as timed out. */
	taker->timed_out = must_not_wait(request);
	slot->sibling = request->sibling;
	slot->at_most = request->at_most_ms;
	slot->at_least = request->at_least_ms;
	if (request->guard)
	{
		slot->lost_action = ZKL_LOST_NONE;
		slot->on_release_request = ZKL_ON_REQUEST_IGNORE;
	}
	if (request->leader_id != NULL)
		strlcpy(slot->leader_id, request->leader_id, sizeof(slot->leader_id));
}

/* A slot that is about to be free, as no session uses it; -1: none is */
static int
find_unused(void)
{
	int			i;

	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		ZklSlotState state = zkl_slot_peek(i);

		if (state == ZKL_SLOT_CACHED ||
			(state == ZKL_SLOT_RELEASED && zkl_slots[i].s_keep_until == 0 &&
			 zkl_slots[i].s_lost_until == 0 && !zkl_slots[i].s_record.stays))
			return i;
	}
	return -1;
}

/*
 * If slots are short, the worker gives cached locks back: wait for one, for as long as
 * the call may wait, because the worker may be stopped.  If a limit for locks ends the
 * wait, or that for answers, the error is that of this limit.  -1: no slot is about to be
 * free.
 */
static int
claim_given_back(const ZklSlotTaker *taker, const ZklLockRequest *request)
{
	const ZklDeadlines *at = request->at;
	int64		until = Min(at->lock_timeout, zkl_wait_answer_due(at));
	int			slotno = -1;
	int			unused;

	zkl_control_wake_worker();
	while (slotno < 0 && zkl_wait_clock() < until && find_unused() >= 0)
	{
		(void) WaitLatch(MyLatch, WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 LOOK_MS, zkl_compat_wait_event(ZKL_EVENT_ZOOKEEPER));
		CHECK_FOR_INTERRUPTS();
		slotno = zkl_backend_slot_claim(taker, under_way_spare_slots());
	}

	/* It may have given back the last one before we looked. */
	if (slotno < 0)
		slotno = zkl_backend_slot_claim(taker, under_way_spare_slots());
	unused = find_unused();
	if (slotno < 0 && zkl_wait_clock() >= until && unused >= 0)
	{
		if (zkl_wait_clock() >= at->lock_timeout)
			zkl_stall_raise_unclaimed(request->lock.name, at->raises_after_ms);
		zkl_stall_raise_unanswered(unused, request->lock.name);
	}
	return slotno;
}

/*
 * Error 53400 if no slot is free, nor becomes free before the call would end with
 * another error.  Until the request is submitted nothing may throw an error.
 */
static int
claim_slot(const ZklSlotTaker *taker, const ZklLockRequest *request)
{
	int			slotno = zkl_backend_slot_claim(taker, under_way_spare_slots());

	if (slotno < 0)
		slotno = claim_given_back(taker, request);
	if (slotno < 0)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too many distributed locks held or awaited"),
				 under_way_spare_slots() == 0 ?
				 errdetail("All %d slots set by \"zklock.max_requests\" are in use.",
						   zkl_control->ctl_nrequests) :
				 errdetail("Of the %d slots set by \"zklock.max_requests\", only the %d that are reserved for superusers are left.",
						   zkl_control->ctl_nrequests, under_way_spare_slots()),
				 errhint("Increase \"zklock.max_requests\" and restart the server.")));
	return slotno;
}

void
zkl_acquire_submit(const ZklLockRequest *request, bool together,
				   bool more)
{
	ZklSlotTaker taker;

	zkl_admission_check(&request->lock, request->guard, request->sibling);
	describe_request(request, together, &taker);
	zkl_under_way_submit(claim_slot(&taker, request), more);

	/*
	 * A drain that has begun since may not have seen the slot.  The session
	 * that drains begins the drain, and then looks at the slots.
	 */
	pg_memory_barrier();
	zkl_admission_check_drain();
}

int
zkl_acquire_enqueue(const ZklLockRequest *request, int64 duration_ms, bool more,
					int64 *ticket)
{
	ZklSlotTaker taker;
	int			slotno;

	zkl_admission_check(&request->lock, false, -1);
	describe_request(request, false, &taker);
	taker.owner = taker.request.claimer =
		pg_atomic_fetch_add_u64(&zkl_control->ctl_next_owner, 1);
	taker.request.patience = 0;
	taker.request.duration = duration_ms;
	slotno = claim_slot(&taker, request);

	/* They are counted, so none is taken for a request that has no room. */
	zkl_slots[slotno].s_request.ticket = *ticket =
		(int64) pg_atomic_fetch_add_u64(&zkl_control->ctl_next_ticket, 1);
	zkl_backend_slot_submit(slotno, more);

	/*
	 * This session may rely on its place: it takes nothing that comes behind
	 * it.
	 */
	zkl_backend_slot_end_takes(request->lock.path, request->lock.dialect);
	return slotno;
}

static void
waiting_context(void *name)
{
	errcontext("while waiting for distributed lock \"%s\"",
			   (const char *) name);
}

void
zkl_acquire_wait(const ZklLockRequest *request, int slotno,
				 bool (*is_over) (int slotno))
{
	zkl_wait_until(is_over, slotno, waiting_context, request->lock.name,
				   request->at);
}

bool
zkl_acquire_take(const ZklLockRequest *request, int slotno,
				 ZklGrant *grant)
{
	const char *name = request->lock.name;
	ZklSlot		answer;

	while (!zkl_admission_check_slot(slotno, name))
		zkl_acquire_wait(request, slotno, zkl_wait_is_answered);
	zkl_backend_slot_take(slotno, &answer);
	switch ((ZklSlotState) answer.s_state)
	{
		case ZKL_SLOT_GRANTED:
			if (!zkl_lease_is_current(answer.s_record.generation))
				zkl_refusal_raise_lost(name, NULL, ZKL_ERROR_NONE);
			if (answer.s_until != 0 && zkl_boottime_ms() >= answer.s_until)
				zkl_refusal_raise_lost(name, NULL, ZKL_ERROR_OVERDUE);
			grant->slotno = slotno;
			grant->token = answer.s_answer.token;
			grant->generation = answer.s_record.generation;
			return true;
		case ZKL_SLOT_DENIED:
			return false;
		case ZKL_SLOT_FAILED:
			if (answer.s_answer.error == ZKL_ERROR_DEADLOCK)
				zkl_refusal_raise_deadlock(slotno, answer.s_serial);
			if (answer.s_answer.error == ZKL_ERROR_NO_NUMBER)
				zkl_refusal_raise_no_number(name, request->lock.path,
											zkl_errand_find_lasting(&request->lock));
			zkl_refusal_raise_failed(name, answer.s_answer.error, answer.s_answer.zkrc);
			break;
		case ZKL_SLOT_LOST:
			zkl_refusal_raise_lost(name, NULL, answer.s_answer.error);
			break;
		default:
			elog(ERROR, "request slot %d is in unexpected state %u",
				 slotno, answer.s_state);
	}
	return false;
}

/* Answered, or known to have to wait for others */
static bool
is_decided(int slotno)
{
	ZklSlot		slot;

	if (zkl_wait_is_answered(slotno))
		return true;
	zkl_slot_copy(slotno, &slot);
	return slot.s_answer.blocked;
}

/*
 * Whether tries that must not wait are denied for what another session of this
 * server holds: neither the worker nor ZooKeeper is asked.
 */
static bool
are_denied(const ZklLockRequest *requests, int n)
{
	bool		denied = false;
	int			i;

	for (i = 0; i < n && must_not_wait(&requests[i]); i++)
	{
		zkl_admission_check(&requests[i].lock, requests[i].guard, requests[i].sibling);
		denied |= zkl_backend_slot_deny_try(requests[i].lock.path,
											requests[i].lock.dialect,
											under_way_owner());
	}
	return denied;
}

/*
 * Whether a request may be answered by a lock that this server has cached.  One of
 * which this session has a hold needs the worker, as do several at once.  Nor may
 * it be while it is not known which dialect the root has for it.
 */
static bool
may_take(const ZklLockRequest *request)
{
	uint32		generation;
	int64		deadline;

	zkl_lease_read(&generation, &deadline);
	return request->mode == ZKL_EXCLUSIVE && request->sibling < 0 &&
		request->lock.dialect < ZKL_LOCK_DIALECTS && !request->guard &&
		request->at_most_ms == 0 && request->at_least_ms == 0 &&
		!(zkl_root_state() == ZKL_ROOT_UNKNOWN &&
		  zkl_root_concerns(request->lock.dialect, request->lock.path, false)) &&
		zkl_cache_time > 0 && zkl_log_locks != ZKL_LOG_LOCKS_ALL &&
		zkl_boottime_ms() < deadline;
}

/*
 * Takes a cached lock.  From the take on nothing fails.  If the lease has passed,
 * which needs the worker, or a drain has begun, which may not have seen the holder
 * (see zkl_acquire_submit), the lock is given back and requested as any other.
 */
static bool
take_cached(const ZklLockRequest *request, ZklGrant *grant)
{
	int			slotno = zkl_control_find_slot(request->lock.path,
											   request->lock.dialect);
	ZklSlotTaker taker;

	if (slotno < 0 || zkl_slot_peek(slotno) != ZKL_SLOT_CACHED ||
		!may_take(request))
		return false;
	zkl_admission_check(&request->lock, request->guard, request->sibling);
	describe_request(request, false, &taker);
	if (!zkl_backend_slot_take_cached(slotno, &taker, &grant->token,
									  &grant->generation))
		return false;
	grant->slotno = slotno;
	pg_memory_barrier();
	if (zkl_lease_is_valid(grant->generation) && !zkl_admission_is_draining())
		return true;
	(void) zkl_backend_slot_release(slotno);
	return false;
}

/* The requests of a call: those to make, and those that count a hold once more */
typedef struct LockRun
{
	const ZklLockRequest *requests; /* to make */
	int			n;
	ZklGrant   *grants;
	const ZklLockRequest *all;
	ZklHold   **holds;			/* that they count; NULL: they are to make */
	int			nall;
} LockRun;

/* Returns only if each of the holds may be counted once more. */
static void
check_held(const LockRun *run)
{
	ZklError	error;
	int			i;

	for (i = 0; i < run->nall; i++)
	{
		ZklHold    *hold = run->holds[i];

		if (hold == NULL)
			continue;
		zkl_acquire_confirm(&run->all[i], hold->grant.slotno);
		if (!zkl_hold_is_good(hold, &error))
			zkl_hold_raise_lost(hold, error);
		zkl_hold_open(hold);
	}
}

/* During the wait for the last lock, those that were there may have been lost. */
static bool
get_locks(void *arg)
{
	const LockRun *run = arg;
	const ZklLockRequest *requests = run->requests;
	int			n = run->n;
	int			first = zkl_under_way_count();
	int			i,
				j;

	for (i = 0; i < n; i++)
	{
		int			slotno;

		for (j = zkl_under_way_count() - first; j < n; j++)
		{
			CHECK_FOR_INTERRUPTS();
			zkl_acquire_submit(&requests[j], n > 1, j + 1 < n);
		}
		slotno = zkl_under_way_slot(first + i);
		if (i + 1 < n)
		{
			zkl_acquire_wait(&requests[i], slotno, is_decided);
			if (!zkl_wait_is_answered(slotno))
				zkl_under_way_abandon(first + i + 1);
		}
		zkl_acquire_wait(&requests[i], slotno, zkl_wait_is_answered);
		if (!zkl_acquire_take(&requests[i], slotno, &run->grants[i]))
			return false;
	}
	for (i = 0; i < n - 1; i++)
		(void) zkl_acquire_take(&requests[i], zkl_under_way_slot(first + i),
								&run->grants[i]);
	check_held(run);
	return true;
}

void
zkl_acquire_confirm(const ZklLockRequest *request, int slotno)
{
	ZklDeadlines at = *request->at;

	at.time_out = ZKL_NEVER;
	zkl_wait_until(zkl_wait_is_answered, slotno, waiting_context,
				   request->lock.name, &at);
}

/* ---- holds ---- */

/* Clients of some dialects know exclusive locks only. */
static void
check_mode(const ZklLockRequest *request)
{
	if (request->mode == ZKL_SHARED && !zkl_dialect_shares(request->lock.dialect))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("distributed lock \"%s\" cannot be shared",
						request->lock.name),
				 errdetail("Its dialect is %s, which has only exclusive locks.",
						   zkl_dialect_name(request->lock.dialect)),
				 errhint("Use an exclusive lock, or a name to which \"zklock.dialects\" assigns another dialect.")));
}

static void
refuse_again(const ZklLockRequest *request, ZklHeldLock *held)
{
	if (zkl_reentrant || request->again || zkl_hold_sibling(held) < 0)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_IN_USE),
			 errmsg("distributed lock \"%s\" is already held by this session",
					request->lock.name),
			 errhint("Release it first, or set \"zklock.reentrant\" to on.")));
}

/* The hold that a request would count once more; NULL: there is none */
static ZklHold *
find_counted(const ZklLockRequest *request)
{
	ZklHeldLock *held = zkl_hold_lookup(&request->lock);

	zkl_hold_check_lock(held);
	refuse_again(request, held);
	return zkl_hold_in(held, request->mode, request->lifetime);
}

/* Counts a hold once more; its bounds become the later ones. */
static void
count_again(ZklHold *hold, const ZklLockRequest *request)
{
	zkl_hold_again(hold);
	zkl_backend_slot_rebound(hold->grant.slotno, request->at_most_ms,
							 request->at_least_ms);
}

/* Acquires the locks of which there is no such hold yet, all or nothing. */
static bool
acquire_new(LockRun *run, ZklLockRequest *requests, ZklHold **holds)
{
	int volatile prepared = 0;
	bool volatile granted = false;
	int			i;

	run->grants = palloc(run->n * sizeof(ZklGrant));
	PG_TRY();
	{
		for (; prepared < run->n; prepared++)
		{
			CHECK_FOR_INTERRUPTS();
			holds[prepared] = zkl_hold_prepare(&requests[prepared]);
			requests[prepared].sibling =
				zkl_hold_sibling(holds[prepared]->lock);
		}
		granted = (run->n == 1 && take_cached(&requests[0], &run->grants[0])) ||
			(!are_denied(requests, run->n) && zkl_under_way_run(get_locks, run));
	}
	PG_FINALLY();
	{
		if (!granted)
			zkl_hold_drop_prepared(holds, prepared);
	}
	PG_END_TRY();

	for (i = 0; granted && i < run->n; i++)
		zkl_hold_begin(holds[i], &run->grants[i]);
	return granted;
}

/* The holds that are there already are checked before the wait for the others, too. */
static bool
acquire_locks(const ZklLockRequest *requests, int n, int64 *tokens)
{
	ZklLockRequest *new_requests = palloc(n * sizeof(ZklLockRequest));
	ZklHold   **new_holds = palloc(n * sizeof(ZklHold *));
	ZklHold   **holds = palloc(n * sizeof(ZklHold *));
	LockRun		run = {new_requests, 0, NULL, requests, holds, n};
	int			nnew;
	int			i;

	zkl_lifetime_begin();
	if (!requests[0].within_call)
		zkl_lifetime_check_allowed(requests[0].lifetime);
	for (i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		check_mode(&requests[i]);
		holds[i] = find_counted(&requests[i]);
		if (holds[i] == NULL)
			new_requests[run.n++] = requests[i];
	}
	if (run.n > 0)
		zkl_under_way_check_room(zkl_hold_count(), run.n);
	check_held(&run);
	if (run.n > 0 && !acquire_new(&run, new_requests, new_holds))
		return false;

	for (i = n, nnew = run.n; i-- > 0;)
	{
		if (holds[i] != NULL)
			count_again(holds[i], &requests[i]);
		else
			holds[i] = new_holds[--nnew];
		tokens[i] = holds[i]->grant.token;
	}
	return true;
}

/* All deadlines count from here, unless this is a part of another call. */
bool
zkl_acquire(ZklLockRequest *requests, int n, int64 *tokens)
{
	ZklDeadlines at;
	bool		done;
	int			i;

	if (requests[0].at != NULL)
		return acquire_locks(requests, n, tokens);
	zkl_wait_begin_lock(&at, requests[0].is_try, requests[0].timeout_ms);
	if (requests[0].keeps_snapshot != NULL)
		zkl_wait_warn_of_snapshot(&at, requests[0].keeps_snapshot);
	for (i = 0; i < n; i++)
		requests[i].at = &at;
	done = acquire_locks(requests, n, tokens);
	for (i = 0; i < n; i++)
		requests[i].at = NULL;
	return done;
}
