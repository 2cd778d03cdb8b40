/*
 * under_way.c
 *	  The requests of this backend that are under way, their slots, and how many it
 *	  may have.
 *
 * Owns these slots, from the claim until they are handed over to the caller or
 * abandoned.  wait.c has the other half: how long to wait for the answers, which
 * their callers judge.  Run by backends.
 *
 * Takes no locks but, through backend_slot.h, those of slots.
 *
 * Must not know what a request is for, nor what becomes of it.
 *
 * No slot may leak.  So whatever can throw an error comes before the claim, or
 * inside a PG_TRY of the caller that abandons the request.  A FATAL error goes
 * past PG_CATCH: then an exit callback abandons what is under way.  Only
 * zkl_backend_slot_release decides whether a cancel or the grant came first; in
 * both cases the request ends.
 *
 * "zklock.max_requests_per_session" guards against accidents: one session that
 * takes locks in a loop should not take the last slot from all others.  Nor should
 * some sessions together: "zklock.max_requests_per_role".  The current values of the
 * settings count; they take no lock away.
 */
#include "postgres.h"

#include "backend/admission.h"
#include "backend/backend_slot.h"
#include "backend/text.h"
#include "backend/under_way.h"
#include "miscadmin.h"
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/settings.h"
#include "storage/ipc.h"
#include "utils/builtins.h"
#include "utils/guc.h"

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
zkl_under_way_submit(int slotno, bool more)
{
	Assert(nunder_way < under_way_room);
	under_way[nunder_way++] = slotno;
	zkl_backend_slot_submit(slotno, more);
}

int
zkl_under_way_count(void)
{
	return nunder_way;
}

int
zkl_under_way_slot(int number)
{
	Assert(number < nunder_way);
	return under_way[number];
}

void
zkl_under_way_time_out_all(void)
{
	int			i;

	for (i = 0; i < nunder_way; i++)
		zkl_backend_slot_time_out(under_way[i]);
}

void
zkl_under_way_abandon(int first)
{
	while (nunder_way > first)
		(void) zkl_backend_slot_release(under_way[--nunder_way]);
}

bool
zkl_under_way_run(bool (*get) (void *arg), void *arg)
{
	int			first = nunder_way;
	bool volatile granted = false;

	PG_TRY();
	{
		granted = get(arg);
	}
	PG_FINALLY();
	{
		if (granted)
			nunder_way = first; /* the caller owns their slots */
		else
			zkl_under_way_abandon(first);
	}
	PG_END_TRY();
	return granted;
}

/* ---- the owner ---- */

static void
abandon_at_exit(int code, Datum arg)
{
	zkl_under_way_abandon(0);
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
zkl_under_way_owner(void)
{
	return my_owner;
}

/* ---- claiming a slot ---- */

/* The address of the client, or "" */
static const char *
client_address(void)
{
	static char address[ZKL_MAX_CLIENT + 1];
	static bool known = false;

	LOCAL_FCINFO(fcinfo, 0);
	Datum		found;

	if (known)
		return address;
	InitFunctionCallInfoData(*fcinfo, NULL, 0, InvalidOid, NULL, NULL);
	found = inet_client_addr(fcinfo);
	if (!fcinfo->isnull)
		strlcpy(address, DatumGetCString(DirectFunctionCall1(inet_out, found)),
				sizeof(address));
	known = true;
	return address;
}

/* Whose request this is; converting a name may fail. */
static void
identify(ZklSlotRequest *who)
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
	strlcpy(who->client, client_address(), sizeof(who->client));
	who->backend_start = MyStartTimestamp;
}

void
zkl_under_way_describe(ZklSlotTaker *taker, const ZklTarget *target,
					   ZklSlotKind kind)
{
	ZklSlotRequest *request = &taker->request;

	become_owner();
	make_room_under_way();
	memset(taker, 0, sizeof(ZklSlotTaker));
	identify(request);
	taker->owner = my_owner;
	request->kind = kind;
	request->sibling = -1;
	request->procno = zkl_compat_my_procno();
	request->pid = MyProcPid;
	request->roleid = GetSessionUserId();
	request->claimer = my_owner;
	request->lost_action = zkl_lost_lock_action;
	request->on_release_request = zkl_on_release_request;
	strlcpy(request->path, target->path, sizeof(request->path));
	request->dialect = target->dialect;
	request->requested_at = GetCurrentTimestamp();
}

int
zkl_under_way_claim(const ZklTarget *target, ZklSlotKind kind)
{
	ZklSlotTaker taker;

	zkl_under_way_describe(&taker, target, kind);
	return zkl_backend_slot_claim_own(&taker);
}

/* ---- how many there may be ---- */

#define DEFAULT_PER_SESSION	32	/* at least */

/*
 * How many slots this session leaves for superusers.  The role that logged in
 * counts, as for the settings of roles.
 */
int
zkl_under_way_spare_slots(void)
{
	return superuser_arg(GetSessionUserId()) ? 0 : ZKL_RESERVED_SLOTS;
}

/* How many slots for locks all sessions of this session's role can have together */
static int
slots_of_role(void)
{
	return zkl_control->ctl_nrequests - zkl_under_way_spare_slots();
}

static int
requests_per_session(void)
{
	int			most = zkl_max_requests_per_session;

	if (most < 0)
		most = Max(DEFAULT_PER_SESSION, zkl_control->ctl_nrequests / 4);
	return Min(most, slots_of_role());
}

/* The setting that such a limit comes from */
static const char *
setting_of(int most)
{
	return most == slots_of_role() ? "zklock.max_requests" :
		"zklock.max_requests_per_session";
}

static int
hint_at_setting(int most)
{
	if (most == slots_of_role())
		return errhint("Increase \"zklock.max_requests\" and restart the server.");
	return errhint("A superuser can increase \"zklock.max_requests_per_session\" for this session or its role.");
}

void
zkl_under_way_check_number(int64 wanted, bool of_session)
{
	int			most = of_session ? requests_per_session() : slots_of_role();

	if (wanted > most)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too many distributed locks requested at once"),
				 errdetail("The call needs %lld requests, but \"%s\" allows %d.",
						   (long long) wanted, setting_of(most), most),
				 hint_at_setting(most)));
}

/*
 * What a role has: a glance, without the mutexes, as it is a limit against accidents.
 * What was just released does not count, nor what no session holds.
 */
static int
count_of_role(Oid roleid)
{
	int			n = 0;
	int			i;

	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		const ZklSlot *slot = &zkl_slots[i];
		ZklSlotState state = zkl_slot_peek(i);

		n += state > ZKL_SLOT_CLAIMED && state != ZKL_SLOT_CACHED &&
			(state != ZKL_SLOT_RELEASED || slot->s_keep_until != 0 || slot->s_lost_until != 0 ||
			 slot->s_record.stays) &&
			slot->s_request.roleid == roleid;
	}
	return n;
}

/* As long as all roles together have no more, none has: then nothing is counted. */
static void
check_all_of_role(int wanted)
{
	int			most = zkl_max_requests_per_role < 0 ? zkl_control->ctl_nrequests / 2 :
	zkl_max_requests_per_role;
	int			has;

	if (zkl_control->ctl_nrequests - zkl_control_count_free() + wanted <= most ||
		superuser_arg(GetSessionUserId()))
		return;
	has = count_of_role(GetSessionUserId());
	if (has + wanted <= most)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("too many distributed locks held or awaited by this role"),
			 errdetail("Its sessions and reservations have %d requests, and the call needs %d more, but \"%s\" allows %d.",
					   has, wanted, "zklock.max_requests_per_role", most),
			 errhint("A superuser can increase \"zklock.max_requests_per_role\" for the role, or \"zklock.max_requests\".")));
}

void
zkl_under_way_check_room(int held, int wanted)
{
	uint64		owner = zkl_under_way_owner();
	int			most = requests_per_session();
	int			room = most - held - wanted;
	int			kept;

	check_all_of_role(wanted);
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

void
zkl_under_way_check_reservations(int reserved)
{
	int			most = requests_per_session();

	if (reserved < most)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("too many distributed locks reserved by this role"),
			 errdetail("It has %d reservations, and \"%s\" allows %d.", reserved,
					   setting_of(most), most),
			 hint_at_setting(most)));
}
