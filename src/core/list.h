/*
 * list.h
 *	  Intrusive lists, and hash chains of them: no allocation per element.
 */
#ifndef ZKL_CORE_LIST_H
#define ZKL_CORE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/assert.h"

/* A link is in no list while next is NULL. */
typedef struct ZklLink
{
	struct ZklLink *next;
	struct ZklLink *prev;
} ZklLink;

typedef struct ZklList
{
	ZklLink		head;			/* of a ring */
} ZklList;

/* The structure of type "type" whose member "member" is at link */
#define zkl_container(type, member, link) \
	((type *) (void *) ((char *) (link) - offsetof(type, member)))

/* Walks a list; the current element may be removed on the way. */
#define zkl_foreach(link, after, list) \
	for ((link) = (list)->head.next, (after) = (link)->next; \
		 (link) != &(list)->head; \
		 (link) = (after), (after) = (link)->next)

static inline void
zkl_list_init(ZklList *list)
{
	list->head.next = list->head.prev = &list->head;
}

static inline bool
zkl_list_empty(const ZklList *list)
{
	return list->head.next == &list->head;
}

static inline bool
zkl_list_linked(const ZklLink *link)
{
	return link->next != NULL;
}

static inline void
zkl_list_insert_after(ZklLink *link, ZklLink *where)
{
	ZKL_ASSERT(link->next == NULL && where->next != NULL);
	link->prev = where;
	link->next = where->next;
	where->next->prev = link;
	where->next = link;
}

static inline void
zkl_list_append(ZklList *list, ZklLink *link)
{
	zkl_list_insert_after(link, list->head.prev);
}

/* Does nothing if the link is in no list. */
static inline void
zkl_list_remove(ZklLink *link)
{
	if (link->next == NULL)
		return;
	link->prev->next = link->next;
	link->next->prev = link->prev;
	link->next = link->prev = NULL;
}

/* ---- table: hash chains, as intrusive lists ---- */

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

#endif							/* ZKL_CORE_LIST_H */
