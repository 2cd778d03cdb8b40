/*
 * retry.h
 *	  How soon, and how often, a failed operation is tried again.
 *
 * An operation that fails on a standing connection is tried again after a pause,
 * which doubles from try to try up to a second.  After a few tries in a row the
 * caller gives up.  Times are in µs of boottime.h.
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

/* A try has just failed.  False: that was the last one. */
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

/* The tries until now no longer count. */
static inline void
zkl_retry_reset(ZklRetry *retry)
{
	retry->tries = 0;
	retry->due = 0;
}

#endif							/* ZKL_SHARED_RETRY_H */
