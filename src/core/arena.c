/*
 * arena.c
 *	  Memory that is given back all at once.
 *
 * Owns ZklArena.  Runs in the worker (and in tests), takes no locks.
 */
#include "core/arena.h"
#include "core/memory.h"

#define ZKL_CHUNK_SIZE	(64 * 1024)

struct ZklChunk
{
	ZklChunk   *next;
	size_t		used;
	size_t		size;
	char		bytes[];
};

void *
zkl_arena_alloc(ZklManager *m, ZklArena *arena, size_t size)
{
	ZklChunk   *chunk = arena->chunks;
	void	   *piece;

	size = (size + 15) & ~(size_t) 15;
	if (chunk == NULL || chunk->size - chunk->used < size)
	{
		size_t		room = size > ZKL_CHUNK_SIZE ? size : ZKL_CHUNK_SIZE;

		chunk = zkl_memory_alloc(m, sizeof(ZklChunk) + room);
		chunk->next = arena->chunks;
		chunk->used = 0;
		chunk->size = room;
		arena->chunks = chunk;
	}
	piece = chunk->bytes + chunk->used;
	chunk->used += size;
	ZKL_ASSERT(chunk->used <= chunk->size);
	return piece;
}

void
zkl_arena_clear(ZklManager *m, ZklArena *arena)
{
	while (arena->chunks != NULL && arena->chunks->next != NULL)
	{
		ZklChunk   *next = arena->chunks->next;

		zkl_memory_release(m, arena->chunks);
		arena->chunks = next;
	}
	if (arena->chunks != NULL)
		arena->chunks->used = 0;
}

void
zkl_arena_free(ZklManager *m, ZklArena *arena)
{
	zkl_arena_clear(m, arena);
	if (arena->chunks != NULL)
		zkl_memory_release(m, arena->chunks);
	arena->chunks = NULL;
}
