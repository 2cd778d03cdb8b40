/*
 * departed.h
 *	  Znodes of other servers that support no hold, and never will again.
 */
#ifndef ZKL_CORE_DEPARTED_H
#define ZKL_CORE_DEPARTED_H

#include "core/state.h"

extern void zkl_departed_free(ZklManager *m);

/* From now on the znode of this id is in nobody's way in this lock: that was not known. */
extern void zkl_departed_note(ZklManager *m, const ZklLock *lock, const ZklUuid *uuid);

/* Whether that is known of a znode; of a listed contender. */
extern bool zkl_departed_has(const ZklManager *m, const ZklLock *lock, const ZklUuid *uuid);

static inline bool
zkl_departed_is(const ZklManager *m, const ZklLock *lock, const ZklContender *c)
{
	return c->zklock && zkl_departed_has(m, lock, &c->uuid);
}

#endif							/* ZKL_CORE_DEPARTED_H */
