/*
 * ticket.c
 *	  Tickets: requests that wait for their lock without a session.
 *
 * Owns nothing: the slot of a ticket belongs to the worker from its submission on.  Run by
 * backends.  Takes no locks but those of slots, through slot.h.
 *
 * Must not know who gets which ticket: worker/answers.c gives them out.
 */
#include "postgres.h"

#include "backend/acquire.h"
#include "backend/admission.h"
#include "backend/backend_slot.h"
#include "backend/commit.h"
#include "backend/errand.h"
#include "backend/hold.h"
#include "backend/refusal.h"
#include "backend/target.h"
#include "backend/wait.h"
#include "miscadmin.h"
#include "recipes/ticket.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/errand_layout.h"
#include "shared/gate.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "storage/dsm.h"

/* ---- what there is ---- */

const char *
zkl_ticket_state(const ZklSlot *slot)
{
	if (slot->s_request.ticket == 0 || slot->s_state <= ZKL_SLOT_CLAIMED)
		return NULL;
	if (zkl_slot_is_ticket(slot))
		return slot->s_state == ZKL_SLOT_WAITING ? "waiting" : "granted";
	if (zkl_slot_is_reserved(slot))
		return "claimed";
	if (!zkl_slot_is_untold(slot))
		return NULL;
	if (slot->s_withdrawn)
		return "withdrawn";
	if (slot->s_answer.error == ZKL_ERROR_UNCLAIMED)
		return "lapsed";
	return slot->s_answer.granted_us == 0 ? "failed" : "lost";
}

static const char *
name_of(const ZklSlot *slot)
{
	const char *path = slot->s_request.path;

	return zkl_text_for_client(zkl_text_to_display(path, (int) strlen(path)));
}

/*
 * As zkl_ticket_next(), but of any user; with that number, unless it is 0.  What no look
 * without the mutex shows is not copied: a slot is large, and there may be thousands.
 */
static int
next_ticket(int from, int64 number, ZklSlot *copy)
{
	int			i;

	for (i = from; i < zkl_control->ctl_nrequests; i++)
	{
		int64		ticket = zkl_slots[i].s_request.ticket;

		if (zkl_slot_peek(i) <= ZKL_SLOT_CLAIMED || ticket == 0 ||
			(number != 0 && ticket != number))
			continue;
		zkl_slot_lapse(i);
		zkl_slot_copy(i, copy);
		if (copy->s_request.ticket == ticket && zkl_ticket_state(copy) != NULL)
			return i;
	}
	return -1;
}

int
zkl_ticket_next(int from, ZklSlot *copy)
{
	int			slotno = next_ticket(from, 0, copy);

	while (slotno >= 0 && copy->s_request.roleid != GetSessionUserId())
		slotno = next_ticket(slotno + 1, 0, copy);
	return slotno;
}

/* The slot of the ticket with that number, or -1 */
static int
find_numbered(int64 number, ZklSlot *copy)
{
	return number == 0 ? -1 : next_ticket(0, number, copy);
}

/* ---- enqueueing ---- */

void
zkl_ticket_enqueue(ZklLockRequest *requests, int n, int64 duration_ms, Datum *numbers)
{
	int		   *slots = palloc(n * sizeof(int));
	volatile int made = 0;
	int64		number;
	ZklDeadlines at;

	zkl_lifetime_check();
	zkl_gate_check_worker();
	zkl_under_way_check_number(n, false);
	zkl_under_way_check_role(n);
	zkl_wait_begin_lock(&at, false, ZKL_FOREVER);
	PG_TRY();
	{
		for (; made < n; made++)
		{
			CHECK_FOR_INTERRUPTS();
			requests[made].at = &at;
			requests[made].mode = ZKL_EXCLUSIVE;
			requests[made].lifetime = ZKL_LIFETIME_TICKET;
			requests[made].sibling = -1;
			slots[made] = zkl_acquire_enqueue(&requests[made], duration_ms, made + 1 < n,
											  &number);
			numbers[made] = Int64GetDatum(number);
		}

		/* A drain, or the end of the gate, may not have seen the slots. */
		pg_memory_barrier();
		zkl_admission_check_drain();
		zkl_admission_check_gate(true);
	}
	PG_CATCH();
	{
		while (made-- > 0)
			(void) zkl_slot_withdraw(slots[made], DatumGetInt64(numbers[made]), false);
		PG_RE_THROW();
	}
	PG_END_TRY();
}

/* ---- why not ---- */

/* Whether this server, since it was started, can have made it */
static bool
is_of_here(int64 number)
{
	return (uint64) number >> 32 ==
		pg_atomic_read_u64(&zkl_control->ctl_next_ticket) >> 32;
}

#define NOT_OF_HERE	"Another server made it, or this one before it was restarted, which ended all tickets."

pg_noreturn static void
raise_no_ticket(int64 number)
{
	bool		here = is_of_here(number);

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("there is no ticket %lld on this server", (long long) number),
			 here ?
			 errdetail("It has ended: its reservation is over, it was withdrawn or not claimed in time, or its end was told before.") :
			 errdetail(NOT_OF_HERE),
			 here ?
			 errhint("See the view zk_tickets.") :
			 errhint("Ask the server that made it, or call zk_enqueue() again.")));
	pg_unreachable();
}

pg_noreturn static void
raise_claimed(const ZklSlot *slot)
{
	ZklStallReason reason;

	zkl_stall_explain_reserved(slot, &reason);
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("ticket %lld for distributed lock \"%s\" is already claimed",
					(long long) slot->s_request.ticket, name_of(slot)),
			 errdetail("%s", reason.detail),
			 errhint("%s", reason.hint)));
	pg_unreachable();
}

/* Tells how a ticket ended, once. */
pg_noreturn static void
raise_over(int slotno, const ZklSlot *slot)
{
	const char *why = zkl_slot_lost_detail((ZklError) slot->s_answer.error);

	zkl_promise_tell_loss(slotno, slot);
	if (slot->s_withdrawn)
		why = "The server takes no requests for locks any more: it was drained, stopped or disabled.";
	else if (slot->s_answer.granted_us == 0)
		zkl_refusal_raise_failed(name_of(slot), (ZklError) slot->s_answer.error,
								 slot->s_answer.zkrc);
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("ticket %lld for distributed lock \"%s\" is over",
					(long long) slot->s_request.ticket, name_of(slot)),
			 errdetail("%s", why),
			 errhint("Call zk_enqueue() again.")));
	pg_unreachable();
}

static void
check_own(const ZklSlot *slot)
{
	if (slot->s_request.roleid != GetSessionUserId())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for ticket %lld",
						(long long) slot->s_request.ticket),
				 errdetail("Only the role that made it can use it.")));
}

/* One that waits, or is to be claimed */
static int
find_claimable(int64 number, ZklSlot *slot)
{
	int			slotno = find_numbered(number, slot);

	if (slotno < 0)
		raise_no_ticket(number);
	check_own(slot);
	if (zkl_slot_is_untold(slot))
		raise_over(slotno, slot);
	if (zkl_slot_is_reserved(slot))
		raise_claimed(slot);
	return slotno;
}

/* ---- claiming ---- */

static void
claim_context(void *name)
{
	errcontext("while claiming a ticket");
}

/* What the worker answered, by the token; it may have ended since. */
static bool
take_claimed(int64 token, ZklClaimed *claimed)
{
	ZklSlot		slot;
	int			slotno = -1;

	while ((slotno = zkl_ticket_next(slotno + 1, &slot)) >= 0)
	{
		if (slot.s_answer.token != token || !zkl_slot_is_reserved(&slot))
			continue;
		claimed->ticket = slot.s_request.ticket;
		claimed->token = token;
		claimed->path = pstrdup(slot.s_request.path);
		return true;
	}
	return false;
}

/* number 0: of the next one.  False: it is not to be had, or none was within that time. */
static bool
ask_worker(int64 number, const char *name, dsm_segment *segment, int64 timeout_ms,
		   const char *keeps_snapshot, ZklClaimed *claimed)
{
	ZklTarget	target = {"", name, ZKL_DIALECT_CURATOR_RW};
	ZklQuestion question = {.kind = ZKL_KIND_CLAIM,.token = number,.awaits = number == 0};
	int64		answer_ms = Max(zkl_status_answer_timeout_ms(), 2 * ZKL_LONGEST_PROOF_MS);
	ZklDeadlines at;
	ZklSlot		answer;

	if (number == 0 && timeout_ms != ZKL_FOREVER)
		answer_ms += timeout_ms;
	else if (number == 0)
		answer_ms = ZKL_FOREVER;
	question.segment = segment == NULL ? DSM_HANDLE_INVALID : dsm_segment_handle(segment);
	zkl_wait_begin_answer(&at, timeout_ms, answer_ms, number == 0);
	if (keeps_snapshot != NULL)
		zkl_wait_warn_of_snapshot(&at, keeps_snapshot);
	zkl_wait_for_answer(&target, &question, claim_context, &at, &answer);
	if (answer.s_state == ZKL_SLOT_FAILED)
		zkl_refusal_raise_failed("", (ZklError) answer.s_answer.error, 0);
	return answer.s_state == ZKL_SLOT_GRANTED &&
		take_claimed(answer.s_answer.token, claimed);
}

bool
zkl_ticket_claim(int64 number, ZklClaimed *claimed)
{
	ZklSlot		slot;
	const char *path = slot.s_request.path;
	int			slotno;

	zkl_lifetime_check();
	slotno = find_claimable(number, &slot);
	if (slot.s_state == ZKL_SLOT_WAITING)
	{
		zkl_admission_check_gate(true);
		(void) zkl_admission_check_slot(slotno, path);
		zkl_refusal_check_lease();
		return false;
	}
	if (ask_worker(number, zkl_text_to_display(path, (int) strlen(path)), NULL, ZKL_FOREVER,
				   NULL, claimed))
		return true;

	/*
	 * It ended meanwhile, somebody was faster, or this server cannot give it
	 * out now.
	 */
	(void) find_claimable(number, &slot);
	zkl_refusal_check_lease();
	return false;
}

/* The names for the worker, each with its NUL */
static dsm_segment *
write_names(const char **names, int n)
{
	Size		size = 1;
	dsm_segment *segment;
	char	   *to;
	int			i;

	for (i = 0; i < n; i++)
		size += strlen(names[i]) + 1;
	segment = dsm_create(size, 0);
	to = dsm_segment_address(segment);
	for (i = 0; i < n; i++)
	{
		strcpy(to, names[i]);
		to += strlen(to) + 1;
	}
	*to = '\0';
	return segment;
}

bool
zkl_ticket_claim_next(int64 timeout_ms, const char **names, int n,
					  const char *keeps_snapshot, ZklClaimed *claimed)
{
	dsm_segment *segment = names != NULL ? write_names(names, n) : NULL;
	bool		done;

	zkl_lifetime_check();

	/*
	 * Without a timeout, the answer is a ticket; its reservation may be over
	 * by then.
	 */
	do
		done = ask_worker(0, "", segment, timeout_ms, keeps_snapshot, claimed);
	while (!done && timeout_ms == ZKL_FOREVER);
	if (segment != NULL)
		dsm_detach(segment);
	if (!done)
	{
		zkl_admission_check_gate(true);
		zkl_refusal_check_lease();
	}
	return done;
}

/* ---- withdrawing ---- */

bool
zkl_ticket_withdraw_all(void)
{
	bool		any = false;
	ZklSlot		slot;
	int			slotno = -1;

	zkl_lifetime_check();
	while ((slotno = zkl_ticket_next(slotno + 1, &slot)) >= 0)
	{
		CHECK_FOR_INTERRUPTS();
		any |= zkl_slot_withdraw(slotno, slot.s_request.ticket, false);
	}
	return any;
}

/* Who asks at a wrong server would think that the ticket is over, and go on. */
static void
warn_no_ticket(int64 number)
{
	ereport(WARNING,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("there is no ticket %lld on this server", (long long) number),
			 errdetail(NOT_OF_HERE),
			 errhint("A ticket can be withdrawn only on the server that made it.")));
}

bool
zkl_ticket_withdraw(int64 number)
{
	ZklSlot		slot;
	int			slotno;

	zkl_lifetime_check();
	slotno = find_numbered(number, &slot);
	if (slotno < 0)
	{
		if (!is_of_here(number))
			warn_no_ticket(number);
		return false;
	}
	check_own(&slot);
	return zkl_slot_withdraw(slotno, number, false);
}
