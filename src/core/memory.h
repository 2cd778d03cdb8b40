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
	size_t		n = zkl_table_size(elements);

	zkl_table_init(table, zkl_memory_alloc(m, n * sizeof(ZklList)), n);
}

#endif							/* ZKL_CORE_MEMORY_H */
