/*
 * job.h
 *	  A job of zk_once(): its lock, its clock and its history in ZooKeeper, and the
 *	  turns that this session has taken.
 *
 * A turn is a hold on the job's lock, and a note in the job's history that it is used up.
 * If the hold lasts for a transaction, that makes the note.  If it lasts for a session, as
 * that of a run whose SQL may commit, the first of its transactions that commits makes the
 * note of a turn "at most once", and none makes that of a turn "at least once".
 *
 * All functions that read or write wait for ZooKeeper, and raise error 08006 if it
 * cannot be reached within "zklock.answer_timeout"; zkl_job_lock waits as for any lock.
 */
#ifndef ZKL_RECIPES_JOB_H
#define ZKL_RECIPES_JOB_H

#include "backend/errand.h"
#include "recipes/history.h"

/* The znode of the history, in the directory of the job's lock */
#define ZKL_HISTORY_NODE	".history"

typedef struct ZklTurn
{
	ZklTarget	target;			/* the job's lock */
	ZklLifetime lifetime;		/* of the hold that the turn lives with */
	int64		token;			/* and its token */
	ZklTurnId	id;
	bool		at_least_once;	/* else at most once */
	int32		version;		/* of the history, as it was read */
	uint32		from_length;
	uint32		to_length;
	char		from[ZKL_MAX_NODE_DATA];	/* the history, as it was read */
	char		to[ZKL_MAX_NODE_DATA];	/* and with this turn used up */
	int			slotno;			/* of the hold, if it has an epilogue; or -1 */
	bool		is_sent;		/* a write that uses it up was sent */
	bool		is_used;		/* and was carried out */
} ZklTurn;

/*
 * A turn was taken, under the hold that has its token.  This keeps a copy until the turn
 * is used up, or its hold ends.
 */
extern void zkl_job_take(const ZklTurn *turn);

/* The turn of a job that is taken and not used up, or NULL */
extern ZklTurn *zkl_job_find(const ZklTarget *target);

/*
 * The last transaction of a session's turn, if that is not used up yet: from now on the
 * turn lives with that transaction's hold on the job's lock.
 */
extern void zkl_job_pass_on(const ZklTarget *target);

/*
 * Waits for the job's lock, until the transaction ends; returns its token.  It may be
 * any lock; if this session has it already, it is counted once more.
 */
extern int64 zkl_job_lock(const ZklTarget *job);
extern void zkl_job_unlock(const ZklTarget *job);

/* What time it is by the clock of ZooKeeper's leader, in ms since 1970 */
extern int64 zkl_job_time(void);

/*
 * Reads the history of the turn's job, under its lock, and notes in the turn
 * what was read.  Error XX001 if it is none.  If there is none yet, calls
 * check_room and makes one, which belongs to the role that logged in.
 */
extern void zkl_job_read(ZklTurn *turn, ZklHistory *history,
						 void (*check_room) (const char *role));

/* The role that logged in, as histories name it: in UTF-8 */
extern void zkl_job_role(char role[ZKL_MAX_ROLE]);

/*
 * As zkl_job_lock, but without a wait: false, if another transaction has the lock
 * or waits for it.
 */
extern bool zkl_job_try_lock(const ZklTarget *job);

/* What the znode of a job's history tells */
typedef struct ZklJobRecord
{
	bool		readable;
	ZklHistory	history;
	int64		mtime;			/* when it was written, by ZooKeeper's clock */
	int32		version;
} ZklJobRecord;

/* Reads it as new as the call.  False: the job has none. */
extern bool zkl_job_look(const ZklTarget *job, ZklJobRecord *record);

/*
 * The same from an answer to a read of that znode.  One that ZooKeeper refuses to show is
 * a record that is not readable.  Error 08006 if there is no answer; "name" is for that.
 */
extern bool zkl_job_read_record(const char *name, const ZklErrandAnswer *answer,
								ZklJobRecord *record);

/*
 * Under the job's lock: deletes the znode of its history, if that still has the
 * version.  False: it has not, or is gone.
 */
extern bool zkl_job_delete(const ZklTarget *job, int32 version);

/* Whether a job has a history, readable or not */
extern bool zkl_job_has_history(const ZklTarget *job);

/*
 * Under the job's lock: forgets all turns that were used up.  False: there were
 * none.
 */
extern bool zkl_job_forget(const ZklTarget *job);

#endif							/* ZKL_RECIPES_JOB_H */
