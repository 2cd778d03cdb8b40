/*
 * memory.h
 *	  Where the models' memory comes from.
 *
 * The simulation takes it from chunks that last as long as a seed (base.c), and
 * giving back does nothing there; the other programs use the heap (heap.c).
 */
#ifndef ZKL_MODEL_MEMORY_H
#define ZKL_MODEL_MEMORY_H

#include <stddef.h>
#include <string.h>

extern void *take(size_t size); /* zeroed */
extern void put_back(const void *memory);

/* A copy with a NUL behind it */
static inline char *
take_copy(const void *bytes, size_t size)
{
	char	   *copy = take(size + 1);

	if (size > 0)
		memcpy(copy, bytes, size);
	return copy;
}

static inline char *
take_string(const char *text)
{
	return take_copy(text, strlen(text));
}

#endif							/* ZKL_MODEL_MEMORY_H */
