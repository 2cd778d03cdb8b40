/*
 * slotrow.c
 *	  How requests are shown: the names of their modes and states, and to whom.
 *
 * Owns these names.  Run by backends, on copies of slots.  Takes no locks.
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "functions/row.h"
#include "functions/slotrow.h"
#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/lease.h"
#include "utils/acl.h"

static const char *const slot_state_names[] = {
	[ZKL_SLOT_FREE] = NULL,
	[ZKL_SLOT_CLAIMED] = NULL,
	[ZKL_SLOT_WAITING] = "waiting",
	[ZKL_SLOT_GRANTED] = "granted",
	[ZKL_SLOT_CACHED] = "cached",
	[ZKL_SLOT_DENIED] = "denied",
	[ZKL_SLOT_FAILED] = "failed",
	[ZKL_SLOT_LOST] = "lost",
	[ZKL_SLOT_RELEASED] = "releasing"
};

const char *
zkl_slotrow_mode(const ZklSlot *slot)
{
	if (slot->s_request.guard || slot->s_request.dialect == ZKL_DIALECT_PERMIT)
		return "permit";
	return slot->s_request.dialect == ZKL_DIALECT_MEMBER ? "member" :
		slot->s_request.dialect == ZKL_DIALECT_LATCH ? "leader" :
		zkl_row_mode_name(slot->s_request.mode);
}

const char *
zkl_slotrow_lifetime(const ZklSlot *slot)
{
	if (slot->s_state == ZKL_SLOT_CACHED)
		return "";
	return slot->s_request.lifetime == ZKL_LIFETIME_SESSION ? "session" : "transaction";
}

TimestampTz
zkl_slotrow_granted_at(const ZklSlot *slot)
{
	return slot->s_state == ZKL_SLOT_CACHED ? 0 : slot->s_answer.granted_at;
}

bool
zkl_slotrow_has_session(const ZklSlot *slot)
{
	return slot->s_state != ZKL_SLOT_RELEASED &&
		slot->s_state != ZKL_SLOT_CACHED;
}

void
zkl_slotrow_add_session(ZklRow *row, const ZklSlot *slot, bool visible)
{
	bool		has_session = visible && zkl_slotrow_has_session(slot);
	const ZklSlotRequest *request = &slot->s_request;

	zkl_row_utf8_or_null(row, has_session ? request->database : "",
						 sizeof(request->database));
	zkl_row_utf8_or_null(row, has_session ? request->usename : "",
						 sizeof(request->usename));
	zkl_row_utf8_or_null(row, has_session ? request->application : "",
						 sizeof(request->application));
}

const char *
zkl_slotrow_state(const ZklSlot *slot)
{
	if (slot->s_state == ZKL_SLOT_RELEASED &&
		slot->s_keep_until > zkl_boottime_ms())
		return "kept";
	if (slot->s_state == ZKL_SLOT_GRANTED &&
		!zkl_lease_is_valid(slot->s_record.generation))
		return "unconfirmed";
	return slot_state_names[slot->s_state];
}

bool
zkl_slotrow_is_visible(const ZklSlot *slot)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		(slot->s_state != ZKL_SLOT_CACHED &&
		 has_privs_of_role(GetUserId(), slot->s_request.roleid));
}
