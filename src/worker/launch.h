/*
 * launch.h
 *	  Starts a session process, and tells it what to connect to.  Worker only.
 */
#ifndef ZKL_WORKER_LAUNCH_H
#define ZKL_WORKER_LAUNCH_H

/*
 * Starts a process for the connection of this number, to the next host, which goes
 * to host[ZKL_MAX_HOST], as the requested session timeout goes to asked_ms.  False:
 * that failed, and the reason is noted.
 */
extern bool zkl_launch_begin(uint32 connection, char *host, int *asked_ms);

/*
 * What is wrong with the settings of the connection and the files that they name,
 * as far as that is seen without a connection; or NULL.
 */
extern const char *zkl_launch_fault(void);

#endif							/* ZKL_WORKER_LAUNCH_H */
