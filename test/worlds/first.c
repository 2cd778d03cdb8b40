/*
 * first.c
 *	  Linked ahead of all that has variables of a world: see arena.h.
 */
#include "arena.h"

char		arena_first[16];
