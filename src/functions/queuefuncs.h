/*
 * queuefuncs.h
 *	  The set-returning functions zk_queue() and zk_fleet_locks(): who has a
 *	  lock, and who waits.
 */
#ifndef ZKL_FUNCTIONS_QUEUEFUNCS_H
#define ZKL_FUNCTIONS_QUEUEFUNCS_H

#include "backend/errand.h"
#include "functions/row.h"
#include "nodes/pg_list.h"
#include "znode/znode.h"

/* ---- queuerow ---- */

/*
 * Rows of zk_queue() and zk_fleet_locks(): a client that holds or awaits a lock, and
 * what its znode tells of it.
 */

/*
 * Reads the data of a znode, and adds the column with the name of the server: of
 * another client, if the role may see whose the znode is, a short text that it has
 * written.  *data tells of no session if that may be another one by now.
 */
extern void zkl_queuerow_add_server(ZklRow *row, const char *text,
									uint32 length, ZklNodeData *data,
									bool visible);

typedef struct ZklQueueRows
{
	FunctionCallInfo fcinfo;
	bool		stats;			/* the role may read all statistics */
	List	   *servers;		/* of the fleet, for their hosts; */
	bool		read;			/* if they were read, */
	MemoryContext context;		/* into this */
} ZklQueueRows;

typedef struct ZklQueueRow
{
	const char *path;			/* of the lock, in UTF-8, without a NUL behind
								 * it */
	int			path_length;
	const char *directory;		/* of the znode, below the root */
	const char *name;			/* of the znode; NULL: a directory that cannot
								 * be read, so only path and error count */
	const char *mode;
	const char *dialect;
	int			position;
	bool		granted;
	bool		cached;
	bool		kept;			/* its session may have ended */
	bool		visible;		/* what it is, and whose */
	const char *data;			/* of the znode; NULL: it cannot be read */
	uint32		length;
	int64		session_id;
	int64		ctime_ms;
	const char *error;			/* or NULL */

	/* in ms since 1970, if this server knows better than the znode; else 0 */
	int64		granted_ms;
	int64		until_ms;
} ZklQueueRow;

/* ---- ownqueue ---- */

/*
 * Who has a lock and who waits: what its znodes say, and what this server knows
 * better of its own.  Backends only.
 */

/* A contender in the queue of a lock */
typedef struct ZklJudged
{
	const ZklQueueEntry *entry;
	bool		granted;
	bool		kept;			/* its session has released the lock, which
								 * at_least keeps, or which is cached */
	bool		cached;			/* its server has the lock cached; of another
								 * server: it may have */

	/* What the slots tell beyond that; nothing if it is not ours */
	uint64		owner;			/* the session of this server that it belongs
								 * to; 0: not known to be any */
	bool		is_own;			/* its session's role is the current one, or
								 * one that it is a member of */
	int64		granted_ms;		/* since 1970; 0: not held */
	int64		until_ms;		/* 0: no limit */
} ZklJudged;

/* Instead of a number: each is granted that conflicts with nothing ahead */
#define ZKL_BY_MODES	(-1)

/*
 * Those in the queue that have not left it; palloc'd.  Its znodes say that the first
 * "most" are granted.
 */
extern ZklJudged *zkl_ownqueue_judge(const ZklTarget *lock,
									 const ZklLockQueue *queue, int most,
									 int *n);

#endif							/* ZKL_FUNCTIONS_QUEUEFUNCS_H */
