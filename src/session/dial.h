/*
 * dial.h
 *	  A socket of our own to a ZooKeeper server, beside the client's.
 */
#ifndef ZKL_SESSION_DIAL_H
#define ZKL_SESSION_DIAL_H

/*
 * Begins to connect to "address:port[/chroot]", which must be numeric.  Returns a
 * non-blocking socket, or -1.
 */
extern int	zkl_dial(const char *address);

#endif							/* ZKL_SESSION_DIAL_H */
