/*
 * dialect_check.c
 *	  Refuses requests for locks whose dialect differs on this server from that
 *	  of the root.
 *
 * Owns nothing: the worker tells what the root has.  Run by backends.  Takes no
 * locks but, through backend_slot.h, the slots' mutexes, one at a time.
 *
 * Must not know how the dialects of the root are changed.
 *
 * Only this server is wrong, so only this server refuses, and only new requests
 * for the locks that differ.  While the root's dialects are being changed, a lock
 * must have the same one before and after.  A session that holds the lock may
 * request it once more: its znode is there already, and keeps a change from
 * being made.
 */
#include "postgres.h"

#include "backend/backend_slot.h"
#include "backend/dialect_check.h"
#include "backend/refusal.h"
#include "backend/text.h"
#include "shared/lease.h"
#include "shared/root.h"
#include "shared/settings.h"
#include "znode/result.h"

void
zkl_dialect_check_unreadable(int32 rc)
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
refuse_difference(const char *name, ZklDialect here, ZklDialect there)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("distributed lock \"%s\" has another dialect on this server than on others",
					name),
			 errdetail("By \"zklock.dialects\" it is %s, and by the settings of root \"%s\" it is %s.",
					   zkl_dialect_name(here), zkl_root, zkl_dialect_name(there)),
			 errhint("Set \"zklock.dialects\" as the other servers have it, or change the root's dialects with zk_set_dialects().")));
}

static void
refuse_change(const char *name, ZklDialect before, ZklDialect after)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the dialect of distributed lock \"%s\" is being changed", name),
			 errdetail("It is %s, and is to become %s.",
					   zkl_dialect_name(before), zkl_dialect_name(after)),
			 errhint("Try again when zk_set_dialects() has ended.  If it was interrupted, call it again.")));
}

static void
check(ZklRootState state, const char *name, const char *path, ZklDialect dialect)
{
	ZklRoot		root;
	ZklDialect	before;
	ZklDialect	after;
	int32		rc;

	(void) zkl_root_copy(&root, &rc);
	if (state == ZKL_ROOT_UNREADABLE)
		zkl_dialect_check_unreadable(rc);
	before = zkl_dialect_find(root.dialects, path);
	after = root.is_changing ? zkl_dialect_find(root.changing, path) : before;
	name = zkl_text_for_client(name);
	if (before != after)
		refuse_change(name, before, after);
	if (before != dialect)
		refuse_difference(name, dialect, before);
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
void
zkl_dialect_check_request(const ZklTarget *lock, bool guard, int sibling)
{
	ZklRootState state = zkl_root_state();

	if (state != ZKL_ROOT_SAME && state != ZKL_ROOT_UNKNOWN &&
		zkl_root_concerns(lock->dialect, lock->path, guard) && !is_held(sibling))
		check(state, lock->name, lock->path, lock->dialect);
}

/* Whether the settings decide over the slot's request, which may yet be granted */
static bool
decides(const ZklSlot *slot)
{
	return slot->s_request.kind == ZKL_KIND_LOCK && !slot->s_holder.taken &&
		(slot->s_state == ZKL_SLOT_WAITING ||
		 (slot->s_state == ZKL_SLOT_GRANTED &&
		  zkl_lease_is_current(slot->s_answer.generation))) &&
		zkl_root_concerns((ZklDialect) slot->s_request.dialect,
						  slot->s_request.path, slot->s_request.guard) &&
		!is_held(slot->s_request.sibling);
}

/* The state is read once: between two looks a change could begin, and another end. */
bool
zkl_dialect_check_slot(int slotno, const char *name)
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
	check(state, name, slot.s_request.path, (ZklDialect) slot.s_request.dialect);
	return true;
}
