/*
 * zkcheck.c
 *	  Whether what answers on the port is a ZooKeeper server at all.
 *
 * Owns nothing.  Runs in zklock_session only.  Takes no lock.  It must not know
 * how the connection comes and goes.
 */
#include <sys/socket.h>

#include "session/tlsprobe.h"
#include "session/zkstate.h"

#define TLS_PATIENCE_MS	500

/*
 * The client takes any 41 bytes for the answer to its handshake, and an
 * unknown session id in them for an expired session.  A proxy's error page
 * must not cost the worker its locks, so look at the bytes first: a length of
 * 36 or 37, and protocol version 0.
 */
bool
zkl_zkcheck_is_garbage(int fd, const ZklZkStart *start)
{
	static const unsigned char expected[8] = {0, 0, 0, 37, 0, 0, 0, 0};
	unsigned char seen[8];
	ssize_t		n;
	bool		good = true;

	if (zoo_state(zkl_zk.handle) != ZOO_ASSOCIATING_STATE)
		return false;
	n = recv(fd, seen, sizeof(seen), MSG_PEEK | MSG_DONTWAIT);
	for (ssize_t i = 0; i < n; i++)
		good &= seen[i] == expected[i] || (i == 3 && seen[i] == 36);
	if (!good && !start->tls && zkl_tlsprobe_is_tls(seen, (size_t) n))
		zkl_zkcheck_say_tls(start);
	else if (!good)
		zkl_zk_gone(ZKL_WIRE_GONE_UNREACHABLE,
					"\"%s\" does not speak ZooKeeper's protocol",
					start->host);
	return !good;
}

/* A port without TLS may close a connection for other reasons: only TLS tells. */
bool
zkl_zkcheck_wants_tls(const ZklZkStart *start, const char *address)
{
	int			patience = (int) start->timeout_ms / 20;

	return !start->tls && zkl_zklog_was_closed() &&
		zkl_tlsprobe_ask(address, patience < TLS_PATIENCE_MS ?
						 patience : TLS_PATIENCE_MS);
}

void
zkl_zkcheck_say_tls(const ZklZkStart *start)
{
	zkl_zk_gone(ZKL_WIRE_GONE_UNREACHABLE,
				"\"%s\" requires TLS: set \"zklock.tls\"", start->host);
}
