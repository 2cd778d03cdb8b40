/*
 * server_name.h
 *	  What this PostgreSQL server is called among others.
 */
#ifndef ZKL_SHARED_SERVER_NAME_H
#define ZKL_SHARED_SERVER_NAME_H

/*
 * The name that others see: "cluster_name", or else the host and the port.
 * Constant while the process lives; at most 63 bytes.
 */
extern const char *zkl_server_name(void);

#endif							/* ZKL_SHARED_SERVER_NAME_H */
