/*
 * deadlock_report.c
 *	  Deadlocks across servers, in words.
 *
 * Owns these words.  Runs in the worker only.  Takes the slot's mutex through
 * slot.h.  It decides nothing: src/deadlock/ has found the deadlock.
 *
 * The server log tells everything.  The client sees the names of those locks only
 * that its session holds or waits for: the others may be secret.  What other
 * servers tell may be anything, so control characters do not reach the log.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "shared/deadlocks.h"
#include "shared/slot.h"
#include "worker/deadlock_report.h"

/* As many as fit are told to the client. */
#define MORE	"\n..."

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
zkl_deadlock_report(int slotno, const ZklDeadlockSteps *steps)
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
