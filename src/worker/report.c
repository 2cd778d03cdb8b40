/*
 * report.c
 *	  What the server log and the statistics tell of locks and deadlocks.
 *
 * Owns the words, and what counts as a timeout, a denial, a loss and a deadlock.  Runs
 * in the worker only, which sees all grants and ends in their order, and may fail to
 * write a line without harm to a transaction.  Takes slots' mutexes through slot.h,
 * one at a time.  A RELEASED slot is the worker's, so it is read without its mutex.
 *
 * Must not know why a lock is granted or lost, nor how the statistics are kept.
 *
 * The log tells everything of a deadlock.  The client sees the names of those locks only
 * that its session holds or waits for: the others may be secret.  What other servers
 * tell may be anything, so control characters do not reach the log.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "shared/boottime.h"
#include "shared/deadlocks.h"
#include "shared/lockstats.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "utils/timestamp.h"
#include "worker/report.h"
#include "worker/worker_slot.h"

/* ---- statistics ---- */

static void
add(const ZklSlot *slot, const ZklLockstatsCounts *counts)
{
	if (counts->acquires + counts->timeouts + counts->denials + counts->losses +
		counts->deadlocks > 0)
		zkl_lockstats_add(slot->s_request.path, zkl_slot_shown_length(slot),
						  counts);
}

void
zkl_report_uncounted(int slotno, const ZklSlot *slot)
{
	ZklLockstatsCounts counts = zkl_worker_slot_take_uncounted(slotno);

	add(slot, &counts);
}

/*
 * A grant that the backend has not taken counts for nothing: a timeout, a cancel
 * or the wait for another lock of the same call came first.  Nor does the guard
 * of a semaphore, whose requests may be many in one call; but if the call times
 * out there, that is a timeout of the semaphore.  A try for permits may be refused
 * without any request: so permits have no denials.
 */
static void
count_freed(const ZklSlot *slot)
{
	bool		guard = slot->s_request.guard;
	ZklLockstatsCounts counts = slot->s_uncounted;

	if (slot->s_holder.taken && !guard)
		zkl_slot_tally(slot, &counts);
	counts.timeouts += slot->s_holder.gave_up;
	counts.denials += slot->s_answer.denied && !guard &&
		slot->s_request.dialect != ZKL_DIALECT_PERMIT;
	counts.losses += slot->s_answer.lost_us != 0 && !guard;
	counts.deadlocks += slot->s_answer.error == ZKL_ERROR_DEADLOCK;
	add(slot, &counts);
}

/* ---- locks, in the log ---- */

/* The guard of a semaphore is no lock that users know. */
static bool
is_logged(const ZklSlot *slot)
{
	return zkl_log_locks == ZKL_LOG_LOCKS_ALL &&
		slot->s_request.kind == ZKL_KIND_LOCK && !slot->s_request.guard;
}

static const char *
mode_name(const ZklSlotRequest *request)
{
	switch ((ZklDialect) request->dialect)
	{
		case ZKL_DIALECT_LATCH:
			return "leader";
		case ZKL_DIALECT_PERMIT:
			return "permit";
		case ZKL_DIALECT_MEMBER:
			return "member";
		default:
			return request->mode == ZKL_SHARED ? "shared" : "exclusive";
	}
}

static double
milliseconds(int64 from_us, int64 to_us)
{
	return (double) Max(to_us - from_us, 0) / 1000.0;
}

void
zkl_report_granted(int slotno)
{
	ZklSlot		slot;

	if (zkl_log_locks != ZKL_LOG_LOCKS_ALL)
		return;
	zkl_slot_copy(slotno, &slot);
	if (!is_logged(&slot) || slot.s_state != ZKL_SLOT_GRANTED)
		return;
	ereport(LOG,
			(errmsg("distributed lock \"%.*s\" was granted to process %d after %.3f ms",
					zkl_slot_shown_length(&slot), slot.s_request.path, slot.s_request.pid,
					milliseconds(slot.s_request.asked_us, slot.s_answer.granted_us)),
			 errdetail("Mode: %s.  Fencing token: %lld.  Database: \"%s\".  User: \"%s\".  Application: \"%s\".",
					   mode_name(&slot.s_request), (long long) slot.s_answer.token,
					   slot.s_request.database, slot.s_request.usename,
					   slot.s_request.application)));
}

void
zkl_report_lost(const ZklSlot *slot, ZklError error)
{
	if (zkl_log_locks == ZKL_LOG_LOCKS_OFF)
		return;
	if (slot->s_request.lifetime == ZKL_LIFETIME_RESERVATION)
		ereport(LOG,
				(errmsg("the reservation of distributed lock \"%s\" was lost",
						slot->s_request.path),
				 errdetail("%s  Role \"%s\" had reserved it until %s.",
						   zkl_slot_lost_detail(error), slot->s_request.usename,
						   timestamptz_to_str(GetCurrentTimestamp() +
											  (slot->s_keep_until - zkl_boottime_ms()) * 1000))));
	else
		ereport(LOG,
				(errmsg("distributed lock \"%.*s\" of process %d was lost",
						zkl_slot_shown_length(slot), slot->s_request.path,
						slot->s_request.pid),
				 errdetail("%s", zkl_slot_lost_detail(error))));
}

/* A grant may come too late for a session that gives up. */
static void
log_end(const ZklSlot *slot)
{
	if (!is_logged(slot) || slot->s_answer.granted_us == 0 ||
		(slot->s_answer.lost_us != 0 && slot->s_request.lifetime == ZKL_LIFETIME_RESERVATION))
		return;
	if (slot->s_answer.lost_us != 0)
		ereport(LOG,
				(errmsg("the loss of distributed lock \"%.*s\" was acknowledged by process %d",
						zkl_slot_shown_length(slot), slot->s_request.path,
						slot->s_request.pid),
				 errdetail("The lock was held for %.3f ms.",
						   milliseconds(slot->s_answer.granted_us,
										slot->s_answer.lost_us))));
	else if (slot->s_holder.taken)
		ereport(LOG,
				(errmsg("distributed lock \"%.*s\" of process %d was released after %.3f ms",
						zkl_slot_shown_length(slot), slot->s_request.path,
						slot->s_request.pid,
						milliseconds(slot->s_answer.granted_us,
									 slot->s_holder.released_us))));
	else
		ereport(LOG,
				(errmsg("distributed lock \"%.*s\" was not taken by process %d",
						zkl_slot_shown_length(slot), slot->s_request.path,
						slot->s_request.pid)));
}

/* As many as fit are told to the client. */
#define MORE	"\n..."

void
zkl_report_freed(const ZklSlot *slot)
{
	count_freed(slot);
	log_end(slot);
}

/* ---- deadlocks, in words ---- */

static void
append_clean(StringInfo text, const char *from)
{
	for (; *from != '\0'; from++)
		appendStringInfoChar(text, (unsigned char) *from < ' ' ||
							 *from == 0x7f ? '?' : *from);
}

static void
append_process(StringInfo text, int32 pid, const char *server)
{
	appendStringInfo(text, "rocess %d", pid);
	if (server[0] == '\0')
		return;
	appendStringInfoString(text, " of server \"");
	append_clean(text, server);
	appendStringInfoChar(text, '"');
}

static void
append_lock(StringInfo text, const ZklEdge *edge, bool all_names)
{
	bool		named = all_names || edge->known;

	if (edge->lock[0] == '\0')
	{
		appendStringInfoString(text, "a PostgreSQL lock");
		return;
	}
	if (edge->dialect == ZKL_DIALECT_LATCH)
		appendStringInfoString(text, named ? "leadership" : "a leadership");
	else
		appendStringInfo(text, "%s on %s",
						 edge->mode == ZKL_SHARED ? "ShareLock" : "ExclusiveLock",
						 named ? "distributed lock" : "a distributed lock");
	if (!named)
		return;
	appendStringInfoString(text, " \"");
	append_clean(text, edge->lock);
	appendStringInfoChar(text, '"');
}

static void
append_edge(StringInfo text, const ZklEdge *edge, bool all_names)
{
	appendStringInfoString(text, text->len > 0 ? "\nP" : "P");
	append_process(text, edge->waiter_pid, edge->waiter_server);
	appendStringInfoString(text, " waits for ");
	append_lock(text, edge, all_names);
	appendStringInfoString(text, "; blocked by p");
	append_process(text, edge->blocker_pid, edge->blocker_server);
	appendStringInfoChar(text, '.');
}

/* For the client, cut behind a line */
static void
tell_backend(int slotno, uint32 serial, const ZklDeadlockSteps *steps)
{
	StringInfoData text;
	size_t		i;

	initStringInfo(&text);
	for (i = 0; i < steps->n; i++)
	{
		int			before = text.len;

		append_edge(&text, &steps->all[i], false);
		if (text.len + (int) strlen(MORE) < ZKL_MAX_DEADLOCK_TEXT)
			continue;
		text.len = before;
		appendStringInfoString(&text, MORE);
		break;
	}
	zkl_deadlocks_tell(slotno, serial, text.data);
	pfree(text.data);
}

void
zkl_report_deadlock(int slotno, const ZklDeadlockSteps *steps)
{
	StringInfoData text;
	ZklSlot		slot;
	size_t		i;

	zkl_slot_copy(slotno, &slot);
	tell_backend(slotno, slot.s_serial, steps);
	initStringInfo(&text);
	for (i = 0; i < steps->n; i++)
		append_edge(&text, &steps->all[i], true);
	ereport(LOG,
			(errmsg("process %d detected deadlock across servers while waiting for distributed lock \"%.*s\"",
					slot.s_request.pid, zkl_slot_shown_length(&slot),
					slot.s_request.path),
			 errdetail_internal("%s", text.data)));
	pfree(text.data);
}
