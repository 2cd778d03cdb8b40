/*
 * history.h
 *	  Which turns of a job were used up: the data of its history's znode, and the
 *	  periods of zk_once().
 *
 * A period is a length of time, or whole days or months of the calendar of a time
 * zone, which daylight saving makes shorter or longer.
 *
 * The data is flat JSON.  The last run's server and pid are there for people to read; the
 * time of the last run by period and the last run keys decide.
 */
#ifndef ZKL_RECIPES_HISTORY_H
#define ZKL_RECIPES_HISTORY_H

#include "datatype/timestamp.h"
#include "pgtime.h"
#include "znode/znode.h"

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

/* False: this is no history.  No data at all is an empty one. */
extern bool zkl_history_read(const char *data, Size length,
							 ZklHistory *history);

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

/*
 * Writes a history of that role without any turn, into ZKL_MAX_NODE_DATA bytes; it
 * differs from every other.  Returns its length.
 */
extern uint32 zkl_history_write_empty(const char *role, char *data);

#endif							/* ZKL_RECIPES_HISTORY_H */
