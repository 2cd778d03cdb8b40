/*
 * admission.c
 *	  Whether this server takes a request now: the script of the extension, the gate,
 *	  drains, and the dialects of the root.
 *
 * Owns which versions of the script are served.  The rest is told: by the worker what
 * the root has, by shared/gate.c whether there is a drain.  Run by backends.  Takes no
 * locks but PostgreSQL's on its catalog and, through backend_slot.h, the slots' mutexes,
 * one at a time.
 *
 * Must not know how a request is answered, nor how the dialects of the root are changed.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "backend/admission.h"
#include "backend/backend_slot.h"
#include "backend/hold.h"
#include "backend/refusal.h"
#include "backend/target.h"
#include "catalog/pg_extension.h"
#include "miscadmin.h"
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/fleet.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "wire/version.h"
#include "znode/zkapi.h"

/*
 * ---- the script of the extension ----
 *
 * Library and script are upgraded one after the other: the library by a restart
 * of each server, standbys first; the script by ALTER EXTENSION on the primary,
 * which all standbys replay.  So a library serves the scripts of releases before
 * it.  It cannot serve a later one, whose functions may mean something that it
 * does not know.
 */

/* As of the last look.  An update of the extension replaces functions. */
static bool served = false;

static void
forget_check(Datum arg, int cacheid, uint32 hash)
{
	served = false;
}

/* Versions are numbers with dots between them. */
static int
compare(const char *a, const char *b)
{
	while (*a != '\0' || *b != '\0')
	{
		char	   *end_of_a;
		char	   *end_of_b;
		long		x = strtol(a, &end_of_a, 10);
		long		y = strtol(b, &end_of_b, 10);

		if (x != y)
			return x < y ? -1 : 1;
		if (end_of_a == a && end_of_b == b)
			return strcmp(a, b);
		a = end_of_a + (*end_of_a == '.');
		b = end_of_b + (*end_of_b == '.');
	}
	return 0;
}

static char *
read_version(void)
{
	Relation	catalog = table_open(ExtensionRelationId, AccessShareLock);
	char	   *version = NULL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ,
				CStringGetDatum(ZKL_EXTENSION_NAME));
	scan = systable_beginscan(catalog, ExtensionNameIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		bool		isnull;
		Datum		value = heap_getattr(tuple, Anum_pg_extension_extversion,
										 RelationGetDescr(catalog), &isnull);

		version = isnull ? NULL : TextDatumGetCString(value);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return version;
}

char *
zkl_admission_script_version(ZklScriptAge *age)
{
	char	   *version = read_version();

	if (version == NULL)
		*age = ZKL_SCRIPT_NONE;
	else if (compare(version, ZKL_SCRIPT) > 0)
		*age = ZKL_SCRIPT_NEWER;
	else if (compare(version, ZKL_OLDEST_SCRIPT) < 0)
		*age = ZKL_SCRIPT_TOO_OLD;
	else
		*age = compare(version, ZKL_SCRIPT) < 0 ? ZKL_SCRIPT_OLDER : ZKL_SCRIPT_OWN;
	return version;
}

void
zkl_admission_check_script(void)
{
	static bool registered = false;
	ZklScriptAge age;
	char	   *version;

	if (served)
		return;
	if (!registered)
		CacheRegisterSyscacheCallback(PROCOID, forget_check, (Datum) 0);
	registered = true;
	version = zkl_admission_script_version(&age);
	if (age == ZKL_SCRIPT_NEWER || age == ZKL_SCRIPT_TOO_OLD)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 age == ZKL_SCRIPT_NEWER ?
				 errmsg("extension \"zklock\" is newer than its library") :
				 errmsg("extension \"zklock\" is too old for its library"),
				 errdetail("The extension in this database has version %s, and the library serves %s to %s.",
						   version, ZKL_OLDEST_SCRIPT, ZKL_SCRIPT),
				 age == ZKL_SCRIPT_NEWER ?
				 errhint("Restart the server after the new library is installed.") :
				 errhint("Run ALTER EXTENSION zklock UPDATE.")));
	served = true;
}

/* ---- its end ---- */

/* How many locks sessions of this database hold */
static int
count_holds(void)
{
	char	   *name = get_database_name(MyDatabaseId);
	char		database[sizeof(zkl_slots->s_request.database)];
	int			n = 0;
	int			i;

	zkl_text_copy_to_utf8(database, sizeof(database), name ? name : "");
	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		ZklSlot		slot;

		if (zkl_slot_peek(i) != ZKL_SLOT_GRANTED)
			continue;
		zkl_slot_copy(i, &slot);
		n += slot.s_state == ZKL_SLOT_GRANTED &&
			strcmp(slot.s_request.database, database) == 0;
	}
	return n;
}

void
zkl_admission_note_drop(void)
{
	int			n = count_holds();

	if (n > 0)
		ereport(NOTICE,
				(errmsg_plural("sessions of this database still hold %d distributed lock",
							   "sessions of this database still hold %d distributed locks",
							   n, n),
				 errhint("Without the extension, a session releases its locks with DISCARD ALL, or when it ends.")));
}

/*
 * ---- drains, in each session ----
 *
 * A session that holds something may go on to take more, because it may need that
 * to finish.  All others are refused, also those that wait already.  Holders are
 * asked as zk_request_release() asks them, by a mark in their slots.
 *
 * A leader cannot be asked: it leads until it ends.  So it loses the leadership,
 * but never under a transaction.  Between two transactions it is lost to the
 * session as any lock, so that no later transaction relies on it unnoticed.  The
 * leader's session ends it at the end of a transaction; the session that drains
 * does it if the leader is in none.  The leader's session ends its transaction, and
 * then looks whether there is a drain.  The session that drains begins the drain,
 * and then looks for transactions.  So one of them sees the other.
 */

/* While a member waits in a barrier, its slot is quiet. */
static bool
is_waiting_member(const ZklHold *hold)
{
	ZklSlot		slot;

	if (hold->lock->key.dialect != ZKL_DIALECT_MEMBER)
		return false;
	zkl_slot_copy(hold->grant.slotno, &slot);
	return slot.s_holder.quiet;
}

static bool
holds_something(void)
{
	ZklHold    *hold;
	ZklError	error;

	zkl_hold_foreach(hold)
	{
		if (zkl_hold_is_good(hold, &error) && !is_waiting_member(hold))
			return true;
	}
	return false;
}

bool
zkl_admission_is_draining(void)
{
	return zkl_gate_drain() != 0 && !holds_something();
}

void
zkl_admission_check_drain(void)
{
	if (!zkl_admission_is_draining())
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("distributed locks are refused because this server is being drained"),
			 errdetail("Only sessions that hold a lock can acquire another one."),
			 errhint("Use another server of the fleet, or wait until zk_undrain() is called here.")));
}

void
zkl_admission_drain_resign(void)
{
	dlist_iter	iter;

	pg_memory_barrier();
	if (zkl_gate_drain() == 0)
		return;
	dlist_foreach(iter, &zkl_holds[ZKL_LIFETIME_SESSION])
	{
		ZklHold    *hold = dlist_container(ZklHold, link, iter.cur);

		if (hold->lock->key.dialect == ZKL_DIALECT_LATCH)
			(void) zkl_backend_slot_resign(hold->grant.slotno,
										   zkl_slots[hold->grant.slotno].s_serial,
										   false);
	}
}

/* ---- drains, in the session that drains ---- */

static void
ask(int slotno, const ZklSlot *slot, uint32 drain)
{
	if (zkl_slot_is_ticket(slot))
		(void) zkl_slot_withdraw(slotno, slot->s_request.ticket, true);
	else if (slot->s_state == ZKL_SLOT_WAITING)
		zkl_control_wake(slot->s_request.procno);
	else if (slot->s_state == ZKL_SLOT_CACHED)
		zkl_dirty_set(slotno, ZKL_WAKE_NOW);
	else if (slot->s_state != ZKL_SLOT_GRANTED)
		return;
	else if (slot->s_request.dialect == ZKL_DIALECT_LATCH &&
			 slot->s_holder.taken &&
			 zkl_backend_slot_resign(slotno, slot->s_serial, true))
		return;
	else
		zkl_backend_slot_ask(slotno, drain);
}

/*
 * A transaction that is past its commit check relies on what was lost since; and
 * what was released is with ZooKeeper until its slot is free, or only stays for its role to
 * be told.
 */
bool
zkl_admission_drain_is_left(const ZklSlot *slot)
{
	if (slot->s_request.kind != ZKL_KIND_LOCK)
		return false;
	switch ((ZklSlotState) slot->s_state)
	{
		case ZKL_SLOT_WAITING:
		case ZKL_SLOT_GRANTED:
		case ZKL_SLOT_CACHED:
			return true;
		case ZKL_SLOT_RELEASED:
			return slot->s_record.sent || !zkl_slot_is_untold(slot);
		case ZKL_SLOT_LOST:
			return slot->s_holder.quiet && slot->s_holder.taken;
		default:
			return false;
	}
}

int
zkl_admission_drain_ask_all(uint32 drain)
{
	int			left = 0;
	int			i;

	pg_memory_barrier();
	for (i = 0; i < zkl_control->ctl_nslots && zkl_gate_drain() == drain; i++)
	{
		ZklSlot		slot;

		if (zkl_slot_peek(i) <= ZKL_SLOT_CLAIMED)
			continue;
		zkl_slot_copy(i, &slot);
		ask(i, &slot, drain);
		left += zkl_admission_drain_is_left(&slot);
	}
	return left;
}

/*
 * ---- the dialects of the root ----
 *
 * Only this server is wrong, so only this server refuses, and only new requests
 * for the locks that differ.  While the root's dialects are being changed, a lock
 * must have the same one before and after.  A session that holds the lock may
 * request it once more: its znode is there already, and keeps a change from
 * being made.
 */

void
zkl_admission_raise_unreadable(int32 rc)
{
	const char *path = psprintf("%s%s", zkl_root, ZKL_ROOT_SETTINGS);

	if (rc != ZKL_RC_OK)
		zkl_refusal_raise_zookeeper("could not access the settings of the root in znode \"%s\"",
									path, rc);
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("could not read the settings of the root in znode \"%s\"",
					path),
			 errdetail("Its data is not in the format of this version of zklock."),
			 errhint("If a newer version wrote it, upgrade this server.")));
}

static void
refuse_other_dialect(ZklRootState state, const char *name, const char *path, ZklDialect dialect)
{
	ZklRoot		root;
	ZklDialect	before;
	ZklDialect	after;
	int32		rc;

	(void) zkl_root_copy(&root, &rc);
	if (state == ZKL_ROOT_UNREADABLE)
		zkl_admission_raise_unreadable(rc);
	before = zkl_dialect_find(root.dialects, path);
	after = root.is_changing ? zkl_dialect_find(root.changing, path) : before;
	name = zkl_text_for_client(name);
	if (before != after)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the dialect of distributed lock \"%s\" is being changed", name),
				 errdetail("It is %s, and is to become %s.",
						   zkl_dialect_name(before), zkl_dialect_name(after)),
				 errhint("Try again when zk_set_dialects() has ended.  If it was interrupted, call it again.")));
	if (before != dialect)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("distributed lock \"%s\" has another dialect on this server than on others",
						name),
				 errdetail("By \"zklock.dialects\" it is %s, and by the settings of root \"%s\" it is %s.",
						   zkl_dialect_name(dialect), zkl_root, zkl_dialect_name(before)),
				 errhint("Set \"zklock.dialects\" as the other servers have it, or change the root's dialects with zk_set_dialects().")));
}

static bool
is_held(int sibling)
{
	uint32		generation;
	int64		deadline;
	ZklError	error;

	if (sibling < 0)
		return false;
	zkl_lease_read(&generation, &deadline);
	return zkl_backend_slot_is_held(sibling, generation, &error);
}

/* What is not known now is looked at again before a grant is taken. */
static void
check_dialect(const ZklTarget *lock, bool guard, int sibling)
{
	ZklRootState state = zkl_root_state();

	if (state != ZKL_ROOT_SAME && state != ZKL_ROOT_UNKNOWN &&
		zkl_root_concerns(lock->dialect, lock->path, guard) && !is_held(sibling))
		refuse_other_dialect(state, lock->name, lock->path, lock->dialect);
}

/* Whether the settings decide over the slot's request, which may yet be granted */
static bool
decides(const ZklSlot *slot)
{
	return slot->s_request.kind == ZKL_KIND_LOCK && !slot->s_holder.taken &&
		(slot->s_state == ZKL_SLOT_WAITING ||
		 (slot->s_state == ZKL_SLOT_GRANTED &&
		  zkl_lease_is_current(slot->s_record.generation))) &&
		zkl_root_concerns((ZklDialect) slot->s_request.dialect,
						  slot->s_request.path, slot->s_request.guard) &&
		!is_held(slot->s_request.sibling);
}

/* The state is read once: between two looks a change could begin, and another end. */
bool
zkl_admission_check_slot(int slotno, const char *name)
{
	ZklRootState state = zkl_root_state();
	ZklSlot		slot;

	if (state == ZKL_ROOT_SAME)
		return true;
	zkl_slot_copy(slotno, &slot);
	if (!decides(&slot))
		return true;
	if (state == ZKL_ROOT_UNKNOWN)
		return false;
	refuse_other_dialect(state, name, slot.s_request.path, (ZklDialect) slot.s_request.dialect);
	return true;
}

/* ---- the gate, and all of it ---- */

void
zkl_admission_check_gate(bool is_new_lock)
{
	ZklStatus	status;

	if (zkl_gate_read() == ZKL_GATE_OPEN)
		return;
	zkl_status_copy(&status);
	if (is_new_lock || status.session_id == 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("distributed locks are disabled"),
				 errhint("Set \"zklock.enabled\" to on.")));
}

void
zkl_admission_check(const ZklTarget *lock, bool guard, int sibling)
{
	zkl_admission_check_drain();
	check_dialect(lock, guard, sibling);
	zkl_gate_check_worker();
	zkl_admission_check_script();
	zkl_admission_check_gate(true);
}
