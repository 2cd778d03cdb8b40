/*
 * slotrow.h
 *	  How requests are shown: the names of their modes and states, and to whom.
 */
#ifndef ZKL_FUNCTIONS_SLOTROW_H
#define ZKL_FUNCTIONS_SLOTROW_H

#include "functions/row.h"
#include "shared/slot.h"

extern const char *zkl_slotrow_mode(const ZklSlot *slot);

/* Empty, and 0: no session has a lock that is cached, so it has neither. */
extern const char *zkl_slotrow_lifetime(const ZklSlot *slot);
extern TimestampTz zkl_slotrow_granted_at(const ZklSlot *slot);

/*
 * False once the session has released the lock: it may have ended, and another
 * process may have its number.
 */
extern bool zkl_slotrow_has_session(const ZklSlot *slot);

/* Columns datname, usename and application_name, as they were at the request */
extern void zkl_slotrow_add_session(ZklRow *row, const ZklSlot *slot, bool visible);

/* NULL: a request in this state is not shown. */
extern const char *zkl_slotrow_state(const ZklSlot *slot);

/*
 * Whether the current role may see which lock it is, and what belongs to that:
 * it is the session's role, or may read all statistics.  A cached lock is no
 * session's.
 */
extern bool zkl_slotrow_is_visible(const ZklSlot *slot);

#endif							/* ZKL_FUNCTIONS_SLOTROW_H */
