/*
 * restore.h
 *	  What a restarted worker finds: the session, the chain, and the slots.
 */
#ifndef ZKL_CORE_RESTORE_H
#define ZKL_CORE_RESTORE_H

#include "core/state.h"

/* The steps of ATTACH and RESTORE */
extern void zkl_restore_session(ZklManager *m, const ZklSession *session,
								uint32_t chain, uint32_t chain_in_use);
extern void zkl_restore_slots(ZklManager *m, const ZklRestored *slots);

#endif							/* ZKL_CORE_RESTORE_H */
