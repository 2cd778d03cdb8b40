/*
 * retry.h
 *	  How soon, and how often, the worker tries an operation again.
 *
 * Something that could not be done on a connection that stands is tried again
 * after a pause, which doubles up to a second, and no more than a few times in
 * a row: then whoever wanted it is told.  Times are in µs of CLOCK_BOOTTIME.
 */
#ifndef ZKL_SHARED_RETRY_H
#define ZKL_SHARED_RETRY_H

#define ZKL_RETRY_FIRST_PAUSE	((int64) 10000)
#define ZKL_RETRY_LONGEST_PAUSE ((int64) 1000000)
#define ZKL_RETRY_LIMIT			12	/* these take about six seconds */

typedef struct ZklRetry
{
	int			tries;			/* that failed, in a row */
	int64		due;			/* when the next one may begin */
} ZklRetry;

/* One try failed, now.  False: there will be no other. */
static inline bool
zkl_retry_later(ZklRetry *retry, int64 now)
{
	if (retry->tries >= ZKL_RETRY_LIMIT)
		return false;
	retry->due = now + Min(ZKL_RETRY_FIRST_PAUSE << retry->tries,
						   ZKL_RETRY_LONGEST_PAUSE);
	retry->tries++;
	return true;
}

/* The pauses before and the tries until now do not count any more. */
static inline void
zkl_retry_reset(ZklRetry *retry)
{
	retry->tries = 0;
	retry->due = 0;
}

#endif							/* ZKL_SHARED_RETRY_H */
