/*
 * tell.c
 *	  What the client is told of its holds: losses, as an error or between calls,
 *	  and requests to release a lock.
 *
 * Owns what this backend has yet to report to its client, SIGINT's handler in
 * sessions that have acquired a lock, and what this backend knows of the cancels
 * that it has received.  Run by backends.  Takes slots' mutexes through slot.h, one
 * at a time.
 *
 * Must not know how a hold begins or ends, or what it is for.
 *
 * After its check the commit itself may take long: it waits for the lock of
 * NOTIFY, or for a synchronous standby, as does PREPARE TRANSACTION.  Nothing
 * can undo it there; that a lock was lost can only be reported.  After the commit an
 * error would be a PANIC, and to send a message can fail, if only because the client's
 * encoding lacks a character: so only memory is written there.  The worker
 * writes the log's line when it sees the slot.  The client is told when
 * PostgreSQL's main loop resets the context of the message that committed, which
 * is ahead of ReadyForQuery, or by the next statement, if that comes first, as in
 * a procedure.
 */
#include "postgres.h"

#include <signal.h>

#include "backend/backend_slot.h"
#include "backend/hold.h"
#include "backend/refusal.h"
#include "backend/target.h"
#include "backend/tell.h"
#include "miscadmin.h"
#include "shared/control.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "utils/memutils.h"

/* ---- losses behind the commit check ---- */

/* What is to be told: the first such hold, and how many there were */
static uint32 untold = 0;
static ZklLate late;
static ZklError reason;
static char name[4 * ZKL_MAX_NAME + 1];

static MemoryContextCallback end_of_message;
static bool end_is_awaited = false;

static int
late_message(void)
{
	switch (late)
	{
		case ZKL_LATE_PREPARED_LOST:
			return errmsg("transaction was prepared although distributed lock \"%s\" was lost",
						  name);
		case ZKL_LATE_PREPARED_LAPSED:
			return errmsg("transaction was prepared although the lease of distributed lock \"%s\" had ended",
						  name);
		case ZKL_LATE_LAPSED:
			return errmsg("transaction committed although the lease of distributed lock \"%s\" had ended",
						  name);
		default:
			return errmsg("transaction committed although distributed lock \"%s\" was lost",
						  name);
	}
}

static bool
is_prepared(void)
{
	return late == ZKL_LATE_PREPARED_LOST || late == ZKL_LATE_PREPARED_LAPSED;
}

static void
tell_late(void)
{
	uint32		others = untold - 1;

	untold = 0;
	ereport(WARNING_CLIENT_ONLY,
			(late_message(),
			 others > 0 ?
			 errdetail_plural("%s  The same is true of %u other lock.",
							  "%s  The same is true of %u other locks.",
							  others, zkl_slot_lost_detail(reason), others) :
			 errdetail("%s", zkl_slot_lost_detail(reason)),
			 is_prepared() ?
			 errhint("Another session may have the lock by now.  If the changes rely on it, use ROLLBACK PREPARED.") :
			 errhint("Another session may have held the lock before the changes were visible.")));
}

/*
 * The transaction is over: whatever becomes of the message, the client
 * must not take it for an error, nor may a cancel that comes now look like one.
 * But to send it may take as long as the client likes, so the session can be
 * terminated meanwhile.
 */
void
zkl_tell_late(void)
{
	MemoryContext context = CurrentMemoryContext;
	uint32		held = InterruptHoldoffCount;
	uint32		cancels_held = QueryCancelHoldoffCount;

	if (untold == 0)
		return;
	HOLD_CANCEL_INTERRUPTS();
	PG_TRY();
	{
		tell_late();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		FlushErrorState();
	}
	PG_END_TRY();
	/* Which an error has set to 0 */
	InterruptHoldoffCount = held;
	QueryCancelHoldoffCount = cancels_held;
}

static void
message_is_over(void *arg)
{
	end_is_awaited = false;
	zkl_tell_late();
}

/* Background workers have no messages; they are told by their next statement. */
static void
await_end_of_message(void)
{
	if (MessageContext == NULL || end_is_awaited)
		return;
	end_of_message.func = message_is_over;
	MemoryContextRegisterResetCallback(MessageContext, &end_of_message);
	end_is_awaited = true;
}

/* Nothing may be looked up or allocated here: the name is in ASCII. */
static void
note_late(ZklHold *hold, ZklLate found, ZklError error)
{
	const char *path = hold->lock->key.path;
	ZklDialect	dialect = (ZklDialect) hold->lock->key.dialect;

	zkl_backend_slot_set_late(hold->grant.slotno, found);
	hold->told |= error != ZKL_ERROR_LAPSED;
	if (untold++ > 0)
		return;
	late = found;
	reason = error;
	zkl_text_to_ascii(path, zkl_znode_shown_length(dialect, false, path), name,
					  sizeof(name));
	await_end_of_message();
}

void
zkl_tell_note_late(bool prepared)
{
	ZklHold    *hold;
	ZklError	error;

	zkl_hold_foreach(hold)
	{
		if (!zkl_hold_is_good(hold, &error))
			note_late(hold, prepared ? ZKL_LATE_PREPARED_LOST : ZKL_LATE_LOST,
					  error);
		else if (zkl_hold_has_lapsed(hold))
			note_late(hold,
					  prepared ? ZKL_LATE_PREPARED_LAPSED : ZKL_LATE_LAPSED,
					  ZKL_ERROR_LAPSED);
	}
}

/* ---- other losses ---- */

void
zkl_tell_lost(void)
{
	ZklHold    *hold;
	ZklError	error;

	zkl_hold_foreach(hold)
	{
		if (hold->told || zkl_hold_is_good(hold, &error))
			continue;
		hold->told = true;
		ereport(WARNING,
				(errmsg("distributed lock \"%s\" was lost",
						zkl_text_for_client(hold->name)),
				 errdetail("%s", zkl_slot_lost_detail(error))));
	}
}

/* ---- requests to release a lock ---- */

static void
tell_release_request(const ZklHold *hold, const ZklSlot *slot, bool drained)
{
	char		asker[4 * ZKL_MAX_ASKER_TEXT + 1];

	zkl_text_to_ascii(slot->s_answer.asker, strlen(slot->s_answer.asker), asker,
					  sizeof(asker));
	ereport(NOTICE,
			(errmsg("release of distributed lock \"%s\" was requested",
					zkl_text_for_client(hold->name)),
			 drained ?
			 errdetail("This server is being drained.") :
			 asker[0] != '\0' ?
			 errdetail("It was requested by %s.", asker) :
			 errdetail("It was requested by a client other than zklock."),
			 errhint("This session still holds the lock and should release it as soon as it can.")));
}

/* Walks through the holds only after a release request on this server. */
void
zkl_tell_release_requests(void)
{
	static uint64 looked_at = 0;
	uint64		requests = pg_atomic_read_u64(&zkl_control->ctl_release_requests);
	ZklHold    *hold;

	if (requests == looked_at)
		return;
	zkl_hold_foreach(hold)
	{
		ZklSlot		slot;
		bool		drained;

		zkl_slot_copy(hold->grant.slotno, &slot);
		drained = slot.s_drain != hold->told_drain;
		if (slot.s_state != ZKL_SLOT_GRANTED ||
			(slot.s_answer.asked_zxid == hold->told_zxid && !drained))
			continue;
		hold->told_zxid = slot.s_answer.asked_zxid;
		hold->told_drain = slot.s_drain;
		if (slot.s_request.on_release_request != ZKL_ON_REQUEST_IGNORE)
			tell_release_request(hold, &slot, drained);
	}
	looked_at = requests;
}

/* ---- cancel: the error with which a statement ends because a lock was lost ---- */

/*
 * Takes slots' mutexes through slot.h, one at a time.
 *
 * Must not know when a hold ends, nor what a statement does.
 *
 * The worker cancels the statement of a session that loses a lock with the signal
 * that cancels any statement.  So within the statement the error is a cancel,
 * which WHEN OTHERS of PL/pgSQL does not catch.  To the client it says that the
 * lock was lost, in the words and with the code of any other loss: the outermost
 * statement rewrites the error that leaves it.  What comes before or behind such
 * a statement, such as parsing, planning, or the commit, usually has no handlers
 * around it, so there the error is rewritten as it is raised.  Triggers that are
 * deferred to the commit run there, too: if one of them catches that error, the
 * commit check raises it again.
 *
 * Whose a cancel is, the signal tells: the worker leaves its process id in the
 * slot.  While another signal waits to be acted upon, a cancel is not the worker's
 * alone, and stays a cancel.  The kernel keeps only the first of two that it
 * has yet to deliver: if that is the worker's, the other one came too late.
 */

#define NOBODY	0
#define SEVERAL	(-1)

/* Who sent the signals since the last one was acted upon */
static volatile sig_atomic_t sender = NOBODY;

static struct sigaction previous;
static int	depth = 0;			/* of statements that run */
static bool watching = false;
static bool message_is_awaited = false;

/* Of the last cancel that was raised */
static int	sent_by = NOBODY;	/* the worker, if it was because of a loss */
static ZklError cancel_reason;
static const char *release;
static char cancel_name[4 * ZKL_MAX_NAME + 1];

/* ---- signals ---- */

static void
cancel_handler(int signo, siginfo_t *info, void *context)
{
	int			from = info->si_code <= 0 && info->si_pid > 0 ? info->si_pid : SEVERAL;

	if (!QueryCancelPending)
		sender = from;
	else if (sender != from)
		sender = SEVERAL;
	if (previous.sa_flags & SA_SIGINFO)
		previous.sa_sigaction(signo, info, context);
	else
		previous.sa_handler(signo);
}

static void
watch_signals(void)
{
	struct sigaction ours;

	if (sigaction(SIGINT, NULL, &previous) < 0 ||
		(!(previous.sa_flags & SA_SIGINFO) &&
		 (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN)))
		return;					/* then nothing can be cancelled */
	ours = previous;
	ours.sa_flags |= SA_SIGINFO;
	ours.sa_sigaction = cancel_handler;
	(void) sigaction(SIGINT, &ours, NULL);
}

/* ---- errors ---- */

static bool
is_cause(const ZklHold *hold, int pid, ZklError *error)
{
	ZklSlot		slot;

	if (zkl_hold_is_good(hold, error))
		return false;
	zkl_slot_copy(hold->grant.slotno, &slot);
	return slot.s_answer.cancelled_by == pid;
}

/* The lost hold because of which a process has sent a signal, or NULL */
static ZklHold *
find_cause(int pid, ZklError *error)
{
	ZklHold    *hold;

	if (pid <= 0)
		return NULL;
	zkl_hold_foreach(hold)
	{
		if (is_cause(hold, pid, error))
			return hold;
	}
	return NULL;
}

/* By the time at which the error leaves the statement the hold may be over. */
static void
note_cause(void)
{
	ZklHold    *hold = find_cause(sender, &cancel_reason);

	sent_by = hold != NULL ? sender : NOBODY;
	if (hold == NULL)
		return;
	release = zkl_hold_release_function(hold);
	strlcpy(cancel_name, hold->name, sizeof(cancel_name));
}

/* Works on the error that is being raised, or was caught. */
static void
rewrite_error(void)
{
	ZklError	error;
	ZklHold    *hold = find_cause(sent_by, &error);

	if (hold != NULL)
		hold->told = true;
	zkl_refusal_report_lost(cancel_name, release, cancel_reason);
}

static void await_message(void);

static void
error_callback(void *arg)
{
	await_message();
	if (geterrcode() != ERRCODE_QUERY_CANCELED)
		return;
	note_cause();
	if (depth == 0 && sent_by != NOBODY)
		rewrite_error();
}

/*
 * Below the callbacks of statements stands one for what runs outside of them.  It
 * stays until an error, or until a PG_TRY that began without it ends: so it is put
 * there again and again.
 */
void
zkl_cancel_stand_by(void)
{
	static ErrorContextCallback outside = {.callback = error_callback};

	if (watching && error_context_stack == NULL)
		error_context_stack = &outside;
}

static void
begin_message(void *arg)
{
	message_is_awaited = false;
	zkl_cancel_stand_by();
}

/* PostgreSQL's main loop begins with the next message.  Background workers have none. */
static void
await_message(void)
{
	static MemoryContextCallback end_of_message = {.func = begin_message};

	if (MessageContext == NULL || message_is_awaited)
		return;
	MemoryContextRegisterResetCallback(MessageContext, &end_of_message);
	message_is_awaited = true;
}

/* ---- statements ---- */

void
zkl_cancel_enter(ZklCancelScope *scope)
{
	scope->depth = depth++;
	if (scope->depth > 0)
		return;
	if (sender != NOBODY && !QueryCancelPending)
		sender = NOBODY;		/* it came while no statement ran */
	scope->context.callback = error_callback;
	scope->context.arg = NULL;
	scope->context.previous = error_context_stack;
	error_context_stack = &scope->context;
}

void
zkl_cancel_leave(ZklCancelScope *scope)
{
	depth = scope->depth;
	if (depth == 0)
		error_context_stack = scope->context.previous;
}

void
zkl_cancel_fail(ZklCancelScope *scope)
{
	depth = scope->depth;
	if (depth == 0 && geterrcode() == ERRCODE_QUERY_CANCELED && sent_by != NOBODY)
		rewrite_error();
}

void
zkl_cancel_watch(void)
{
	if (watching)
		return;
	watching = true;
	watch_signals();
	await_message();
}
