/*
 * hosts.h
 *	  Which ZooKeeper servers to connect to, and with which credentials.  For the worker.
 */
#ifndef ZKL_SHARED_HOSTS_H
#define ZKL_SHARED_HOSTS_H

#define ZKL_MAX_HOST	512		/* host, port and chroot */

/* Takes over host[:port][,host[:port]...][/chroot]. */
extern void zkl_hosts_parse(const char *connect_string);

extern int	zkl_hosts_count(void);

/* The next one in turn, as host:port with the chroot; count must not be 0. */
extern const char *zkl_hosts_next(void);

/*
 * Reads scheme:credentials, the one line of "zklock.auth_file"; empty when
 * that is not set.  Returns NULL, or what is wrong with the file.
 */
extern const char *zkl_hosts_credentials(char *line, size_t size);

/* ---- any process ---- */

/* NULL, or the rule that a connect string breaks, as a full sentence. */
extern const char *zkl_hosts_check(const char *connect_string);

#endif							/* ZKL_SHARED_HOSTS_H */
