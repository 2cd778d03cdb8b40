/*
 * hosts.h
 *	  Which ZooKeeper servers to connect to.  For the worker.
 */
#ifndef ZKL_SHARED_HOSTS_H
#define ZKL_SHARED_HOSTS_H

#define ZKL_MAX_HOST	512		/* host, port and chroot */

/* For how long new settings are tried at each host: there is no hurry. */
#define ZKL_HOST_TRIAL_MS	10000

/*
 * The host of that number, from 0, in host[:port][,host[:port]...][/chroot], as
 * host:port with the chroot; NULL if there are not so many.
 */
extern char *zkl_hosts_nth(const char *connect_string, int number);

/* Takes over all hosts. */
extern void zkl_hosts_parse(const char *connect_string);

extern int	zkl_hosts_count(void);

/* The next one in turn; count must not be 0. */
extern const char *zkl_hosts_next(void);

/* ---- any process ---- */

/* NULL, or the rule that a connect string breaks, as a full sentence. */
extern const char *zkl_hosts_check(const char *connect_string);

#endif							/* ZKL_SHARED_HOSTS_H */
