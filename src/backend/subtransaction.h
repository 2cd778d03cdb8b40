/*
 * subtransaction.h
 *	  A step whose errors its caller treats.
 */
#ifndef ZKL_BACKEND_SUBTRANSACTION_H
#define ZKL_BACKEND_SUBTRANSACTION_H

/*
 * Runs a step in a subtransaction.  If it fails, that is rolled back, and the
 * error returned, palloc'd; else NULL.
 */
extern ErrorData *zkl_subtransaction_run(void (*step) (void *arg), void *arg);

#endif							/* ZKL_BACKEND_SUBTRANSACTION_H */
