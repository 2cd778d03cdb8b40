/*
 * srvr.c
 *	  Asks a ZooKeeper server for its version.
 *
 * Owns the socket for that.  Runs in zklock_session only.  Takes no lock.  It must
 * not know what the version is for.
 *
 * ZooKeeper's protocol does not tell the version.  The four letters "srvr", sent in
 * place of a handshake, make a server answer in words and close the connection, if
 * its 4lw.commands.whitelist has them, as by default.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "session/dial.h"
#include "session/srvr.h"

#define QUESTION	"srvr"
#define MARK		"Zookeeper version: "
#define VERSION		"0123456789."

static int	asking = -1;
static bool asked;				/* the question was sent */
static char answer[256];
static size_t length;

static void
hang_up(void)
{
	close(asking);
	asking = -1;
}

void
zkl_srvr_begin(const char *address)
{
	if (asking >= 0)
		return;
	asking = zkl_dial(address);
	asked = false;
	length = 0;
}

void
zkl_srvr_interest(struct pollfd *pfd)
{
	pfd->fd = asking;
	pfd->events = asked ? POLLIN : POLLOUT;
}

/*
 * "Zookeeper version: 3.8.0-<commit>, built on ...".  Whatever answers on the port,
 * nothing but a number gets into the log.
 */
static const char *
version_of(void)
{
	char	   *version = strstr(answer, MARK);

	if (version == NULL)
		return NULL;
	version += strlen(MARK);
	if (version[strspn(version, VERSION)] == '\0')
		return NULL;
	version[strspn(version, VERSION)] = '\0';
	return version;
}

static const char *
read_answer(void)
{
	size_t		room = sizeof(answer) - 1 - length;
	ssize_t		n = recv(asking, answer + length, room, MSG_DONTWAIT);
	const char *version;

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return NULL;
	length += n > 0 ? (size_t) n : 0;
	answer[length] = '\0';
	version = version_of();
	if (version != NULL || n <= 0 || length == sizeof(answer) - 1)
		hang_up();
	return version;
}

const char *
zkl_srvr_process(const struct pollfd *pfd)
{
	if (asking < 0 || pfd->revents == 0)
		return NULL;
	if (asked)
		return read_answer();
	asked = send(asking, QUESTION, strlen(QUESTION), MSG_NOSIGNAL) > 0;
	if (!asked)
		hang_up();
	return NULL;
}
