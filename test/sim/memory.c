/*
 * memory.c
 *	  The memory of the simulation: chunks, which are all given back with the next
 *	  seed.
 *
 * Owns them.
 */
#include <stdlib.h>

#include "base.h"

#define CHUNK_SIZE	(256 * 1024)

typedef struct Chunk
{
	struct Chunk *next;
	size_t		used;
	size_t		size;
	char		bytes[];
} Chunk;

static Chunk *chunks;
static Chunk *spare;

static Chunk *
make_chunk(size_t size)
{
	Chunk	   *chunk = spare;

	if (chunk != NULL && chunk->size >= size)
		spare = chunk->next;
	else
	{
		size = size > CHUNK_SIZE ? size : CHUNK_SIZE;
		chunk = malloc(sizeof(Chunk) + size);
		if (chunk == NULL)
			abort();
		chunk->size = size;
	}
	chunk->used = 0;
	chunk->next = chunks;
	chunks = chunk;
	return chunk;
}

void *
take(size_t size)
{
	Chunk	   *chunk = chunks;
	void	   *memory;

	size = (size + 15) & ~(size_t) 15;
	if (chunk == NULL || chunk->size - chunk->used < size)
		chunk = make_chunk(size);
	memory = chunk->bytes + chunk->used;
	chunk->used += size;
	return memset(memory, 0, size);
}

void
put_back(const void *memory)
{
	(void) memory;
}

void
memory_begin(void)
{
	Chunk	   *chunk;

	while ((chunk = chunks) != NULL)
	{
		chunks = chunk->next;
		chunk->next = spare;
		spare = chunk;
	}
}
