/*
 * hostcheck.h
 *	  Which of the ZooKeeper servers in "zklock.connect_string" are there.
 */
#ifndef ZKL_FUNCTIONS_HOSTCHECK_H
#define ZKL_FUNCTIONS_HOSTCHECK_H

typedef struct ZklHostCheck ZklHostCheck;

/* For the present setting */
extern ZklHostCheck *zkl_hostcheck_make(void);

/*
 * Begins to look at all of them at once.  To be ended, also if there is an error in
 * between or here.
 */
extern void zkl_hostcheck_begin(ZklHostCheck *check);

/*
 * Waits until all have answered, or their time is over, which is short in an outage: then
 * nothing is to be waited for.  Returns whether all are there, and a detail.
 */
extern bool zkl_hostcheck_finish(ZklHostCheck *check, bool connected, char **detail);

extern void zkl_hostcheck_end(ZklHostCheck *check);

#endif							/* ZKL_FUNCTIONS_HOSTCHECK_H */
