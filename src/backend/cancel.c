/*
 * cancel.c
 *	  The error with which a statement ends because a lock was lost.
 *
 * Owns SIGINT's handler in sessions that have acquired a lock, and what this
 * backend knows of the cancels that it has received.  Run by backends.  Takes
 * slots' mutexes through slot.h, one at a time.
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
#include "postgres.h"

#include <signal.h>

#include "backend/cancel.h"
#include "backend/hold.h"
#include "backend/refusal.h"
#include "miscadmin.h"
#include "utils/memutils.h"

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
static ZklError reason;
static const char *release;
static char name[4 * ZKL_MAX_NAME + 1];

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
	ZklHold    *hold = find_cause(sender, &reason);

	sent_by = hold != NULL ? sender : NOBODY;
	if (hold == NULL)
		return;
	release = zkl_hold_release_function(hold);
	strlcpy(name, hold->name, sizeof(name));
}

/* Works on the error that is being raised, or was caught. */
static void
rewrite_error(void)
{
	ZklError	error;
	ZklHold    *hold = find_cause(sent_by, &error);

	if (hold != NULL)
		hold->told = true;
	zkl_refusal_report_lost(name, release, reason);
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
