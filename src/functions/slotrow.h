/*
 * slotrow.h
 *	  How requests are shown: the names of their modes and states.
 */
#ifndef ZKL_FUNCTIONS_SLOTROW_H
#define ZKL_FUNCTIONS_SLOTROW_H

#include "shared/slot.h"

extern const char *zkl_slotrow_mode(const ZklSlot *slot);

/*
 * False once the session has released the lock: it may have ended, and another
 * process may have its number.
 */
extern bool zkl_slotrow_has_session(const ZklSlot *slot);

/* NULL: a request in this state is not shown. */
extern const char *zkl_slotrow_state(const ZklSlot *slot);

#endif							/* ZKL_FUNCTIONS_SLOTROW_H */
