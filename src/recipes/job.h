/*
 * job.h
 *	  A job of zk_once(): its lock, its clock and its history in ZooKeeper, and
 *	  the turns that this session has taken.
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
#include "datatype/timestamp.h"
#include "pgtime.h"
#include "znode/znode.h"

/* ---- history ---- */

/*
 * Which turns of a job were used up: the data of its history's znode, and the
 * periods of zk_once().
 *
 * A period is a length of time, or whole days or months of the calendar of a time
 * zone, which daylight saving makes shorter or longer.
 *
 * The data is flat JSON.  The last run's server and pid are there for people to read; the
 * time of the last run by period and the last run keys decide.
 */

typedef struct ZklPeriod
{
	int32		months;			/* at most one of these three is not 0; */
	int32		days;			/* if all are, it is none */
	int64		us;
	pg_tz	   *zone;			/* of months and days */
} ZklPeriod;

/*
 * The period of these arguments; error 22023 if there is none: it must be positive,
 * and not mix months with anything else.  A zone that is not UTC needs whole days
 * or months.
 */
extern ZklPeriod zkl_history_make(const Interval *length, const char *zone);

extern bool zkl_history_equal(const ZklPeriod *a, const ZklPeriod *b);

#define ZKL_HISTORY_KEYS	32	/* that are remembered, if they are short */
#define ZKL_MAX_RUN_KEY		200 /* bytes in UTF-8 */
#define ZKL_MAX_ROLE		(4 * NAMEDATALEN)	/* bytes of a role in UTF-8 */

typedef struct ZklHistory
{
	int64		at;				/* of the last turn, ms since 1970; 0: none
								 * since a reset */
	char		server[ZKL_MAX_SERVER_NAME + 1];	/* that had it; UTF-8 */
	int64		pid;
	char		role[ZKL_MAX_ROLE]; /* that made the record, in UTF-8; "": not
									 * known */
	int64		period_at;		/* ms since 1970; 0: never by period */
	uint32		nkeys;
	char		keys[ZKL_HISTORY_KEYS][ZKL_MAX_RUN_KEY + 1];	/* last one first */
} ZklHistory;

/* Which turn is meant */
typedef struct ZklTurnId
{
	ZklPeriod	period;			/* none: it has a key */
	char		key[ZKL_MAX_RUN_KEY + 1];	/* UTF-8; no control characters */
} ZklTurnId;

/* Whether a turn is used up.  Of a period, the one that "now" (ms) is in. */
extern bool zkl_history_has(const ZklHistory *history, const ZklTurnId *turn,
							int64 now_ms);

/*
 * Whether the last run by period lies so far ahead of "now" that a turn may count
 * as used up although no transaction had it.
 */
extern bool zkl_history_is_ahead(const ZklHistory *history,
								 const ZklTurnId *turn, int64 now_ms);

/*
 * Writes the history with that turn used up, too, into ZKL_MAX_NODE_DATA bytes.
 * It differs from every other history, even of the same turns.  Returns its
 * length.  If not all keys fit, the oldest are left out.
 */
extern uint32 zkl_history_write(const ZklHistory *history,
								const ZklTurnId *turn, int64 now_ms,
								char *data);

/* ---- job ---- */

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
