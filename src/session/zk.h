/*
 * zk.h
 *	  One connection to ZooKeeper, through the single-threaded C client.
 *
 * One process serves one connection, so there is one of everything and no
 * handle to pass around.  Everything that zk has to tell the worker it
 * appends as frames to the buffer given to zkl_zk_start; GONE is always the
 * last of them.
 */
#ifndef ZKL_SESSION_ZK_H
#define ZKL_SESSION_ZK_H

#include <poll.h>

#include "session/tls.h"
#include "wire/wire.h"

typedef struct ZklZkCredentials
{
	const char *scheme;
	const char *secret;
	uint32_t	length;			/* of the secret */
} ZklZkCredentials;

/* What START says: what to connect to, and as whom.  zk keeps the pointers. */
typedef struct ZklZkStart
{
	const char *host;			/* as configured, for messages */
	const char *name;			/* the same without port and chroot */
	char	  **addresses;		/* "address:port[/chroot]", numeric */
	int			naddresses;
	int			first;			/* the address to try first */
	int64_t		session_id;		/* 0: a new session */
	char		password[ZKL_PASSWORD_BYTES];
	uint32_t	timeout_ms;
	ZklZkCredentials *credentials;
	uint32_t	ncredentials;
	bool		is_private;		/* only those who have them may read */
	bool		wants_log;		/* all that the client says */
	bool		tls;
	ZklTlsTrust trust;
} ZklZkStart;

/* ---- zk ---- */

/* Says where frames go and which generation they carry.  Call it first. */
extern void zkl_zk_init(ZklWireBuffer *out, uint32_t generation);

/* How far the attempt to connect has come */
extern void zkl_zk_tell_step(ZklWireStep step);

/* Starts to connect; each address is tried once. */
extern void zkl_zk_start(const ZklZkStart *start);

/*
 * What to poll for, and for how long (-1: for ever); pings the server and
 * moves on to the next address when they are due.  To be called before each
 * poll.  "reads": nothing is to be read from ZooKeeper if it is false.  The
 * descriptors are the client's socket, with TLS the network's, and that of zkraw.
 */
#define ZKL_ZK_FDS	3
extern void zkl_zk_interest(struct pollfd *fds, int *timeout_ms, bool reads);

/* Takes in what poll found; reads no more once out holds "limit" bytes. */
extern void zkl_zk_process(const struct pollfd *fds, size_t limit);

/*
 * Between these two nothing small is sent, so that requests at hand share packets.
 */
extern void zkl_zk_hold(void);
extern void zkl_zk_release(void);

/* Writes the GONE frame, once; nothing follows it. */
extern void zkl_zk_gone(ZklWireGone reason, const char *format,...)
			__attribute__((format(printf, 2, 3)));
extern bool zkl_zk_is_gone(void);

/* ---- zkrequest.c ---- */

/*
 * Executes one request; it is answered now or later by a REPLY.  False: the
 * frame is malformed.
 */
extern bool zkl_zkrequest_run(const ZklWireHeader *header, ZklWireReader *body);

#endif							/* ZKL_SESSION_ZK_H */
