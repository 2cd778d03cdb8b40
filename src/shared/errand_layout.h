/*
 * errand_layout.h
 *	  What a backend has the worker do on znodes: one write, one wait, or up to
 *	  ZKL_ERRAND_READS reads.
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

#include "storage/dsm.h"
#include "znode/znode.h"
#include "znode/zkapi.h"

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

#endif							/* ZKL_SHARED_ERRAND_LAYOUT_H */
