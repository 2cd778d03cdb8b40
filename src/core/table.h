/*
 * table.h
 *	  Hash chains, as intrusive lists.
 */
#ifndef ZKL_CORE_TABLE_H
#define ZKL_CORE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "core/list.h"

typedef struct ZklTable
{
	ZklList    *buckets;
	size_t		nbuckets;		/* a power of two */
} ZklTable;

/* How many buckets are good for so many elements */
static inline size_t
zkl_table_size(size_t elements)
{
	size_t		n = 64;

	while (n < elements)
		n *= 2;
	return n;
}

static inline void
zkl_table_init(ZklTable *table, ZklList *buckets, size_t n)
{
	table->nbuckets = n;
	table->buckets = buckets;
	while (n > 0)
		zkl_list_init(&buckets[--n]);
}

static inline ZklList *
zkl_table_bucket(const ZklTable *table, uint64_t hash)
{
	return &table->buckets[hash & (table->nbuckets - 1)];
}

/* FNV-1a, mixed once more so that the low bits are good */
static inline uint64_t
zkl_table_hash(const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	uint64_t	hash = UINT64_C(14695981039346656037);
	size_t		i;

	for (i = 0; i < n; i++)
		hash = (hash ^ p[i]) * UINT64_C(1099511628211);
	return hash ^ (hash >> 29);
}

#endif							/* ZKL_CORE_TABLE_H */
