/*
 * heap.c
 *	  The models' memory in programs that give it back.
 */
#include <stdlib.h>

#include "memory.h"

void *
take(size_t size)
{
	void	   *memory = calloc(1, size ? size : 1);

	if (memory == NULL)
		abort();
	return memory;
}

void
put_back(const void *memory)
{
	free((void *) memory);
}
