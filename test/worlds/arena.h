/*
 * arena.h
 *	  All memory of a world in one place, so that a state can be put aside, put
 *	  back, and compared.
 *
 * A state is what was taken, and the variables between "arena_first" and "arena_last" in
 * the order of linking.
 */
#ifndef WORLDS_ARENA_H
#define WORLDS_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern char arena_first[];
extern char arena_last[];

/* malloc and free of the cores: ../model/worker.c is compiled so. */
extern void *arena_alloc(size_t size);
extern void arena_free(void *memory);

typedef struct Image Image;		/* a state that was put aside */

/* NULL: a new one.  Over and over into the same place costs no allocation. */
extern Image *arena_save(Image *image);
extern void arena_restore(const Image *image);
extern void arena_find_blocks(void);

/*
 * A number for the state, from its variables and from all that they lead to.  It does not
 * depend on where things happen to lie.  What is left out says nothing of what can
 * happen, or is said otherwise: "also" that leads to something.
 */
extern void arena_leave_out(const void *memory, size_t size);
extern void arena_also(const void *pointer);
extern uint64_t arena_hash(void);

#endif							/* WORLDS_ARENA_H */
