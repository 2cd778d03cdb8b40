/*
 * reading.h
 *	  Reading many znodes, ZKL_ERRAND_READS at a time: any, the queue of a lock, and
 *	  the servers of the fleet.
 */
#ifndef ZKL_BACKEND_READING_H
#define ZKL_BACKEND_READING_H

#include "backend/errand.h"
#include "backend/target.h"
#include "shared/fleet.h"

/* What stands for the result of a list that is too long to be read */
#define ZKL_RC_TOO_LONG		(-5)

/*
 * Of the znode of that number.  Its bytes are all there are, but data is cut to
 * ZKL_MAX_NODE_DATA.  Gone when it returns, as all that it has allocated is soon; it
 * may read others.
 */
typedef void (*ZklReadingTaker) (void *arg, int number,
								 const ZklErrandAnswer *answer);

/*
 * GET or LIST: reads children of a directory, or itself where the name is NULL, and
 * calls "take" with each answer, in the order of the names.  A znode that cannot
 * be read is no error, but 08006 is raised if ZooKeeper does not answer.
 */
extern void zkl_reading_each(ZklErrandKind kind, const ZklTarget *directory,
							 const char *const *names, int n,
							 ZklReadingTaker take, void *arg);

/* A contender */
typedef struct ZklQueueEntry
{
	ZklSeq		seq;
	ZklLockMode mode;
	bool		has_uuid;
	ZklUuid		uuid;
	const char *name;			/* of the znode */
	const char *data;			/* these four are empty if it cannot be read */
	uint32		length;
	int64		session_id;		/* its ephemeralOwner */
	int64		ctime_ms;		/* since 1970, by ZooKeeper's clock */
} ZklQueueEntry;

typedef struct ZklLockQueue
{
	ZklQueueEntry *entries;
	int			n;
} ZklLockQueue;

/*
 * Reads the queue of a lock, in its order; palloc'd.  Error 08006 if ZooKeeper
 * cannot be reached.
 */
extern void zkl_reading_queue(const ZklTarget *lock, ZklLockQueue *queue);

/* The same, of a directory that was listed */
extern void zkl_reading_listed(const ZklTarget *lock, const ZklErrand *listing,
							   ZklLockQueue *queue);

typedef struct ZklFleetServer
{
	uint64		system;			/* identifier */
	int64		session_id;
	bool		readable;		/* else its entry is empty */
	ZklFleetEntry entry;
} ZklFleetServer;

/*
 * Calls fn for each server of the fleet, in the order of their system
 * identifiers and sessions.  Error 08006 if ZooKeeper does not answer.
 */
extern void zkl_reading_servers(void (*fn) (void *arg, const ZklFleetServer *server),
								void *arg);

#endif							/* ZKL_BACKEND_READING_H */
