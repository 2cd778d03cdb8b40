/*
 * zkclose.c
 *	  Whether ZooKeeper has closed the session as it was asked to.
 *
 * Owns nothing.  Runs in zklock_session only.  Takes no lock.  It must not know
 * why the session is closed.
 *
 * The client sends the request and hangs up without waiting for the answer.  So
 * its socket is kept open under another descriptor, and read to the answer: the
 * only one that is still to come, beside those to pings and watch events, whose
 * numbers are negative.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "session/relay.h"
#include "session/zkstate.h"

#define HEADER_BYTES	20		/* length, number, transaction id, error */
#define MOST_BYTES		(16 * 1024 * 1024)

typedef struct Frames
{
	unsigned char header[HEADER_BYTES];
	int			have;			/* bytes of the header */
	int32_t		skip;			/* bytes of the body that are to come */
	bool		garbage;
} Frames;

static int32_t
get_int(const unsigned char *bytes)
{
	return (int32_t) ((uint32_t) bytes[0] << 24 | (uint32_t) bytes[1] << 16 |
					  (uint32_t) bytes[2] << 8 | bytes[3]);
}

/* Whether it completes the header of the answer */
static bool
take_byte(Frames *frames, unsigned char byte)
{
	int32_t		length;

	if (frames->skip > 0)
	{
		frames->skip--;
		return false;
	}
	frames->header[frames->have++] = byte;
	if (frames->have < HEADER_BYTES)
		return false;
	frames->have = 0;
	length = get_int(frames->header);
	frames->skip = length - (HEADER_BYTES - 4);
	frames->garbage = frames->skip < 0 || length > MOST_BYTES;
	return !frames->garbage && get_int(frames->header + 4) > 0 &&
		get_int(frames->header + HEADER_BYTES - 4) == ZOK;
}

static int64_t
clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool
zkl_zkclose_await(int fd, int timeout_ms)
{
	int64_t		until = clock_ms() + timeout_ms;
	Frames		frames;
	unsigned char bytes[4096];

	memset(&frames, 0, sizeof(frames));
	while (!frames.garbage)
	{
		struct pollfd fds[2] = {{fd, POLLIN, 0}, {-1, 0, 0}};
		int64_t		left = until - clock_ms();
		ssize_t		n;

		zkl_relay_move(true);
		zkl_relay_interest(&fds[1], true);
		if (left <= 0 || poll(fds, 2, (int) left) <= 0)
			return false;
		n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			return false;
		for (ssize_t i = 0; i < n && !frames.garbage; i++)
		{
			if (take_byte(&frames, bytes[i]))
				return true;
		}
	}
	return false;
}
