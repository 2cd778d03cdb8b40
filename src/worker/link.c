/*
 * link.c
 *	  The worker's end of the link to the session process.
 *
 * Owns the socket, the process, and the wait event set.  Runs in the worker only;
 * takes no locks.  It must not know ZooKeeper, of messages only their framing,
 * and of the program only that program.c starts it.
 *
 * The process is a child of the worker, in the worker's process group, so the
 * postmaster's signals to the worker reach it as well.  It ignores those that
 * leave the worker time; only the worker ends it.  The worker learns of its end
 * from the end of the link, not from SIGCHLD.
 */
#include "postgres.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "worker/link.h"
#include "worker/program.h"

#include "shared/compat.h"

#define READ_SIZE			(64 * 1024)
#define ORPHAN_WAIT_MS		5000

static pid_t session_pid = 0;
static pgsocket link_socket = PGINVALID_SOCKET;
static ZklWireBuffer input;
static ZklWireBuffer output;
static size_t handed_out = 0;	/* bytes of the frame that next() returned */
static WaitEventSet *wait_set = NULL;
static int	socket_event = -1;
static pgsocket watched_too = PGINVALID_SOCKET;
static bool wants_write = false;
static bool readable = false;	/* perhaps; as of the last wait */

/* A wait event set cannot drop a socket, so the next wait makes a new one. */
static void
forget_wait_set(void)
{
	if (wait_set != NULL)
		FreeWaitEventSet(wait_set);
	wait_set = NULL;
}

int
zkl_link_spawn(void)
{
	int			rc;

	Assert(session_pid == 0);
	rc = zkl_program_spawn(&link_socket, &session_pid);
	if (rc != 0)
	{
		link_socket = PGINVALID_SOCKET;
		session_pid = 0;
		errno = rc;
		return 0;
	}
	forget_wait_set();
	return session_pid;
}

void
zkl_link_kill(void)
{
	forget_wait_set();
	if (link_socket != PGINVALID_SOCKET)
		close(link_socket);
	link_socket = PGINVALID_SOCKET;
	if (session_pid != 0)
	{
		kill(session_pid, SIGKILL);
		while (waitpid(session_pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	session_pid = 0;
	zkl_wire_buffer_free(&input);
	zkl_wire_buffer_free(&output);
	handed_out = 0;
}

void
zkl_link_await_orphan(int pid)
{
	int			waited;

	for (waited = 0; waited < ORPHAN_WAIT_MS && zkl_program_is_run_by(pid);
		 waited += 10)
	{
		kill(pid, SIGKILL);
		pg_usleep(10 * 1000L);
	}
}

void
zkl_link_watch_too(int other)
{
	forget_wait_set();
	watched_too = other;
}

bool
zkl_link_up(void)
{
	return link_socket != PGINVALID_SOCKET;
}

ZklWireBuffer *
zkl_link_output(void)
{
	return &output;
}

void
zkl_link_say(ZklWireType type, uint32 generation)
{
	zkl_wire_end(&output, zkl_wire_begin(&output, type, generation, 0, 0));
}

bool
zkl_link_flush(void)
{
	while (output.end > output.start)
	{
		ssize_t		n = send(link_socket, output.data + output.start,
							 output.end - output.start, MSG_NOSIGNAL);

		if (n > 0)
			zkl_wire_consume(&output, (size_t) n);
		else if (n < 0 && errno == EINTR)
			continue;
		else
			return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
	}
	return !output.failed;
}

bool
zkl_link_read(void)
{
	ssize_t		n;

	if (!readable)
		return true;
	readable = false;
	do
	{
		if (!zkl_wire_reserve(&input, READ_SIZE))
			return false;
		n = recv(link_socket, input.data + input.end, READ_SIZE, 0);
		if (n > 0)
			input.end += (size_t) n;
	} while (n == READ_SIZE || (n < 0 && errno == EINTR));
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

int
zkl_link_next(ZklWireHeader *header, ZklWireReader *body)
{
	int			got;

	zkl_wire_consume(&input, handed_out);
	handed_out = 0;
	if (input.end == input.start)
		return 0;
	got = zkl_wire_peek(&input, header, body);
	if (got > 0)
		handed_out = sizeof(*header) + header->length;
	return got;
}

static void
make_wait_set(void)
{
	wait_set = zkl_compat_create_wait_event_set(TopMemoryContext, 4);
	AddWaitEventToSet(wait_set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(wait_set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL,
					  NULL);
	if (link_socket != PGINVALID_SOCKET)
		socket_event = AddWaitEventToSet(wait_set, WL_SOCKET_READABLE,
										 link_socket, NULL, NULL);
	if (watched_too != PGINVALID_SOCKET)
		AddWaitEventToSet(wait_set, WL_SOCKET_READABLE, watched_too, NULL, NULL);
	wants_write = false;
}

void
zkl_link_wait(long timeout_ms)
{
	WaitEvent	events[3];
	int			nevents,
				i;
	bool		pending = output.end > output.start;

	if (wait_set == NULL)
		make_wait_set();
	if (link_socket != PGINVALID_SOCKET && pending != wants_write)
	{
		ModifyWaitEvent(wait_set, socket_event, WL_SOCKET_READABLE |
						(pending ? WL_SOCKET_WRITEABLE : 0), NULL);
		wants_write = pending;
	}
	nevents = WaitEventSetWait(wait_set, timeout_ms, events,
							   lengthof(events), zkl_compat_wait_event(ZKL_EVENT_WORKER));
	for (i = 0; i < nevents; i++)
		readable |= events[i].fd == link_socket &&
			(events[i].events & WL_SOCKET_READABLE) != 0;

	/*
	 * If the latch was set before, PostgreSQL 15 does not look at the socket
	 * at all; and backends may set the latch again and again.
	 */
	readable |= nevents == 1 && events[0].events == WL_LATCH_SET;
}
