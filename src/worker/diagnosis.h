/*
 * diagnosis.h
 *	  What is wrong with a connection to ZooKeeper, in words.  Worker only.
 */
#ifndef ZKL_WORKER_DIAGNOSIS_H
#define ZKL_WORKER_DIAGNOSIS_H

/* Why the core gives a connection to that host up, by its code */
extern const char *zkl_diagnosis_of(int32 rc, const char *host);

/*
 * Warns of a session timeout that is too short for the ensemble's ticks, once
 * for each session.
 */
extern void zkl_diagnosis_check_timeout(uint32 timeout_ms, uint32 generation);

#endif							/* ZKL_WORKER_DIAGNOSIS_H */
