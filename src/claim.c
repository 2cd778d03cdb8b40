/*
 * claim.c
 *	  A slot for a new request: which one, and who asks.
 *
 * Owns nothing.  Run by backends.  Takes no locks but, through shmem.h, that of
 * the list of free slots.
 *
 * Must not know what becomes of a request.
 */
#include "postgres.h"

#include "claim.h"
#include "commands/dbcommands.h"
#include "compat.h"
#include "encoding.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "zklock.h"

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
	zkl_copy_to_utf8(who->database, sizeof(who->database),
					 database ? database : "");
	zkl_copy_to_utf8(who->usename, sizeof(who->usename),
					 usename ? usename : "");
	zkl_copy_to_utf8(who->application, sizeof(who->application),
					 application_name ? application_name : "");
}

int
zkl_claim_slot(const ZklTarget *target, ZklSlotKind kind, uint64 owner)
{
	Identity	who;
	TimestampTz now = GetCurrentTimestamp();
	ZklSlot    *slot;
	int			slotno;

	identify(&who);

	slotno = zkl_slot_claim();
	if (slotno < 0)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too many distributed locks held or awaited"),
				 errdetail("All %d slots set by \"zklock.max_requests\" are in use.",
						   zkl_control->ctl_nslots),
				 errhint("Increase \"zklock.max_requests\" and restart the server.")));

	slot = &zkl_slots[slotno];
	slot->s_kind = kind;
	slot->s_procno = zkl_my_procno();
	slot->s_pid = MyProcPid;
	slot->s_roleid = GetSessionUserId();
	slot->s_owner = owner;
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
