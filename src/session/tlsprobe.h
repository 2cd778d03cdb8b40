/*
 * tlsprobe.h
 *	  Whether a port speaks TLS.
 */
#ifndef ZKL_SESSION_TLSPROBE_H
#define ZKL_SESSION_TLSPROBE_H

#include <stdbool.h>
#include <stddef.h>

/* How the records of TLS 1.0 to 1.3 begin; length may be too short to tell. */
extern bool zkl_tlsprobe_is_tls(const unsigned char *bytes, size_t length);

/*
 * Connects to "address:port[/chroot]", the address being a number, and greets it
 * in TLS.  True: it answers in TLS.  Waits for timeout_ms at most.
 */
extern bool zkl_tlsprobe_ask(const char *address, int timeout_ms);

#endif							/* ZKL_SESSION_TLSPROBE_H */
