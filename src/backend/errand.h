/*
 * errand.h
 *	  Errands: operations on znodes that the worker carries out for a backend; and
 *	  reading many znodes, ZKL_ERRAND_READS at a time: any, the queue of a lock, and
 *	  the servers of the fleet.
 */
#ifndef ZKL_BACKEND_ERRAND_H
#define ZKL_BACKEND_ERRAND_H

#include "backend/target.h"
#include "backend/wait.h"
#include "shared/errand_layout.h"
#include "shared/fleet.h"

/*
 * A new errand with room for an answer of that many bytes: its path is the
 * target's directory, plus "child" (a segment, or NULL for the directory
 * itself); all else is zero, version -1.  It lives in a DSM segment, until
 * zkl_errand_free or the end of the transaction.
 */
extern ZklErrand *zkl_errand_make(ZklErrandKind kind, const ZklTarget *target,
								  const char *child, Size room);

extern void zkl_errand_free(ZklErrand *errand);

/*
 * Has it carried out, unless it is AWAIT.  Returns ZooKeeper's result code, which is
 * errand->answer.rc, too.  Error 08006 if ZooKeeper cannot be reached within
 * "zklock.answer_timeout".  It can be used again.
 *
 * Only a write is answered with ZKL_RC_UNKNOWN, after a pause, so that the caller may
 * try again at once; if that happens too often in a statement, it is an error.
 */
extern int32 zkl_errand_run(ZklErrand *errand, const ZklTarget *target);

/*
 * The same for AWAIT, for timeout_ms at most (ZKL_FOREVER: no matter how long), which the
 * caller has shortened to "lock_timeout": then the answer is due within a second.
 * "takes": see ZklDeadlines.
 */
extern int32 zkl_errand_await(ZklErrand *errand, const ZklTarget *target,
							  int64 timeout_ms, bool takes);

/*
 * The same as a part of a call whose deadlines are these.  One that may wait
 * without end waits for ZooKeeper, too.
 */
extern int32 zkl_errand_run_within(ZklErrand *errand, const ZklTarget *target,
								   const ZklDeadlines *at);

/*
 * The same as a part of a call that waits by these deadlines, and that repeats by
 * itself what is not known: ZKL_RC_UNKNOWN comes without a pause, as often as it may, for
 * any of the answers.
 */
extern int32 zkl_errand_try(ZklErrand *errand, const ZklTarget *target,
							ZklDeadlines *at);

/* The deadlines of zkl_errand_run */
extern void zkl_errand_begin(ZklDeadlines *at);

#define ZKL_LONGEST_LISTING	((Size) 16 * 1024 * 1024)

/*
 * Lists all znodes in a directory; there are none if there is no directory.  "sync":
 * as new as this call.  To be freed.  Error 54000 if the list is longer than
 * ZKL_LONGEST_LISTING.
 */
extern ZklErrand *zkl_errand_list(const ZklTarget *directory, bool sync);

/*
 * The names of a listing, one after the other in no order: the first one for NULL; NULL
 * behind the last one.
 */
extern const char *zkl_errand_next(const ZklErrand *listing, const char *name);

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
 * GET, LIST or RIGHTS: reads children of a directory, or itself where the name is NULL, and
 * calls "take" with each answer, in the order of the names.  A znode that cannot
 * be read is no error, but 08006 is raised if ZooKeeper does not answer.
 */
extern void zkl_errand_read_each(ZklErrandKind kind, const ZklTarget *directory,
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
extern void zkl_errand_read_queue(const ZklTarget *lock, ZklLockQueue *queue);

/* The same, of a directory that was listed */
extern void zkl_errand_read_listed(const ZklTarget *lock, const ZklErrand *listing,
								   ZklLockQueue *queue);

/*
 * The name of a child that ends with no session, so that the directory stays; NULL:
 * none is found among the first ZKL_ERRAND_READS of other clients.
 */
extern const char *zkl_errand_find_lasting(const ZklTarget *directory);

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
extern void zkl_errand_read_servers(void (*fn) (void *arg, const ZklFleetServer *server),
									void *arg);

#endif							/* ZKL_BACKEND_ERRAND_H */
