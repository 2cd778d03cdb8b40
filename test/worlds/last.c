/*
 * last.c
 *	  Linked behind all that has variables of a world: see arena.h.
 */
#include "arena.h"

char		arena_last[16];
