/*
 * history.h
 *	  Which turns of a job were used up: the data of its history's znode.
 *
 * Flat JSON.  Who ran last is there for people to read; what decides are the
 * time of the last run by period, and the last run keys.
 */
#ifndef ZKL_RECIPES_HISTORY_H
#define ZKL_RECIPES_HISTORY_H

#include "znode/znode.h"

#define ZKL_HISTORY_KEYS	32	/* that are remembered, if they are short */
#define ZKL_MAX_RUN_KEY		200 /* bytes in UTF-8 */

typedef struct ZklHistory
{
	int64		period_at;		/* ms since 1970; 0: never by period */
	uint32		nkeys;
	char		keys[ZKL_HISTORY_KEYS][ZKL_MAX_RUN_KEY + 1];	/* last one first */
} ZklHistory;

/* Which turn is meant */
typedef struct ZklTurnId
{
	int64		period_us;		/* 0: it has a key */
	char		key[ZKL_MAX_RUN_KEY + 1];	/* UTF-8; no control characters */
} ZklTurnId;

/* False: this is no history.  No data at all is an empty one. */
extern bool zkl_history_read(const char *data, Size length,
							 ZklHistory *history);

/* Whether a turn is used up.  Of a period, the one that "now" (ms) is in. */
extern bool zkl_history_has(const ZklHistory *history, const ZklTurnId *turn,
							int64 now_ms);

/*
 * Whether the last run by period lies so far ahead of "now" that a turn may
 * count as used up which nobody had.
 */
extern bool zkl_history_is_ahead(const ZklHistory *history,
								 const ZklTurnId *turn, int64 now_ms);

/*
 * The history once that turn, too, is used up, into ZKL_MAX_NODE_DATA bytes; it
 * differs from every other, also if that tells of the same turn.  Returns its
 * length.  The oldest keys that do not fit are left out.
 */
extern uint32 zkl_history_write(const ZklHistory *history,
								const ZklTurnId *turn, int64 now_ms,
								char *data);

/*
 * A history without any turn, into ZKL_MAX_NODE_DATA bytes; it differs from
 * every other.  Returns its length.
 */
extern uint32 zkl_history_write_empty(char *data);

#endif							/* ZKL_RECIPES_HISTORY_H */
