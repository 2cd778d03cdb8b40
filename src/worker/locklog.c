/*
 * locklog.c
 *	  What the server log tells of locks: "zklock.log_locks".
 *
 * Owns the words.  Runs in the worker only, which sees all grants and ends in
 * their order, and may fail to write a line without harm to a transaction.  Takes
 * slots' mutexes through slot.h, one at a time.
 *
 * Must not know why a lock is granted or lost.
 */
#include "postgres.h"

#include "shared/settings.h"
#include "worker/locklog.h"

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
zkl_locklog_granted(int slotno)
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
zkl_locklog_lost(const ZklSlot *slot, ZklError error)
{
	if (zkl_log_locks == ZKL_LOG_LOCKS_OFF)
		return;
	ereport(LOG,
			(errmsg("distributed lock \"%.*s\" of process %d was lost",
					zkl_slot_shown_length(slot), slot->s_request.path,
					slot->s_request.pid),
			 errdetail("%s", zkl_slot_lost_detail(error))));
}

/* A grant may come too late for a session that gives up. */
void
zkl_locklog_freed(const ZklSlot *slot)
{
	if (!is_logged(slot) || slot->s_answer.granted_us == 0)
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
