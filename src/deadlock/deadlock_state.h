/*
 * deadlock_state.h
 *	  What the search for deadlocks has under way.  For the files of this folder.
 */
#ifndef ZKL_DEADLOCK_DEADLOCK_STATE_H
#define ZKL_DEADLOCK_DEADLOCK_STATE_H

#include "core/wing.h"
#include "deadlock/deadlock.h"

/* Its kinds of operations; deadlock.c has their names */
#define ZKL_DEADLOCK_LIST_ALL	(ZKL_OP_WING + 0)	/* lists all publications */
#define ZKL_DEADLOCK_GET		(ZKL_OP_WING + 1)	/* reads one */
#define ZKL_DEADLOCK_LIST		(ZKL_OP_WING + 2)	/* lists a directory */
#define ZKL_DEADLOCK_VERDICT	(ZKL_OP_WING + 3)

#endif							/* ZKL_DEADLOCK_DEADLOCK_STATE_H */
