/*
 * extend.h
 *	  Extending the time for which a lock may be held.
 */
#ifndef ZKL_BACKEND_EXTEND_H
#define ZKL_BACKEND_EXTEND_H

#include "backend/target.h"

/*
 * From now on each hold of this backend on the lock may last for so many ms; 0:
 * without limit.  False, with a warning, if there is none; an error if one was
 * lost.
 */
extern bool zkl_extend_holds(const ZklTarget *lock, int64 at_most_ms);

#endif							/* ZKL_BACKEND_EXTEND_H */
