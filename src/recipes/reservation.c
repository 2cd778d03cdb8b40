/*
 * reservation.c
 *	  Locks that belong to a token, not to a session.
 *
 * Owns nothing: the slot of a reservation belongs to the worker, as that of any lock
 * that is kept after its release.  Run by backends.  Takes no locks but those of slots,
 * through slot.h.
 *
 * Must not know how a kept lock ends.
 */
#include "postgres.h"

#include "backend/acquire.h"
#include "backend/admission.h"
#include "backend/backend_slot.h"
#include "backend/commit.h"
#include "backend/hold.h"
#include "backend/refusal.h"
#include "backend/target.h"
#include "miscadmin.h"
#include "recipes/reservation.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "utils/timestamp.h"

/* ---- what there is ---- */

/*
 * From slot "from" on; its number, and a copy.  -1: there is no other one.  One that is lost
 * counts until its role was told; a ticket that was never claimed does not, as nobody has
 * its token.
 */
static int
next_reserved(int from, ZklSlot *copy)
{
	int			i;

	for (i = from; i < zkl_control->ctl_nrequests; i++)
	{
		if (zkl_slot_peek(i) != ZKL_SLOT_RELEASED)
			continue;
		zkl_slot_copy(i, copy);
		if (zkl_slot_is_reservation(copy) &&
			(zkl_slot_is_reserved(copy) || zkl_slot_is_untold(copy)))
			return i;
	}
	return -1;
}

static bool
is_reservation_of(const ZklSlot *slot, const ZklTarget *lock)
{
	return slot->s_request.dialect == lock->dialect &&
		strcmp(slot->s_request.path, lock->path) == 0;
}

/* Error 42501 if another user made it.  -1: there is none with that token. */
static int
find_by_token(const ZklTarget *lock, int64 token, ZklSlot *copy)
{
	int			slotno = -1;

	while ((slotno = next_reserved(slotno + 1, copy)) >= 0)
	{
		if (!is_reservation_of(copy, lock) || copy->s_answer.token != token)
			continue;
		if (copy->s_request.roleid != GetSessionUserId() && !superuser())
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("permission denied for the reservation of distributed lock \"%s\"",
							zkl_text_for_client(lock->name)),
					 errdetail("Only the role that made it, and superusers, can use its token.")));
		break;
	}
	return slotno;
}

/* ---- making one ---- */

static void
refuse_held(const ZklTarget *lock)
{
	ZklHeldLock *held = zkl_hold_lookup(lock);
	int			i;

	for (i = 0; i < ZKL_HOLDS_PER_LOCK; i++)
	{
		if (zkl_hold_nth(held, i) != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("distributed lock \"%s\" is already held by this session",
							zkl_text_for_client(lock->name)),
					 errhint("Release it first.")));
	}
}

/* So that an answer that never arrived can be found again */
pg_noreturn static void
raise_reserved(const ZklTarget *lock, const ZklSlot *slot)
{
	ZklStallReason reason;

	zkl_stall_explain_reserved(slot, &reason);
	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("distributed lock \"%s\" is already reserved",
					zkl_text_for_client(lock->name)),
			 errdetail("%s", reason.detail),
			 errhint("%s", reason.hint)));
	pg_unreachable();
}

static void
check_others(const ZklTarget *lock, bool once)
{
	ZklSlot		slot;
	int			slotno = -1;
	int			n = 0;

	while ((slotno = next_reserved(slotno + 1, &slot)) >= 0)
	{
		if (slot.s_request.roleid != GetSessionUserId())
			continue;
		if (once && is_reservation_of(&slot, lock) && !zkl_slot_is_lost_kept(&slot))
			raise_reserved(lock, &slot);
		n += slot.s_request.ticket == 0;
	}
	zkl_under_way_check_reservations(n);
}

typedef struct Making
{
	const ZklLockRequest *request;
	ZklGrant	grant;
} Making;

static bool
get(void *arg)
{
	Making	   *making = arg;
	int			slotno;

	CHECK_FOR_INTERRUPTS();
	zkl_acquire_submit(making->request, false, false);
	slotno = zkl_under_way_slot(zkl_under_way_count() - 1);
	zkl_acquire_wait(making->request, slotno, zkl_wait_is_answered);
	return zkl_acquire_take(making->request, slotno, &making->grant);
}

bool
zkl_reservation_make(ZklLockRequest *request, bool once, int64 *token)
{
	Making		making = {request};
	ZklDeadlines at;

	zkl_lifetime_check();
	refuse_held(&request->lock);
	check_others(&request->lock, once);
	zkl_under_way_check_room(zkl_hold_count(), 1);
	zkl_wait_begin_lock(&at, request->is_try, request->timeout_ms);
	if (request->keeps_snapshot != NULL)
		zkl_wait_warn_of_snapshot(&at, request->keeps_snapshot);
	request->at = &at;
	request->mode = ZKL_EXCLUSIVE;
	request->lifetime = ZKL_LIFETIME_RESERVATION;
	request->sibling = -1;
	if (!zkl_under_way_run(get, &making))
		return false;
	*token = making.grant.token;

	/* What was lost right behind the grant is not kept. */
	if (zkl_backend_slot_release(making.grant.slotno) != ZKL_SLOT_GRANTED)
		zkl_refusal_raise_lost(request->lock.name, NULL, ZKL_ERROR_NONE);
	return true;
}

/* ---- by token ---- */

static void
renewal_context(void *name)
{
	errcontext("while renewing the reservation of distributed lock \"%s\"",
			   (const char *) name);
}

/* Raises error 40001 unless the session that has it has its lease until the result. */
static int64
confirm(const ZklTarget *lock, const ZklSlot *slot)
{
	uint32		generation;
	int64		until;

	zkl_lease_read(&generation, &until);
	if (!zkl_lease_same_generation(generation, slot->s_record.generation))
		zkl_refusal_raise_lost(lock->name, NULL, ZKL_ERROR_NONE);
	if (zkl_boottime_ms() >= until)
		zkl_refusal_raise_lease_ended(lock->name);
	return until;
}

/* A superuser who looks does not tell its role. */
static void
tell_role_of_loss(int slotno, const ZklSlot *slot)
{
	if (slot->s_request.roleid == GetSessionUserId())
		zkl_promise_tell_loss(slotno, slot);
}

static void
check_lost(const ZklTarget *lock, int slotno, const ZklSlot *slot)
{
	if (!zkl_slot_is_lost_kept(slot))
		return;
	tell_role_of_loss(slotno, slot);
	zkl_refusal_raise_lost(lock->name, NULL, (ZklError) slot->s_answer.error);
}

pg_noreturn static void
raise_not_reserved(const ZklTarget *lock, int64 token)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("distributed lock \"%s\" is not reserved with token %lld",
					zkl_text_for_client(lock->name), (long long) token)));
	pg_unreachable();
}

/* Who asks at a wrong server would think that the reservation is over, and go on. */
static void
warn_not_reserved(const ZklTarget *lock, int64 token)
{
	ereport(WARNING,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("distributed lock \"%s\" is not reserved with token %lld on this server",
					zkl_text_for_client(lock->name), (long long) token),
			 errdetail("The reservation is over, or belongs to another server."),
			 errhint("A reservation can be renewed and cancelled only on the server where it was made.")));
}

static void
warn_lost_reservation(const ZklTarget *lock, const ZklSlot *slot)
{
	ereport(WARNING,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("the reservation of distributed lock \"%s\" was lost",
					zkl_text_for_client(lock->name)),
			 errdetail("%s", zkl_slot_lost_detail((ZklError) slot->s_answer.error))));
}

bool
zkl_reservation_renew(const ZklTarget *lock, int64 token, int64 ms)
{
	ZklQuestion question = {.kind = ZKL_KIND_RENEWAL,.token = token,.renewed_for = ms};
	ZklDeadlines at;
	ZklSlot		slot;
	ZklSlot		answer;

	zkl_lifetime_check();
	question.about = find_by_token(lock, token, &slot);
	if (question.about < 0)
	{
		warn_not_reserved(lock, token);
		return false;
	}
	if (zkl_slot_is_lost_kept(&slot))
	{
		tell_role_of_loss(question.about, &slot);
		warn_lost_reservation(lock, &slot);
		return false;
	}
	question.by_other = slot.s_request.roleid != GetSessionUserId();
	zkl_wait_begin_answer(&at, ZKL_FOREVER,
						  Max(zkl_status_answer_timeout_ms(), 2 * ZKL_LONGEST_PROOF_MS), false);
	zkl_wait_for_answer(lock, &question, renewal_context, &at, &answer);
	if (answer.s_state != ZKL_SLOT_GRANTED)
	{
		warn_not_reserved(lock, token);
		return false;
	}
	if (ms != 0)
		(void) confirm(lock, &slot);
	return true;
}

int64
zkl_reservation_assert(const ZklTarget *lock, int64 token)
{
	ZklSlot		slot;
	int			slotno;
	int64		until;

	slotno = find_by_token(lock, token, &slot);
	if (slotno < 0)
		raise_not_reserved(lock, token);
	check_lost(lock, slotno, &slot);
	until = confirm(lock, &slot);
	if (zkl_promise_make(slotno, slot.s_record.generation, token, &until))
		return Max(until - zkl_boottime_ms(), 1);

	/* It has ended just now. */
	if (find_by_token(lock, token, &slot) == slotno)
		check_lost(lock, slotno, &slot);
	raise_not_reserved(lock, token);
}
