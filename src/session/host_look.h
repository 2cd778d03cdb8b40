/*
 * host_look.h
 *	  Whether a host is there, and the addresses of one.
 */
#ifndef ZKL_SESSION_HOST_LOOK_H
#define ZKL_SESSION_HOST_LOOK_H

/* ---- resolve: the addresses of a host, and sockets to them ---- */

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

/* ---- host_look: whether a host is there: for zk_healthcheck() ---- */

/* Looks at the host, and says what it finds: see wire/look_answer.h.  Exits. */
extern void zkl_host_look(const char *host, const char *how)
			__attribute__((noreturn));

#endif							/* ZKL_SESSION_HOST_LOOK_H */
