/*
 * znode.h
 *	  Names: of locks, of znodes in each dialect, and the unique ids in them.
 *
 * A lock /batch/nightly under the root /zklock has the directory
 * /zklock/batch/nightly, whose children queue for it.  What they are called
 * depends on the dialect, that is on whose clients share the lock.
 */
#ifndef ZKL_ZNODE_ZNODE_H
#define ZKL_ZNODE_ZNODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "znode/mode.h"

/* ---- uuid: UUIDs: the unique ids in the names of znodes ---- */

#define ZKL_UUID_BYTES		16
#define ZKL_UUID_TEXT		36	/* characters of a UUID in text form */
#define ZKL_UUID_HEX		32	/* the same without dashes */
#define ZKL_UUID_COUNT_BITS	40

typedef struct ZklUuid
{
	uint8_t		bytes[ZKL_UUID_BYTES];
} ZklUuid;

static inline bool
zkl_uuid_equal(const ZklUuid *a, const ZklUuid *b)
{
	return memcmp(a->bytes, b->bytes, ZKL_UUID_BYTES) == 0;
}

/*
 * Makes a UUID of version 8, which marks it as zklock's, for a znode of a ZooKeeper
 * session.  "start" tells the worker processes of that session apart, and "count" the
 * znodes of one.  Of start, 18 bits count, and ZKL_UUID_COUNT_BITS of count.
 */
extern ZklUuid zkl_uuid_make(int64_t session, uint32_t start, uint64_t count);

/* The session that such an id names */
extern int64_t zkl_uuid_session(const ZklUuid *uuid);

/* Whether two ids are of one session, and of one start in it */
extern bool zkl_uuid_same_maker(const ZklUuid *a, const ZklUuid *b);
extern void zkl_uuid_format(const ZklUuid *uuid, char *text);	/* 36 + NUL */

/* Reads exactly 36 characters and the NUL, in lower case as we write them */
extern bool zkl_uuid_parse(const char *text, ZklUuid *uuid);
extern bool zkl_uuid_is_zklock(const ZklUuid *uuid);

/*
 * Reads the UUID at the start of a text, with dashes as we and Curator write
 * it, or without as kazoo does.  Capitals make it no UUID: to ZooKeeper, a name
 * in capitals is another name.
 */
extern bool zkl_uuid_parse_start(const char *text, bool dashes, ZklUuid *uuid);

/* ---- dialect ---- */

/*
 * The dialects, and which one a lock has, by the beginning of its name.
 *
 * A list of dialects is text such as "/jobs=curator_mutex, /py=kazoo".  An
 * entry is for the lock of that name and for all below it; "/" is for all.
 * The longest that fits counts; where none fits it is curator_rw.
 */

/* Which clients a lock is shared with */
typedef enum ZklDialect
{
	ZKL_DIALECT_CURATOR_RW = 0, /* Curator's InterProcessReadWriteLock */
	ZKL_DIALECT_CURATOR_MUTEX,	/* Curator's InterProcessMutex, go-zookeeper */
	ZKL_DIALECT_KAZOO,			/* kazoo's Lock, ReadLock and WriteLock */

	/* not to be chosen for a lock: what these are for fixes them */
	ZKL_DIALECT_LATCH,			/* Curator's LeaderLatch */
	ZKL_DIALECT_PERMIT,			/* of Curator's InterProcessSemaphoreV2 */
	ZKL_DIALECT_MEMBER			/* in Curator's DistributedDoubleBarrier */
} ZklDialect;

#define ZKL_LOCK_DIALECTS	3	/* the first ones */
#define ZKL_DIALECTS		6

/* Whether locks can be shared in it */
static inline bool
zkl_dialect_shares(ZklDialect dialect)
{
	return dialect == ZKL_DIALECT_CURATOR_RW ||
		dialect == ZKL_DIALECT_KAZOO || dialect == ZKL_DIALECT_MEMBER;
}

/*
 * Whether the data of its znodes is zklock's own, so that a mark in it means
 * something.  In a latch it is the participant's.
 */
static inline bool
zkl_dialect_marks(ZklDialect dialect)
{
	return dialect != ZKL_DIALECT_LATCH;
}

#define ZKL_MAX_DIALECTS	1000	/* bytes of a list */

/* NULL if the list is good, else the broken rule as a full sentence. */
extern const char *zkl_dialect_check_list(const char *list);

/* The dialect of a lock, by a list that is good. */
extern ZklDialect zkl_dialect_find(const char *list, const char *name);

/*
 * Writes a good list in the one form that all lists with the same meaning have:
 * in the order of the paths, without spaces, and without entries that change
 * nothing.  It gets no longer; buf has ZKL_MAX_DIALECTS + 1 bytes.
 */
extern void zkl_dialect_normalize(const char *list, char *buf);

/*
 * Finds the paths from which on names have another dialect in list b than in
 * list a, in the order of the paths: "path" is the last one that was found, or
 * empty, and becomes the next one.  It has ZKL_MAX_NAME + 1 bytes.  False: there
 * are no more.  All names below such a path have its two dialects, up to the next
 * path that either list has an entry for.
 */
extern bool zkl_dialect_next_change(const char *a, const char *b, char *path);

/* Whether a list has an entry for just this path */
extern bool zkl_dialect_has_entry(const char *list, const char *path);

/* As it is written in a list; of one that a list can have. */
extern const char *zkl_dialect_name(ZklDialect dialect);

/* ---- znode: the names and data of znodes, and the names of locks ---- */

/* Grows when a server writes znodes that older servers cannot read */
#define ZKL_ZNODE_PROTOCOL	1

/* The key of that number in the data */
#define ZKL_FORMAT_KEY		"zklock"

/*
 * How many tokens the transaction of a znode has: from its czxid * this on.  The
 * simulation has fewer.
 */
#ifndef ZKL_TOKENS_PER_ZXID
#define ZKL_TOKENS_PER_ZXID	4096
#endif

#define ZKL_MAX_NAME		255 /* bytes of a lock's name, in UTF-8 */
#define ZKL_MAX_ROOT		127 /* bytes of the root */
#define ZKL_MAX_SERVER_NAME	200 /* bytes of a server's name, in UTF-8 */
#define ZKL_MAX_CLIENT		63	/* bytes of a client's address, as text */

/* The longest: "_c_" + uuid + "-__WRIT__" + up to eleven characters of number */
#define ZKL_MAX_ZNODE_NAME	(3 + ZKL_UUID_TEXT + 9 + 11)
#define ZKL_MAX_PATH \
	(ZKL_MAX_ROOT + ZKL_MAX_NAME + 1 + ZKL_MAX_ZNODE_NAME)

/* Where the locks of zk_once() are, out of the way of all names */
#define ZKL_ONCE_DIRECTORY	"/.once"

/* Below a semaphore's directory: see semaphore.h */
#define ZKL_SEMAPHORE_GUARD		"/locks"
#define ZKL_SEMAPHORE_PERMITS	"/leases"

#define ZKL_MAX_NODE_DATA	1024	/* bytes of the data that zklock writes */
#define ZKL_NODE_DATA_TIMEOUT	24	/* of these for the session's timeout */
#define ZKL_NODE_DATA_CACHED	16	/* and for the mark of a lock that may be
									 * cached */
#define ZKL_NODE_DATA_WAITED	30	/* of the former, for how long it waited */

/* A shorter wait, in ms, is none to those who look at a queue. */
#define ZKL_LEAST_WAIT		100

/*
 * A place in the queue.  ZooKeeper's counter is a signed 32-bit number that
 * goes on at -2147483648 past its end (measured on 3.8), so it is kept as the
 * unsigned number, in which order it grows.
 */
typedef int64_t ZklSeq;

/* From here on a number is no place in the queue: the counter nears its end. */
#define ZKL_SEQ_LIMIT		(((int64_t) 1 << 31) - ((int64_t) 1 << 20))
#define ZKL_SEQ_NONE		INT64_MAX

/* ---- name ---- */

/*
 * Checks a lock's name against all rules.  Returns NULL if it is good, else
 * the broken rule as a full sentence for errdetail, such as "A lock name must
 * start with \"/\".".
 */
extern const char *zkl_name_check(const char *name, size_t length);

/* The same for a root: at most ZKL_MAX_ROOT bytes, no "." segments */
extern const char *zkl_name_check_root(const char *root, size_t length);

/* ---- znode ---- */

/* What is shown of a request's znode outside of the core */
typedef struct ZklRecord
{
	bool		sent;			/* a create with this id may have been sent,
								 * and the znode is not known to be gone */
	bool		going;			/* it is to be deleted; another one follows */
	bool		disowned;		/* kept, and it does not belong to its owner's
								 * other requests */
	bool		stays;			/* it was let go, but others have their hold
								 * by its znode, and show that */
	uint32_t	generation;		/* of the session of this znode, or of the one
								 * that it shares */
	uint32_t	index;			/* in its batch: part of the token */
	ZklLockMode mode;			/* of the znode: wider than the request's if
								 * shared */
	ZklUuid		uuid;
	ZklSeq		seq;			/* -1: not known */
} ZklRecord;

/*
 * The name to create a request's znode with, without its number, NUL
 * terminated: _c_<uuid>-__WRIT__, say.  buf has ZKL_MAX_ZNODE_NAME + 1 bytes.
 */
extern void zkl_znode_prefix(ZklDialect dialect, const ZklUuid *uuid,
							 ZklLockMode mode, char *buf);

/* The whole name, _c_<uuid>-__WRIT__0000000001, in a buffer of the same size */
extern void zkl_znode_name(ZklDialect dialect, const ZklUuid *uuid,
						   ZklLockMode mode, ZklSeq seq, char *buf);

/*
 * Parses the name of a child of a lock's directory.  False: not a contender.
 * Contenders are, whatever stands before,
 *
 *	curator_rw		 __WRIT__<number> and __READ__<number>; a name with both
 *					 marks is exclusive, as Curator counts it
 *	curator_mutex	 lock-<number>
 *	kazoo			 __lock__<number> and __rlock__<number>
 *	latch			 latch-<number>
 *	lease			 lease-<number>
 *	member			 member-<number>, always shared
 *
 * the number being what the server writes: ten digits, or a minus sign and
 * nine or ten.  The outputs are set only when this returns true, *uuid only
 * with *has_uuid, which tells whether the name has a unique id where clients
 * of this dialect write it.
 */
extern bool zkl_znode_parse(ZklDialect dialect, const char *name,
							ZklLockMode *mode, ZklSeq *seq, bool *has_uuid,
							ZklUuid *uuid);

/* The number at the end of a created path, or ZKL_SEQ_NONE */
extern ZklSeq zkl_znode_path_seq(ZklDialect dialect, const char *path);

/*
 * How much of the path of a lock is the name that its users know: leases, and
 * the guard, go by that of their semaphore.
 */
extern size_t zkl_znode_shown_length(ZklDialect dialect, bool guard,
									 const char *path);

/* Whether a segment of a path would be a contender in any dialect */
extern bool zkl_znode_is_like(const char *segment, size_t length);

/* <uuid>.<start>.<count>, both in hexadecimal digits */
#define ZKL_MAX_WAIT_NAME	(ZKL_UUID_TEXT + 1 + 8 + 1 + 16)

/*
 * The name of a publication (see ZKL_WAITS_DIRECTORY) of what the holder of the znode
 * "held" waits for, in ZKL_MAX_WAIT_NAME + 1 bytes.  "start" and "count" are as in
 * zkl_uuid_make(): a session never has a name twice.
 */
extern void zkl_znode_wait_name(const ZklUuid *held, uint32_t start,
								uint64_t count, char *buf);

/* Whose it is, whatever makes the name unique.  False: it is no publication. */
extern bool zkl_znode_parse_wait(const char *name, ZklUuid *held);

/* ---- node_data.c ---- */

/*
 * What zklock writes into a znode: whose request it is, as flat UTF-8 JSON.
 * Strings are UTF-8, NUL terminated; since is in ms since 1970.
 */
typedef struct ZklNodeData
{
	char		server[ZKL_MAX_SERVER_NAME + 1];
	char		database[64];
	char		usename[64];
	char		application_name[64];
	char		lifetime[16];	/* "session", "transaction", "reservation" or
								 * "ticket" */
	int32_t		pid;			/* 0: unknown */
	int64_t		since;
	int32_t		timeout_ms;		/* of the session that made the node; 0: not
								 * told */
	bool		cached;			/* perhaps: see below */
	int64_t		waited_ms;		/* until the grant; 0: not, or not yet granted */
	int64_t		at_most_ms;		/* from the grant; 0: no limit */
	char		client[ZKL_MAX_CLIENT + 1]; /* address; empty: not told */
	int64_t		backend_start;	/* as since; 0: not told */
} ZklNodeData;

/* Whether the session that requested the lock has nothing more to do with it */
extern bool zkl_node_data_has_no_session(const ZklNodeData *data);

/* Writes the JSON, NUL terminated; returns its length (always < size, given
 * size >= ZKL_MAX_NODE_DATA: long strings are cut at a character). */
extern size_t zkl_node_data_format(const ZklNodeData *data, char *buf,
								   size_t size);

/*
 * Adds the session's timeout to such JSON, which has room for
 * ZKL_NODE_DATA_TIMEOUT bytes more; returns the new length.
 */
extern size_t zkl_node_data_timeout(char *text, size_t length,
									uint32_t timeout_ms);

/*
 * Adds for how long its request had to wait, unless it is there; there is room for
 * ZKL_NODE_DATA_WAITED bytes more.  Returns the new length.
 */
extern size_t zkl_node_data_waited(char *text, size_t length, int64_t ms);

/* Whether any data says so */
extern bool zkl_node_data_tells_wait(const char *text, size_t length);

/*
 * Adds to such JSON that the server may have the lock cached, held by no session;
 * there is room for ZKL_NODE_DATA_CACHED bytes more.  Returns the new length.
 */
extern size_t zkl_node_data_cached(char *text, size_t length);

/* Whether any data says so, and does not say that an operator breaks the lock */
extern bool zkl_node_data_is_cached(const char *text, size_t length);

/* Reads such JSON back.  False when it is not zklock's; *data is then empty. */
extern bool zkl_node_data_parse(const char *text, size_t length,
								ZklNodeData *data);

/* Whether a writer's data says that it is about to go on as a reader */
extern bool zkl_node_data_downgrading(const char *text, size_t length);

/* Whether the data says that an operator breaks the lock */
extern bool zkl_node_data_breaking(const char *text, size_t length);

/*
 * Adds that mark; returns the new length.  size is at least
 * ZKL_MAX_NODE_DATA; data that does not fit with the mark is replaced by it.
 */
extern size_t zkl_node_data_break(const char *text, size_t length, char *buf,
								  size_t size);

/* The same for the mark of a writer that is about to go on as a reader. */
extern size_t zkl_node_data_downgrade(const char *text, size_t length,
									  char *buf, size_t size);

/* What Curator writes over the data of a holder that is to give up its lock */
#define ZKL_REVOKE_MESSAGE	"__REVOKE__"

/*
 * Whether the data says that the lock is to be given up: by that message, or by
 * a mark of zklock's.  who gets the text of the mark, NUL terminated and cut to
 * fit, empty if there is none.
 */
extern bool zkl_node_data_revoking(const char *text, size_t length, char *who,
								   size_t size);

/*
 * Adds the mark, in place of an earlier one; who is UTF-8, and cut if it is
 * long.  buf has ZKL_MAX_NODE_DATA bytes; data that does not fit with the mark
 * is replaced by it.  Returns the new length.
 */
extern size_t zkl_node_data_revoke(const char *text, size_t length,
								   const char *who, char *buf);

#define ZKL_WAITS_DIRECTORY	"/.waits"

#define ZKL_MAX_WAIT_DATA	2048	/* bytes of the data of a publication */

/*
 * What a server publishes of a long wait, for others to find deadlocks.
 *
 * A publication is an ephemeral znode in ZKL_WAITS_DIRECTORY below the root.
 * Its name begins with the unique id of a znode that holds a lock: whoever is behind
 * that one looks here for what its holder waits for.  No name is used twice: who has
 * read a publication, and later finds that its name exists, knows that it has been
 * there all the time.
 */
typedef struct ZklWaitData
{
	ZklUuid		wait;			/* the id of the znode that waits */
	char		lock[ZKL_MAX_NAME + 1]; /* whose queue it stands in */
	ZklDialect	dialect;
	ZklLockMode mode;
	bool		behind;			/* the holder waits for the waiter, in
								 * PostgreSQL's own locks; else they are one */
	char		server[ZKL_MAX_SERVER_NAME + 1];	/* of both */
	int32_t		holder_pid;
	int32_t		waiter_pid;
	int32_t		every_ms;		/* how often "behind" is looked at */
} ZklWaitData;

/* Writes JSON into ZKL_MAX_WAIT_DATA bytes; returns its length. */
extern size_t zkl_node_data_format_wait(const ZklWaitData *data, char *buf);

/* Reads it back.  False: it is none that we can use. */
extern bool zkl_node_data_parse_wait(const char *text, size_t length,
									 ZklWaitData *data);

#endif							/* ZKL_ZNODE_ZNODE_H */
