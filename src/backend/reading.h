/*
 * reading.h
 *	  Reading many znodes, ZKL_ERRAND_READS at a time.
 */
#ifndef ZKL_BACKEND_READING_H
#define ZKL_BACKEND_READING_H

#include "backend/errand.h"

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

/* Error unless the answer tells what the znode is: there, gone, or not to be read. */
extern void zkl_reading_check(const ZklTarget *directory,
							  const ZklErrandAnswer *answer);

#endif							/* ZKL_BACKEND_READING_H */
