/*
 * server_name.h
 *	  What this PostgreSQL server is called among others.
 */
#ifndef ZKL_SHARED_SERVER_NAME_H
#define ZKL_SHARED_SERVER_NAME_H

/*
 * The name that others see: "zklock.server_name", or one that is made of
 * "cluster_name", the host and the port.  In UTF-8, at most ZKL_MAX_SERVER_NAME
 * bytes, also once it is escaped for JSON.  Constant while the process lives.
 */
extern const char *zkl_server_name(void);

/* The host that the name is made of; "localhost" if it cannot be found out. */
extern const char *zkl_server_name_host(void);

/* The rule that a value of "zklock.server_name" breaks, or NULL */
extern const char *zkl_server_name_check(const char *value);

#endif							/* ZKL_SHARED_SERVER_NAME_H */
