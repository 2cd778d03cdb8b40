/*
 * srvr.h
 *	  Asks a ZooKeeper server for its version.
 */
#ifndef ZKL_SESSION_SRVR_H
#define ZKL_SESSION_SRVR_H

#include <poll.h>
#include <stdbool.h>

/* Begins to ask the server at "address:port[/chroot]", unless that goes on. */
extern void zkl_srvr_begin(const char *address);

/* What to poll for: fd is -1 if there is nothing to wait for. */
extern void zkl_srvr_interest(struct pollfd *pfd);

/*
 * Takes in what poll found.  Returns the version, such as 3.8.0, once that has
 * arrived, else NULL.  A server that does not tell ends it.
 */
extern const char *zkl_srvr_process(const struct pollfd *pfd);

#endif							/* ZKL_SESSION_SRVR_H */
