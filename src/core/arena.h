/*
 * arena.h
 *	  Memory that is given back all at once.
 */
#ifndef ZKL_CORE_ARENA_H
#define ZKL_CORE_ARENA_H

#include "core/state.h"

/* Aligned to 16; lives until the arena is cleared. */
extern void *zkl_arena_alloc(ZklManager *m, ZklArena *arena, size_t size);

/* Gives it all back, but for one piece for the next use; or all of it. */
extern void zkl_arena_clear(ZklManager *m, ZklArena *arena);
extern void zkl_arena_free(ZklManager *m, ZklArena *arena);

#endif							/* ZKL_CORE_ARENA_H */
