/*
 * tls.h
 *	  One connection over TLS: a socket on which only verified servers are
 *	  spoken to.
 */
#ifndef ZKL_SESSION_TLS_H
#define ZKL_SESSION_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Whom to trust, and who we are.  The strings are PEM. */
typedef struct ZklTlsTrust
{
	bool		check_name;		/* the certificate must name the server */
	const char *ca;
	const char *certificate;	/* with its chain; empty: none */
	char	   *key;			/* is wiped once it is read */
} ZklTlsTrust;

/*
 * A verified connection.  Until when certificates are valid is in seconds since
 * 1970: ours and the CA's with all that lead to them; 0: we have none.
 */
typedef struct ZklTlsFacts
{
	const char *version;		/* empty without TLS */
	const char *cipher;
	int64_t		certificate_until;
	int64_t		ca_until;		/* of the CA that vouches for the server */
	int64_t		server_until;
} ZklTlsFacts;

/* To be called once.  False: zkl_tls_error says what is wrong. */
extern bool zkl_tls_begin(const ZklTlsTrust *trust);

/*
 * Begins a connection over a non-blocking socket, which may still be connecting.
 * There is one at a time: the one of before is forgotten.
 */
extern bool zkl_tls_open(int fd, const char *server_name);

/*
 * Shakes hands if that is not done, which verifies the server; then reads or
 * writes.  Returns the number of bytes, 0 if it has to wait for zkl_tls_wants(),
 * -1 if the connection has ended.
 */
extern ssize_t zkl_tls_read(void *buffer, size_t size);
extern ssize_t zkl_tls_write(const void *bytes, size_t size);

/* POLLIN or POLLOUT: what the last read or write that returned 0 waits for */
extern short zkl_tls_wants(void);

/* Whether the server is verified */
extern bool zkl_tls_is_open(void);

/* To be called once the server is verified, or not at all. */
extern ZklTlsFacts zkl_tls_facts(void);

/* Why the last function failed, and if possible what to do */
extern const char *zkl_tls_error(void);

/* Whether that is about certificates: ours, or the server's */
extern bool zkl_tls_is_distrusted(void);

#endif							/* ZKL_SESSION_TLS_H */
