/*
 * request.c
 *	  The requests of this backend that are under way, and their slots.
 *
 * Owns these slots, from the claim until they are handed over to the caller or
 * abandoned.  wait.c has the other half: how long to wait for the answers, which
 * their callers judge.  Run by backends.
 *
 * Takes no locks but, through slot.h, those of slots and of the list of free
 * slots.
 *
 * Must not know what a request is for, nor what becomes of it.
 *
 * No slot may leak.  So whatever can throw an error comes before the claim, or
 * inside a PG_TRY of the caller that abandons the request.  A FATAL error goes
 * past PG_CATCH: then an exit callback abandons what is under way.  Only
 * zkl_slot_release decides whether a cancel or the grant came first; in both
 * cases the request ends.
 */
#include "postgres.h"

#include "backend/refusal.h"
#include "backend/request.h"
#include "backend/script.h"
#include "backend/slot.h"
#include "backend/text.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/loaded.h"
#include "shared/settings.h"
#include "storage/ipc.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

/* Whose requests these are, in UTF-8 */
typedef struct Identity
{
	char		database[64];
	char		usename[64];
	char		application[64];
} Identity;

static uint64 my_owner = 0;		/* 0: this backend never made a request */

/* The slots of what was submitted, in that order; in TopMemoryContext */
static int *under_way = NULL;
static int	nunder_way = 0;
static int	under_way_room = 0;

/* ---- under way ---- */

static void
make_room_under_way(void)
{
	int			room = Max(8, 2 * under_way_room);

	if (nunder_way < under_way_room)
		return;
	if (under_way == NULL)
		under_way = MemoryContextAlloc(TopMemoryContext, room * sizeof(int));
	else
		under_way = repalloc(under_way, room * sizeof(int));
	under_way_room = room;
}

void
zkl_request_submit(int slotno, bool more)
{
	Assert(nunder_way < under_way_room);
	under_way[nunder_way++] = slotno;
	zkl_slot_submit(slotno, more);
}

int
zkl_request_count(void)
{
	return nunder_way;
}

int
zkl_request_slot(int number)
{
	Assert(number < nunder_way);
	return under_way[number];
}

void
zkl_request_time_out_all(void)
{
	int			i;

	for (i = 0; i < nunder_way; i++)
		zkl_slot_time_out(under_way[i]);
}

void
zkl_request_abandon(int first)
{
	while (nunder_way > first)
		(void) zkl_slot_release(under_way[--nunder_way]);
}

bool
zkl_request_run(bool (*get) (void *arg), void *arg)
{
	int			first = nunder_way;
	bool		granted = false;

	PG_TRY();
	{
		granted = get(arg);
	}
	PG_CATCH();
	{
		zkl_request_abandon(first);
		PG_RE_THROW();
	}
	PG_END_TRY();

	if (granted)
		nunder_way = first;		/* the caller owns their slots */
	else
		zkl_request_abandon(first);
	return granted;
}

void
zkl_request_take_back(int slotno)
{
	Assert(nunder_way < under_way_room);
	under_way[nunder_way++] = slotno;
}

/* ---- the owner ---- */

static void
abandon_at_exit(int code, Datum arg)
{
	zkl_request_abandon(0);
}

static void
become_owner(void)
{
	if (my_owner != 0)
		return;
	on_shmem_exit(abandon_at_exit, 0);
	my_owner = pg_atomic_fetch_add_u64(&zkl_control->ctl_next_owner, 1);
}

uint64
zkl_request_owner(void)
{
	return my_owner;
}

/* ---- claiming a slot ---- */

/* Converting a name may fail, so this comes before the claim. */
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

bool
zkl_request_has_own_slot(void)
{
	return zkl_slot_find_own(zkl_my_procno()) >= 0;
}

void
zkl_request_check(ZklSlotKind kind)
{
	zkl_loaded_check_worker();
	if (kind == ZKL_KIND_LOCK)
	{
		zkl_script_check();
		zkl_refusal_check_gate(true);
	}
}

int
zkl_request_claim(const ZklTarget *target, ZklSlotKind kind)
{
	TimestampTz now = GetCurrentTimestamp();
	Identity	who;
	ZklSlot    *slot;
	int			slotno;

	zkl_request_check(kind);
	become_owner();
	make_room_under_way();
	identify(&who);

	slotno = kind == ZKL_KIND_LOCK ? claim_for_lock() :
		zkl_slot_claim_own(zkl_my_procno());
	slot = &zkl_slots[slotno];
	slot->s_request.kind = kind;
	slot->s_request.procno = zkl_my_procno();
	slot->s_request.pid = MyProcPid;
	slot->s_request.roleid = GetSessionUserId();
	slot->s_owner = my_owner;
	slot->s_request.claimer = my_owner;
	slot->s_request.lost_action = zkl_lost_lock_action;
	slot->s_request.on_revoke = zkl_on_revoke;
	strlcpy(slot->s_request.path, target->path, sizeof(slot->s_request.path));
	slot->s_request.dialect = target->dialect;
	memcpy(slot->s_request.database, who.database, sizeof(slot->s_request.database));
	memcpy(slot->s_request.usename, who.usename, sizeof(slot->s_request.usename));
	memcpy(slot->s_request.application, who.application, sizeof(slot->s_request.application));
	slot->s_request.requested_at = now;
	return slotno;
}
