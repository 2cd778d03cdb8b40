/*
 * memory.h
 *	  The host's memory.
 */
#ifndef ZKL_CORE_MEMORY_H
#define ZKL_CORE_MEMORY_H

#include "core/state.h"

static inline void *
zkl_memory_alloc(ZklManager *m, size_t size)
{
	return m->config.memory.alloc(m->config.memory.context, size);
}

static inline void
zkl_memory_release(ZklManager *m, void *pointer)
{
	m->config.memory.release(m->config.memory.context, pointer);
}

static inline void
zkl_memory_make_table(ZklManager *m, ZklTable *table, size_t elements)
{
	size_t		n = 64,
				i;

	while (n < elements)
		n *= 2;
	table->nbuckets = n;
	table->buckets = zkl_memory_alloc(m, n * sizeof(ZklList));
	for (i = 0; i < n; i++)
		zkl_list_init(&table->buckets[i]);
}

#endif							/* ZKL_CORE_MEMORY_H */
