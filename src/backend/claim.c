/*
 * claim.c
 *	  A slot for a new request: which one, who asks, and how many one may have.
 *
 * Owns nothing.  Run by backends.  Takes no locks but, through slot.h, that of
 * the list of free slots.
 *
 * Must not know what becomes of a request.
 *
 * "zklock.max_requests_per_session" is against accidents: one session that
 * takes locks in a loop should not take the last slot from all others.  The
 * setting is the one of the moment; what is held already stays.
 */
#include "postgres.h"

#include "backend/claim.h"
#include "backend/text.h"
#include "backend/refusal.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#define DEFAULT_PER_SESSION	32	/* at least */
#define OWN_SLOT_LOOK_MS	10

/* Who asks, in UTF-8 */
typedef struct Identity
{
	char		database[64];
	char		usename[64];
	char		application[64];
} Identity;

static void
identify(Identity *who)
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
}

/* ---- how many ---- */

static int
requests_per_session(void)
{
	int			all = zkl_control->ctl_nrequests;
	int			most = zkl_max_requests_per_session;

	if (most < 0)
		most = Max(DEFAULT_PER_SESSION, all / 4);
	return Min(most, all);
}

/* The setting that such a limit comes from */
static const char *
setting_of(int most)
{
	return most == zkl_control->ctl_nrequests ? "zklock.max_requests" :
		"zklock.max_requests_per_session";
}

static int
hint_at_setting(int most)
{
	if (most == zkl_control->ctl_nrequests)
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
zkl_claim_check_number(int64 wanted)
{
	check_number(wanted, requests_per_session());
}

void
zkl_claim_check_total(int n)
{
	check_number(n, zkl_control->ctl_nrequests);
}

void
zkl_claim_check_room(int held, int wanted, uint64 owner)
{
	int			most = requests_per_session();
	int			room = most - held - wanted;
	int			kept;

	if (room >= zkl_slot_count_kept(owner, room))
		return;
	kept = zkl_slot_count_kept(owner, -1);
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("too many distributed locks held or awaited by this session"),
			 errdetail("The session has %d requests, %d of them for locks that are kept after their release, and needs %d more, but \"%s\" allows %d.",
					   held + kept, kept, wanted, setting_of(most), most),
			 hint_at_setting(most)));
}

/* ---- which one ---- */

static int
claim_for_lock(void)
{
	int			slotno = zkl_slot_claim();

	if (slotno < 0)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too many distributed locks held or awaited"),
				 errdetail("All %d slots set by \"zklock.max_requests\" are in use.",
						   zkl_control->ctl_nrequests),
				 errhint("Increase \"zklock.max_requests\" and restart the server.")));
	return slotno;
}

/*
 * The worker frees a slot as soon as it sees the release, whatever ZooKeeper
 * does.  So this waits only for a worker that is stopped, or starts again; and
 * it looks by itself, since nobody is told of a slot that becomes free.
 */
static int
claim_own(void)
{
	int64		until = zkl_boottime_ms() + zkl_connect_timeout;
	int			slotno;

	while ((slotno = zkl_slot_claim_own(zkl_my_procno())) < 0)
	{
		if (zkl_boottime_ms() >= until)
			zkl_refusal_raise_unreachable();
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 OWN_SLOT_LOOK_MS, zkl_wait_event());
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	return slotno;
}

int
zkl_claim_slot(const ZklTarget *target, ZklSlotKind kind, uint64 owner)
{
	Identity	who;
	TimestampTz now = GetCurrentTimestamp();
	ZklSlot    *slot;
	int			slotno;

	identify(&who);

	slotno = kind == ZKL_KIND_LOCK ? claim_for_lock() : claim_own();
	slot = &zkl_slots[slotno];
	slot->s_kind = kind;
	slot->s_procno = zkl_my_procno();
	slot->s_pid = MyProcPid;
	slot->s_roleid = GetSessionUserId();
	slot->s_owner = owner;
	slot->s_claimer = owner;
	slot->s_lost_action = zkl_lost_lock_action;
	slot->s_on_revoke = zkl_on_revoke;
	strlcpy(slot->s_path, target->path, sizeof(slot->s_path));
	slot->s_dialect = target->dialect;
	memcpy(slot->s_database, who.database, sizeof(slot->s_database));
	memcpy(slot->s_usename, who.usename, sizeof(slot->s_usename));
	memcpy(slot->s_application, who.application, sizeof(slot->s_application));
	slot->s_requested_at = now;
	return slotno;
}
