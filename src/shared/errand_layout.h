/*
 * errand_layout.h
 *	  One operation of a backend on a znode.
 *
 * The operation stands in a DSM segment that the backend makes, and so does the
 * answer.  The worker carries errands out on a proved connection, in the order of
 * their submission.  A read is at least as new as anything that this server has
 * seen before, so also as new as the grant of a lock that the backend holds.
 *
 * If an answer is lost, a read is repeated on the next connection.  The outcome
 * of a write is then unknown: rc is ZKL_RC_UNKNOWN, and it may even be applied
 * later.  So a backend that writes gives the version that it expects, and data
 * by which it recognises its own write.
 *
 * The path stands behind the answer: another client's znode may have a name of
 * any length.
 */
#ifndef ZKL_SHARED_ERRAND_LAYOUT_H
#define ZKL_SHARED_ERRAND_LAYOUT_H

#include "storage/dsm.h"
#include "znode/result.h"
#include "znode/znode.h"

#define ZKL_MAX_ERRAND_DATA	4352	/* the longest: the settings of the root */

typedef enum ZklErrandKind
{
	ZKL_ERRAND_GET,
	ZKL_ERRAND_SET,
	ZKL_ERRAND_CREATE,			/* persistent; its parents are containers */
	ZKL_ERRAND_CREATE_CONTAINER,	/* likewise; it is good if it is there */
	ZKL_ERRAND_DELETE,
	ZKL_ERRAND_DELETE_LAST,		/* and its parent, if that has no other child;
								 * else neither, and rc is NOTEMPTY */
	ZKL_ERRAND_LIST,
	ZKL_ERRAND_AWAIT			/* LIST, once it is not as known; or the time
								 * is over */
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

typedef struct ZklErrand
{
	dsm_handle	handle;			/* of the segment */
	Size		room;			/* for the answer */

	/* the backend's */
	ZklErrandKind kind;
	Size		path_length;	/* see zkl_errand_layout_path */
	int32		version;		/* SET, DELETE: of its data; -1: any */
	bool		sync;			/* LIST, GET: as new as the call, whatever
								 * this server has seen */
	uint64		only_on;		/* not 0: a connection; on another one it is
								 * not sent, and rc is ZKL_RC_UNKNOWN */
	uint64		known;			/* AWAIT: the fingerprint of what is known */
	uint32		length;			/* SET, CREATE: of data */
	char		data[ZKL_MAX_ERRAND_DATA];

	/* the worker's */
	int32		rc;				/* ZooKeeper's result code */
	uint64		connection;		/* on which ZooKeeper answered */
	ZklErrandStat stat;			/* GET, SET */
	uint64		fingerprint;	/* LIST, AWAIT: of the children */
	uint32		nchildren;
	Size		size;			/* of the answer; it is whole if it fits */
	char		answer[FLEXIBLE_ARRAY_MEMBER];	/* GET: the data; LIST, AWAIT:
												 * names, each with its NUL */
} ZklErrand;

/* The path of the znode, with the root, NUL terminated */
static inline char *
zkl_errand_layout_path(ZklErrand *errand)
{
	return errand->answer + errand->room;
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
