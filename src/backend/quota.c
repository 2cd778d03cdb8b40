/*
 * quota.c
 *	  How many requests for locks a session may have.
 *
 * Owns nothing.  Run by backends.  Takes no locks but, through backend_slot.h,
 * those of slots, one at a time.
 *
 * Must not know what becomes of a request.
 *
 * "zklock.max_requests_per_session" guards against accidents: one session that
 * takes locks in a loop should not take the last slot from all others.  The
 * current value of the setting counts; it takes no lock away.
 */
#include "postgres.h"

#include "backend/backend_slot.h"
#include "backend/quota.h"
#include "backend/under_way.h"
#include "shared/control.h"
#include "shared/settings.h"

#define DEFAULT_PER_SESSION	32	/* at least */

static int
requests_per_session(void)
{
	int			most = zkl_max_requests_per_session;

	if (most < 0)
		most = Max(DEFAULT_PER_SESSION, zkl_control->ctl_nrequests / 4);
	return Min(most, zkl_under_way_room());
}

/* The setting that such a limit comes from */
static const char *
setting_of(int most)
{
	return most == zkl_under_way_room() ? "zklock.max_requests" :
		"zklock.max_requests_per_session";
}

static int
hint_at_setting(int most)
{
	if (most == zkl_under_way_room())
		return errhint("Increase \"zklock.max_requests\" and restart the server.");
	return errhint("A superuser can increase \"zklock.max_requests_per_session\" for this session or its role.");
}

static void
check_number(int64 wanted, int most)
{
	if (wanted <= most)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("too many distributed locks requested at once"),
			 errdetail("The call needs %lld requests, but \"%s\" allows %d.",
					   (long long) wanted, setting_of(most), most),
			 hint_at_setting(most)));
}

void
zkl_quota_check_number(int64 wanted)
{
	check_number(wanted, requests_per_session());
}

void
zkl_quota_check_total(int n)
{
	check_number(n, zkl_under_way_room());
}

void
zkl_quota_check_room(int held, int wanted)
{
	uint64		owner = zkl_under_way_owner();
	int			most = requests_per_session();
	int			room = most - held - wanted;
	int			kept;

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
