/*
 * queuerow.h
 *	  Rows of zk_queue() and zk_fleet_locks(): a client that holds or awaits a lock,
 *	  and what its znode tells of it.
 */
#ifndef ZKL_FUNCTIONS_QUEUEROW_H
#define ZKL_FUNCTIONS_QUEUEROW_H

#include "functions/row.h"
#include "nodes/pg_list.h"
#include "znode/znode.h"

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

extern void zkl_queuerow_begin(ZklQueueRows *rows, FunctionCallInfo fcinfo);

/* The first row for a role that sees all reads the hosts of the fleet. */
extern void zkl_queuerow_put(ZklQueueRows *rows, const ZklQueueRow *r);

#endif							/* ZKL_FUNCTIONS_QUEUEROW_H */
