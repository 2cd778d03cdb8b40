/*
 * resolve.h
 *	  The addresses of a host, and sockets to them.
 */
#ifndef ZKL_SESSION_RESOLVE_H
#define ZKL_SESSION_RESOLVE_H

/*
 * Finds the name and the addresses of "host:port[/chroot]": "address:port[/chroot]",
 * numeric.  Returns how many there are; if none, "fault" says why.  It can take long.
 */
extern int	zkl_resolve(const char *host, const char **name, char ***addresses,
						const char **fault);

/*
 * Begins to connect to "address:port[/chroot]", which must be numeric.  Returns a
 * non-blocking socket, or -1.
 */
extern int	zkl_resolve_dial(const char *address);

#endif							/* ZKL_SESSION_RESOLVE_H */
