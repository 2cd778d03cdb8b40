/*
 * peer_count.c
 *	  Whether other servers answer what this one asks them, in messages.
 *
 * Owns ctl_peer_counts.  The worker writes, backends copy.  Takes no locks.
 *
 * Must not know what is asked, nor where a server hears.
 */
#include "postgres.h"

#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/peer_count.h"

#define ECHO_PAUSE_MS	1000	/* from one ask that is to be echoed to the
								 * next one */

/* The place of a session; NULL: it has none */
static ZklPeerCount *
find_place(int64 session)
{
	ZklPeerCount *counts = zkl_control->ctl_peer_counts;

	for (int i = 0; i < ZKL_MAX_PEER_COUNTS; i++)
	{
		if (counts[i].session == session)
			return &counts[i];
	}
	return NULL;
}

/* A free one, or that of the server that was not asked for longest */
static ZklPeerCount *
oldest_place(void)
{
	ZklPeerCount *counts = zkl_control->ctl_peer_counts;
	ZklPeerCount *oldest = counts;

	for (int i = 1; i < ZKL_MAX_PEER_COUNTS; i++)
	{
		if (counts[i].asked_ms < oldest->asked_ms)
			oldest = &counts[i];
	}
	return oldest;
}

bool
zkl_peer_count_ask(int64 session)
{
	ZklPeerCount *count = find_place(session);
	int64		now = zkl_boottime_ms();

	if (count != NULL && now - count->asked_ms < ECHO_PAUSE_MS)
		return false;
	zkl_changes_begin(&zkl_control->ctl_changes);
	if (count == NULL)
	{
		count = oldest_place();
		memset(count, 0, sizeof(*count));
		count->session = session;
	}
	if (count->unanswered++ == 0)
		count->since_ms = now;
	count->asked_ms = now;
	zkl_changes_end(&zkl_control->ctl_changes);
	return true;
}

void
zkl_peer_count_heard(int64 session)
{
	ZklPeerCount *count = find_place(session);

	if (count == NULL || count->unanswered == 0)
		return;
	zkl_changes_begin(&zkl_control->ctl_changes);
	count->unanswered = 0;
	zkl_changes_end(&zkl_control->ctl_changes);
}

bool
zkl_peer_count_copy(int64 session, ZklPeerCount *copy)
{
	const ZklPeerCount *count;
	uint32		number;

	do
	{
		number = zkl_changes_so_far(&zkl_control->ctl_changes);
		count = find_place(session);
		if (count != NULL)
			*copy = *count;
	} while (zkl_changes_since(&zkl_control->ctl_changes, number));
	return count != NULL && session != 0;
}
