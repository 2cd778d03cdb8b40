/*
 * survey_layout.h
 *	  Several reads at once for zk_fleet_locks(), in a DSM segment of the backend.
 *
 * Behind the head stand the paths, each with its NUL, and behind them the
 * answers, in the order of the paths, without any alignment:
 *
 *	  int32 rc, int64 ctime_ms, int64 session_id, uint32 length, bytes
 *
 * The bytes are the data of the znode, cut to ZKL_MAX_NODE_DATA, or the names of
 * its children, each with its NUL.  The worker never changes the paths, so that
 * the next worker can read them again.
 */
#ifndef ZKL_SHARED_SURVEY_LAYOUT_H
#define ZKL_SHARED_SURVEY_LAYOUT_H

#include "shared/entries.h"

#define ZKL_SURVEY_READS	16	/* at a time */

typedef struct ZklSurvey
{
	bool		list;			/* the children, else the data */
	uint32		nreads;
	Size		paths_size;
	char		paths[FLEXIBLE_ARRAY_MEMBER];
} ZklSurvey;

/* Where the answers are to be written, or read, in a segment of that size */
static inline void
zkl_survey_layout_answers(ZklSurvey *survey, Size size, ZklEntries *answers)
{
	Size		head = offsetof(ZklSurvey, paths) + survey->paths_size;

	answers->base = (char *) survey + head;
	answers->size = size - head;
	answers->used = 0;
	answers->count = 0;
}

#endif							/* ZKL_SHARED_SURVEY_LAYOUT_H */
