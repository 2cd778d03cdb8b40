/*
 * errand_layout.h
 *	  What a backend has the worker do on znodes, as both have it in a DSM
 *	  segment: errands, epilogues, answers that are lists; and how often what
 *	  fails is tried.
 *
 * The errand stands in a DSM segment that the backend makes, and so do the answers.
 * The worker carries errands out on a proved connection, in the order of
 * their submission.  A read is at least as new as anything that this server has
 * seen before, so also as new as the grant of a lock that the backend holds.
 *
 * If an answer is lost, a read is repeated on the next connection.  The outcome
 * of a write is then unknown: rc is ZKL_RC_UNKNOWN, and it may even be applied
 * later.  So a backend that writes gives the version that it expects, and data
 * by which it recognises its own write.
 *
 * The paths stand behind the answers: another client's znode may have a name of
 * any length.  The worker never changes them, so that the next worker can read
 * them again.
 */
#ifndef ZKL_SHARED_ERRAND_LAYOUT_H
#define ZKL_SHARED_ERRAND_LAYOUT_H

#include "datatype/timestamp.h"
#include "storage/dsm.h"
#include "znode/zkapi.h"
#include "znode/znode.h"

#define ZKL_MAX_ERRAND_DATA	4352	/* the longest: the settings of the root */
#define ZKL_ERRAND_READS	32	/* the most paths of one errand */

typedef enum ZklErrandKind
{
	ZKL_ERRAND_GET,
	ZKL_ERRAND_LIST,
	ZKL_ERRAND_RIGHTS,			/* the access control list */
	ZKL_ERRAND_AWAIT,			/* LIST, once it is not as known; or the time
								 * is over */
	ZKL_ERRAND_SET,
	ZKL_ERRAND_CREATE,			/* persistent; its parents are containers */
	ZKL_ERRAND_DELETE,
	ZKL_ERRAND_DELETE_LAST		/* and its parent, if that has no other child;
								 * else neither, and rc is NOTEMPTY */
} ZklErrandKind;

typedef struct ZklErrandStat
{
	int64		czxid;			/* the transaction that created it ... */
	int64		mzxid;			/* ... and the last one that wrote its data */
	int64		ctime;			/* ms since 1970, by ZooKeeper's leader */
	int64		mtime;
	int64		session_id;		/* ephemeralOwner */
	int32		version;		/* of the data */
} ZklErrandStat;

typedef struct ZklErrandAnswer
{
	int32		rc;				/* ZooKeeper's result code */
	uint64		connection;		/* on which ZooKeeper answered */
	ZklErrandStat stat;			/* GET, SET */
	uint64		fingerprint;	/* AWAIT: of the children */
	uint32		nchildren;
	Size		size;			/* of the bytes; they are whole if they fit */
	char		bytes[FLEXIBLE_ARRAY_MEMBER];	/* GET: the data; LIST, AWAIT:
												 * names, each with its NUL;
												 * RIGHTS: the same of strings
												 * permissions:scheme:id */
} ZklErrandAnswer;

typedef struct ZklErrand
{
	dsm_handle	handle;			/* of the segment */
	uint32		n;				/* paths and answers: 1, unless it is GET,
								 * LIST or RIGHTS */
	Size		room;			/* for the bytes of each answer */
	Size		paths_size;		/* see zkl_errand_layout_paths */

	/* the backend's */
	ZklErrandKind kind;
	int32		version;		/* SET, DELETE: of its data; -1: any */
	bool		large;			/* LIST, GET: who knows how much it reads, so
								 * one such errand is under way at a time */
	bool		sync;			/* LIST, GET: as new as the call, whatever
								 * this server has seen */
	uint64		only_on;		/* not 0: a connection; on another one it is
								 * not sent, and rc is ZKL_RC_UNKNOWN */
	uint64		known;			/* AWAIT: the fingerprint of what is known */
	uint32		length;			/* SET, CREATE: of data */
	char		data[ZKL_MAX_ERRAND_DATA];

	/* the worker's */
	ZklErrandAnswer answer;		/* about the first path; the others behind it */
} ZklErrand;

/* From one answer to the next */
static inline Size
zkl_errand_layout_stride(Size room)
{
	return MAXALIGN(offsetof(ZklErrandAnswer, bytes) + room);
}

static inline Size
zkl_errand_layout_size(uint32 n, Size room, Size paths_size)
{
	return offsetof(ZklErrand, answer) + n * zkl_errand_layout_stride(room) +
		paths_size;
}

/* The worker takes the room from what it has checked, not from the segment. */
static inline ZklErrandAnswer *
zkl_errand_layout_answer_in(ZklErrand *errand, Size room, uint32 number)
{
	return (ZklErrandAnswer *) ((char *) &errand->answer +
								number * zkl_errand_layout_stride(room));
}

static inline ZklErrandAnswer *
zkl_errand_layout_answer(ZklErrand *errand, uint32 number)
{
	return zkl_errand_layout_answer_in(errand, errand->room, number);
}

/* The paths of the znodes, with the root, each with its NUL */
static inline char *
zkl_errand_layout_paths(ZklErrand *errand)
{
	return (char *) zkl_errand_layout_answer(errand, errand->n);
}

/* Whether it only reads what is there now */
static inline bool
zkl_errand_layout_is_read(const ZklErrand *errand)
{
	return errand->kind == ZKL_ERRAND_GET ||
		errand->kind == ZKL_ERRAND_LIST ||
		errand->kind == ZKL_ERRAND_RIGHTS;
}

/* Whether it changes a znode, so that it must not be sent twice unseen */
static inline bool
zkl_errand_layout_is_write(const ZklErrand *errand)
{
	return errand->kind == ZKL_ERRAND_SET ||
		errand->kind == ZKL_ERRAND_CREATE ||
		errand->kind == ZKL_ERRAND_DELETE ||
		errand->kind == ZKL_ERRAND_DELETE_LAST;
}

/* ---- epilogue: a write that belongs to the end of a hold ---- */

/*
 * A backend prepares it in a DSM segment, pins that, and names it in the slot
 * of its hold (s_dsm); s_epilogue says whether it is wanted, and may change
 * until the slot is RELEASED.  Then the worker carries it out, however often the
 * worker or the connection breaks, and gives the lock up only after that.  It
 * unpins the segment in any case.
 *
 * If the data of the znode is "from", the worker changes it to "to".  If it is
 * "to" already, the worker writes it once more: if the backend's own write is
 * still on its way, it expects an older version, and comes too late.  If it is
 * anything else, the worker leaves it alone.
 */

typedef struct ZklEpilogue
{
	char		path[ZKL_MAX_PATH + 1]; /* of the znode, with the root */
	uint32		from_length;
	uint32		to_length;
	char		from[ZKL_MAX_NODE_DATA];
	char		to[ZKL_MAX_NODE_DATA];
} ZklEpilogue;

/* ---- entries ---- */

/*
 * Answers of the worker that are lists, as it writes them into a backend's DSM
 * segment and the backend reads them there.
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

typedef struct ZklAheadEntry
{
	int64		place;			/* of the request that is asked about */
	TimestampTz kept_until;		/* it is reserved; or its holder's process has
								 * ended, and was told this time; 0: neither */
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

/* ---- retry: how soon, and how often, a failed operation is tried again ---- */

/*
 * An operation that fails on a standing connection is tried again after a pause,
 * which doubles from try to try up to a second.  After a few tries in a row the
 * caller gives up.  Times are in µs of boottime.h.
 */

#define ZKL_RETRY_FIRST_PAUSE	((int64) 10000)
#define ZKL_RETRY_LONGEST_PAUSE ((int64) 1000000)
#define ZKL_RETRY_LIMIT			12	/* these take about six seconds */

typedef struct ZklRetry
{
	int			tries;			/* that failed, in a row */
	int64		due;			/* when the next one may begin */
} ZklRetry;

/* A try has just failed.  False: that was the last one. */
static inline bool
zkl_retry_later(ZklRetry *retry, int64 now)
{
	if (retry->tries >= ZKL_RETRY_LIMIT)
		return false;
	retry->due = now + Min(ZKL_RETRY_FIRST_PAUSE << retry->tries,
						   ZKL_RETRY_LONGEST_PAUSE);
	retry->tries++;
	return true;
}

/* The tries until now no longer count. */
static inline void
zkl_retry_reset(ZklRetry *retry)
{
	retry->tries = 0;
	retry->due = 0;
}

#endif							/* ZKL_SHARED_ERRAND_LAYOUT_H */
