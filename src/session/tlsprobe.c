/*
 * tlsprobe.c
 *	  Whether a port speaks TLS.
 *
 * Owns nothing.  Runs in zklock_session only.  Takes no lock.  It must not know
 * ZooKeeper, nor why anybody asks.
 *
 * A ZooKeeper server that takes TLS only closes the connection of a client that
 * does not speak it, without a word, as one without a quorum does.  What tells
 * them apart is a ClientHello: whatever a TLS server thinks of it, it answers
 * with a record of TLS, a ServerHello or an alert.
 */
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "session/dial.h"
#include "session/tlsprobe.h"

#define RECORD_ALERT		0x15
#define RECORD_HANDSHAKE	0x16
#define RECORD_MAJOR		3

/* The least that is a ClientHello: TLS 1.2, four common ciphers */
static const unsigned char client_hello[] = {
	RECORD_HANDSHAKE, 3, 1, 0, 51,	/* a record of 51 bytes */
	1, 0, 0, 47,				/* a ClientHello of 47 bytes */
	3, 3,						/* TLS 1.2 */
	'z', 'k', 'l', 'o', 'c', 'k', ' ', 'l',
	'o', 'o', 'k', 's', ' ', 'f', 'o', 'r',
	' ', 'T', 'L', 'S', ' ', 'a', 'n', 'd',
	' ', 'g', 'o', 'e', 's', '.', '.', '.',
	0,							/* no session to resume */
	0, 8, 0xc0, 0x2f, 0xc0, 0x2b, 0, 0x9c, 0, 0x2f,
	1, 0						/* no compression */
};

bool
zkl_tlsprobe_is_tls(const unsigned char *bytes, size_t length)
{
	return length >= 2 && bytes[1] == RECORD_MAJOR &&
		(bytes[0] == RECORD_ALERT || bytes[0] == RECORD_HANDSHAKE);
}

static int
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int) ((now.tv_sec & 0xfffff) * 1000 + now.tv_nsec / 1000000);
}

/* Whether the socket is ready for that in time; an error counts as ready. */
static bool
wait_for(int fd, short events, int until)
{
	struct pollfd pfd = {fd, events, 0};
	int			left = until - now_ms();

	return left > 0 && poll(&pfd, 1, left) == 1;
}

bool
zkl_tlsprobe_ask(const char *address, int timeout_ms)
{
	int			until = now_ms() + timeout_ms;
	int			fd = zkl_dial(address);
	unsigned char answer[2];
	ssize_t		n = 0;

	if (fd < 0)
		return false;
	if (wait_for(fd, POLLOUT, until) &&
		send(fd, client_hello, sizeof(client_hello), MSG_NOSIGNAL) ==
		(ssize_t) sizeof(client_hello) &&
		wait_for(fd, POLLIN, until))
		n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
	close(fd);
	return n > 0 && zkl_tlsprobe_is_tls(answer, (size_t) n);
}
