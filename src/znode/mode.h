/*
 * mode.h
 *	  The two modes of a lock, and which excludes which.
 */
#ifndef ZKL_ZNODE_MODE_H
#define ZKL_ZNODE_MODE_H

#include <stdbool.h>

typedef enum ZklLockMode
{
	ZKL_EXCLUSIVE = 0,
	ZKL_SHARED = 1
} ZklLockMode;

/* Whether contenders of different owners in modes a and b exclude each other */
static inline bool
zkl_mode_conflicts(ZklLockMode a, ZklLockMode b)
{
	return a == ZKL_EXCLUSIVE || b == ZKL_EXCLUSIVE;
}

/* Whether a hold in mode "held" gives its owner all that "wanted" would */
static inline bool
zkl_mode_covers(ZklLockMode held, ZklLockMode wanted)
{
	return held == ZKL_EXCLUSIVE || wanted == ZKL_SHARED;
}

#endif							/* ZKL_ZNODE_MODE_H */
