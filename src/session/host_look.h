/*
 * host_look.h
 *	  Whether a host is there: for zk_healthcheck().
 */
#ifndef ZKL_SESSION_HOST_LOOK_H
#define ZKL_SESSION_HOST_LOOK_H

/* Looks at the host, and says what it finds: see wire/look_answer.h.  Exits. */
extern void zkl_host_look(const char *host, const char *how)
			__attribute__((noreturn));

#endif							/* ZKL_SESSION_HOST_LOOK_H */
