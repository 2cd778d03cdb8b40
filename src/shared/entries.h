/*
 * entries.h
 *	  Answers of the worker that are lists, as it writes them into a backend's DSM
 *	  segment and the backend reads them there.
 *
 * A uint32 with the number of entries, then the entries, without any alignment, in
 * the server's byte order.  Those of requests that are ahead of another one are
 *
 *	  int64 place, int64 kept_until, uint32 name_length, name, uint32 data_length, data
 *
 * and those of zk_dump() are
 *
 *	  uint32 path_length, path, uint32 item_length, item, int32 pid,
 *	  uint32 state_length, state
 *
 * The worker adds entries in order; what no longer fits is only counted, so that the
 * end tells the size it takes.  The backend trusts no length: an entry that would
 * reach past the segment ends the list.
 */
#ifndef ZKL_SHARED_ENTRIES_H
#define ZKL_SHARED_ENTRIES_H

#include "datatype/timestamp.h"

typedef struct ZklAheadEntry
{
	int64		place;			/* of the request that is asked about */
	TimestampTz kept_until;		/* its holder's process has ended, and was
								 * told this time; 0: it is not so */
	const char *name;			/* of the znode, without its directory */
	uint32		name_length;
	const char *data;
	uint32		data_length;
} ZklAheadEntry;

typedef struct ZklEntries
{
	char	   *base;
	Size		size;			/* of the segment */
	Size		used;			/* or needed, past size */
	uint32		count;			/* entries written, or left to read */
} ZklEntries;

static inline void
zkl_entries_put(ZklEntries *list, const void *bytes, Size length)
{
	if (list->used <= list->size && length <= list->size - list->used)
		memcpy(list->base + list->used, bytes, length);
	list->used += length;
}

static inline void
zkl_entries_put_bytes(ZklEntries *list, const char *bytes, uint32 length)
{
	zkl_entries_put(list, &length, sizeof(uint32));
	zkl_entries_put(list, bytes, length);
}

/* Starts a list in "size" bytes at "base". */
static inline void
zkl_entries_begin(ZklEntries *list, void *base, Size size)
{
	list->base = base;
	list->size = size;
	list->used = sizeof(uint32);
	list->count = 0;
}

static inline void
zkl_entries_add(ZklEntries *list, const ZklAheadEntry *entry)
{
	zkl_entries_put(list, &entry->place, sizeof(int64));
	zkl_entries_put(list, &entry->kept_until, sizeof(TimestampTz));
	zkl_entries_put_bytes(list, entry->name, entry->name_length);
	zkl_entries_put_bytes(list, entry->data, entry->data_length);
	list->count++;
}

/*
 * Ends a list.  Returns the bytes it takes: if more than the segment has, the
 * segment holds nothing of use.
 */
static inline Size
zkl_entries_end(ZklEntries *list)
{
	if (list->size >= sizeof(uint32))
		memcpy(list->base, &list->count, sizeof(uint32));
	return list->used;
}

/* Starts to read a list in "size" bytes at "base". */
static inline void
zkl_entries_open(ZklEntries *list, void *base, Size size)
{
	zkl_entries_begin(list, base, size);
	if (size >= sizeof(uint32))
		memcpy(&list->count, base, sizeof(uint32));
}

static inline bool
zkl_entries_get(ZklEntries *list, void *to, Size length)
{
	if (length > list->size - list->used)
		return false;
	memcpy(to, list->base + list->used, length);
	list->used += length;
	return true;
}

static inline bool
zkl_entries_get_bytes(ZklEntries *list, const char **bytes, uint32 *length)
{
	if (!zkl_entries_get(list, length, sizeof(uint32)) ||
		*length > list->size - list->used)
		return false;
	*bytes = list->base + list->used;
	list->used += *length;
	return true;
}

/*
 * Reads the next entry, whose strings stay in the segment.  False: there is
 * none.
 */
static inline bool
zkl_entries_next(ZklEntries *list, ZklAheadEntry *entry)
{
	if (list->count == 0)
		return false;
	list->count--;
	if (!zkl_entries_get(list, &entry->place, sizeof(int64)) ||
		!zkl_entries_get(list, &entry->kept_until, sizeof(TimestampTz)) ||
		!zkl_entries_get_bytes(list, &entry->name, &entry->name_length) ||
		!zkl_entries_get_bytes(list, &entry->data, &entry->data_length))
	{
		list->count = 0;
		return false;
	}
	return true;
}

#endif							/* ZKL_SHARED_ENTRIES_H */
