/*
 * relay.c
 *	  Stands between the client library and the network, and speaks TLS there.
 *
 * Owns the network's socket, one end of a socketpair, and the bytes on their way.
 * Runs in zklock_session only.  Takes no lock.  It must not know ZooKeeper's
 * protocol, its client's functions, or OpenSSL, which is tls.c's.
 *
 * No distribution builds ZooKeeper's client with TLS.  But the client calls
 * connect(), and the dynamic linker finds ours first.  It keeps the client's
 * socket for itself, with the options that the client has set, connects that, and
 * puts one end of a socketpair in its place.  So the client speaks its protocol
 * to us, and has no way to the network: there is no path for plaintext.
 *
 * Both buffers have a fixed size.  A full one leaves the rest in the kernel, where
 * the sender sees that.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* dup3 */
#endif

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session/relay.h"
#include "session/tls.h"

#define BUFFER_SIZE		(16 * 1024) /* what a record of TLS holds */

typedef struct Buffer
{
	char		data[BUFFER_SIZE];
	size_t		start;
	size_t		end;
} Buffer;

static const char *server_name; /* NULL: off */
static int	client_end = -1;	/* our end of the socketpair */
static int	network = -1;
static bool ended;				/* nothing more will be moved */
static Buffer up;				/* to the server */
static Buffer down;

/* ----------
 * Connecting
 * ----------
 */

void
zkl_relay_begin(const char *name)
{
	server_name = name;
}

bool
zkl_relay_is_on(void)
{
	return server_name != NULL;
}

static void
forget_connection(void)
{
	if (client_end >= 0)
		close(client_end);
	if (network >= 0)
		close(network);
	client_end = network = -1;
	up.start = up.end = down.start = down.end = 0;
}

/* The socketpair takes the place of the client's socket, which becomes ours. */
static bool
take_place(int client_fd)
{
	int			ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
				   ends) != 0)
		return false;
	client_end = ends[0];
	network = fcntl(client_fd, F_DUPFD_CLOEXEC, 0);
	if (network < 0 || fcntl(network, F_SETFL, O_NONBLOCK) != 0 ||
		dup3(ends[1], client_fd, O_CLOEXEC) < 0)
	{
		close(ends[1]);
		return false;
	}
	close(ends[1]);
	return true;
}

static int
connect_socket(int fd, const struct sockaddr *address, socklen_t length)
{
	return (int) syscall(SYS_connect, fd, address, length);
}

/* A resolver may connect datagram sockets, or local ones. */
static bool
is_network_stream(int fd, const struct sockaddr *address)
{
	int			type = 0;
	socklen_t	length = sizeof(type);

	return address->sa_family != AF_UNIX &&
		getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 &&
		type == SOCK_STREAM;
}

/*
 * Takes the place of the C library's function, for all of this program.  What
 * the client sends at once waits in the socketpair until the server is verified.
 */
extern int	connect(int fd, const struct sockaddr *address, socklen_t length)
			__attribute__((visibility("default")));

int
connect(int fd, const struct sockaddr *address, socklen_t length)
{
	int			os_error;

	if (!zkl_relay_is_on() || !is_network_stream(fd, address))
		return connect_socket(fd, address, length);

	forget_connection();
	ended = false;
	if (take_place(fd) &&
		(connect_socket(network, address, length) == 0 ||
		 errno == EINPROGRESS))
	{
		ended = !zkl_tls_open(network, server_name);
		if (!ended)
			return 0;
	}
	os_error = errno;
	forget_connection();
	errno = os_error;
	return -1;
}

bool
zkl_relay_owns(int client_fd)
{
	int			domain = 0;
	socklen_t	length = sizeof(domain);

	return getsockopt(client_fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 &&
		domain == AF_UNIX;
}

/* ----------
 * Moving bytes
 * ----------
 */

/* The client finds out when it has read what came before. */
static void
end_connection(void)
{
	ended = true;
	shutdown(client_end, SHUT_WR);
}

static size_t
held(const Buffer *buffer)
{
	return buffer->end - buffer->start;
}

/* Notes that so many bytes were moved out of a buffer, or into an empty one. */
static void
take_out(Buffer *buffer, ssize_t n)
{
	buffer->start += (size_t) n;
}

static void
fill(Buffer *buffer, ssize_t n)
{
	buffer->start = 0;
	buffer->end = (size_t) n;
}

static void
move_up(void)
{
	for (;;)
	{
		ssize_t		n;

		if (held(&up) == 0)
		{
			n = recv(client_end, up.data, BUFFER_SIZE, 0);
			if (n <= 0)
				return;
			fill(&up, n);
		}
		n = zkl_tls_write(up.data + up.start, held(&up));
		if (n < 0)
			end_connection();
		if (n <= 0)
			return;
		take_out(&up, n);
	}
}

static void
move_down(void)
{
	for (;;)
	{
		ssize_t		n;

		if (held(&down) == 0)
		{
			n = zkl_tls_read(down.data, BUFFER_SIZE);
			if (n < 0)
				end_connection();
			if (n <= 0)
				return;
			fill(&down, n);
		}
		n = send(client_end, down.data + down.start, held(&down),
				 MSG_NOSIGNAL);
		if (n <= 0)
			return;
		take_out(&down, n);
	}
}

void
zkl_relay_move(bool reads)
{
	/* Why the server hangs up is in what it sent before. */
	if (client_end >= 0 && !ended && reads)
		move_down();
	if (client_end >= 0 && !ended)
		move_up();
}

void
zkl_relay_interest(struct pollfd *pfd, bool reads)
{
	pfd->fd = -1;
	pfd->events = 0;
	if (network < 0 || ended)
		return;
	if (!zkl_tls_is_open())
		pfd->events = zkl_tls_wants();
	else
	{
		if (held(&up) > 0)
			pfd->events |= POLLOUT;
		if (reads && held(&down) == 0)
			pfd->events |= POLLIN;
	}
	if (pfd->events != 0)
		pfd->fd = network;
}

size_t
zkl_relay_held(void)
{
	return held(&up) + held(&down);
}

int
zkl_relay_network(void)
{
	return network;
}

void
zkl_relay_cork(int on)
{
	if (network >= 0)
		setsockopt(network, IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
}

bool
zkl_relay_is_accepted(void)
{
	struct sockaddr_storage peer;
	socklen_t	length = sizeof(peer);

	return network >= 0 &&
		getpeername(network, (struct sockaddr *) &peer, &length) == 0;
}

const char *
zkl_relay_error(void)
{
	return ended ? zkl_tls_error() : NULL;
}
