/*
 * link.c
 *	  The session process: how it is started, and the worker's end of the link to
 *	  it.
 *
 * Owns the socket, the process, and the wait event set.  Runs in the worker only;
 * takes no locks but through identity.c.  It must not know ZooKeeper, of messages
 * only their framing, nor what the program does, nor when one is to be started.
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
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/program.h"
#include "shared/settings.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "wire/version.h"
#include "worker/identity.h"
#include "worker/link.h"

/* ---- the link ---- */

#define READ_SIZE			(64 * 1024)
#define ORPHAN_WAIT_MS		5000

static pid_t session_pid = 0;
static pgsocket link_socket = PGINVALID_SOCKET;
static ZklWireBuffer input;
static ZklWireBuffer output;
static size_t handed_out = 0;	/* bytes of the frame that next() returned */
static WaitEventSet *wait_set = NULL;
static int	socket_event = -1;
static pgsocket guests[ZKL_LINK_GUESTS] = {PGINVALID_SOCKET, PGINVALID_SOCKET};
static bool guest_readable[ZKL_LINK_GUESTS];	/* perhaps; as of the last
												 * wait */
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
zkl_link_spawn_program(int *link, pid_t *pid)
{
	int			fds[2];
	int			rc;

	StaticAssertStmt(ZKL_PROGRAM_FD == ZKL_WIRE_PROGRAM_FD,
					 "the program closes the descriptor that it was started from");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		return errno;
	rc = pg_set_noblock(fds[0]) ?
		zkl_program_spawn(NULL, fds[1], ZKL_WIRE_LINK_FD, pid) : errno;
	close(fds[1]);
	if (rc == 0)
		*link = fds[0];
	else
		close(fds[0]);
	return rc;
}

/* Starts a session process.  Returns its pid, or 0 with errno set. */
static int
link_spawn(void)
{
	int			rc;

	Assert(session_pid == 0);
	rc = zkl_link_spawn_program(&link_socket, &session_pid);
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

	for (waited = 0; waited < ORPHAN_WAIT_MS && zkl_program_is_of(pid);
		 waited += 10)
	{
		kill(pid, SIGKILL);
		pg_usleep(10 * 1000L);
	}
}

void
zkl_link_watch_too(ZklLinkGuest guest, int other)
{
	forget_wait_set();
	guests[guest] = other;
	guest_readable[guest] = other != PGINVALID_SOCKET;
}

bool
zkl_link_may_read(ZklLinkGuest guest)
{
	return guest_readable[guest];
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
	int			i;

	wait_set = zkl_compat_create_wait_event_set(TopMemoryContext, 3 + ZKL_LINK_GUESTS);
	AddWaitEventToSet(wait_set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(wait_set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL,
					  NULL);
	if (link_socket != PGINVALID_SOCKET)
		socket_event = AddWaitEventToSet(wait_set, WL_SOCKET_READABLE,
										 link_socket, NULL, &readable);
	for (i = 0; i < ZKL_LINK_GUESTS; i++)
	{
		if (guests[i] != PGINVALID_SOCKET)
			AddWaitEventToSet(wait_set, WL_SOCKET_READABLE, guests[i], NULL,
							  &guest_readable[i]);
	}
	wants_write = false;
}

void
zkl_link_wait(long timeout_ms)
{
	WaitEvent	events[2 + ZKL_LINK_GUESTS];
	int			nevents,
				i;
	bool		pending = output.end > output.start;
	bool		unsure;

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

	/*
	 * If the latch was set before, PostgreSQL 15 does not look at the sockets
	 * at all; and backends may set the latch again and again.  Nor does any
	 * look if the time was over when a signal ended the wait, as after a
	 * stop: then an answer must not be taken for missing.
	 */
	unsure = nevents == 0 ||
		(nevents == 1 && events[0].events == WL_LATCH_SET);
	readable |= unsure;
	memset(guest_readable, unsure, sizeof(guest_readable));
	for (i = 0; i < nevents; i++)
	{
		if ((events[i].events & WL_SOCKET_READABLE) != 0)
			*(bool *) events[i].user_data = true;
	}
}

/* ---- launch ---- */

/*
 * Starts a session process, and tells it to what to connect, as whom, and whom to
 * trust.
 *
 * Runs in the worker only; takes no locks but through identity.c.  It must not know
 * when a process is to be started, nor what becomes of it; nor TLS, nor what
 * ZooKeeper makes of credentials.
 */

/* ---- what a CONNECTED frame says of TLS ---- */

static void
get_text(ZklWireReader *body, char *text, size_t size)
{
	uint32_t	length;
	const char *bytes = zkl_wire_get_string(body, &length);

	strlcpy(text, pnstrdup(bytes, length), size);
}

/* 0: there is none.  PostgreSQL's timestamps go beyond all that certificates say. */
static TimestampTz
get_time(ZklWireReader *body)
{
	int64		seconds = zkl_wire_get_i64(body);

	return seconds == 0 || body->bad ? 0 :
		time_t_to_timestamptz((pg_time_t) seconds);
}

void
zkl_launch_get_tls(ZklWireReader *body, ZklTlsStatus *tls)
{
	get_text(body, tls->version, sizeof(tls->version));
	get_text(body, tls->cipher, sizeof(tls->cipher));
	tls->certificate_until = get_time(body);
	tls->ca_until = get_time(body);
	tls->server_until = get_time(body);
}

/* ---- a START frame ---- */

static void
put_credentials(const ZklCredentials *credentials, ZklWireBuffer *out)
{
	ListCell   *cell;

	zkl_wire_put_u32(out, (uint32) list_length(credentials->lines));
	foreach(cell, credentials->lines)
	{
		const char *line = lfirst(cell);
		const char *colon = strchr(line, ':');

		zkl_wire_put_string(out, line, (size_t) (colon - line));
		zkl_wire_put_text(out, colon + 1);
	}
	zkl_wire_put_u8(out, credentials->is_private);
}

static void
put_trust(const ZklConnectSettings *settings, ZklWireBuffer *out)
{
	zkl_wire_put_u8(out, settings->tls.mode);
	zkl_wire_put_text(out, settings->ca.data);
	zkl_wire_put_text(out, settings->certificate.data);
	zkl_wire_put_text(out, settings->key.data);
}

int
zkl_launch_put_start(ZklWireBuffer *out, uint32 connection, const char *host,
					 const ZklConnectSettings *settings, bool attach)
{
	const ZklStatus *status = &zkl_control->ctl_status;
	size_t		frame = zkl_wire_begin(out, ZKL_WIRE_START, connection, 0, 0);
	int			asked_ms = attach && status->timeout_ms != 0 ?
	(int) status->timeout_ms : zkl_session_timeout;

	zkl_wire_put_u32(out, ZKL_LINK_PROTOCOL);
	zkl_wire_put_text(out, host);
	zkl_wire_put_i64(out, attach ? status->session_id : 0);
	zkl_wire_put_string(out, zkl_identity_password(), attach ? ZKL_PASSWORD_BYTES : 0);
	zkl_wire_put_u32(out, (uint32) asked_ms);
	put_credentials(&settings->credentials, out);
	zkl_wire_put_u8(out, zkl_trace);
	put_trust(settings, out);
	zkl_wire_end(out, frame);
	return asked_ms;
}

/* ---- the process ---- */

bool
zkl_launch_begin(uint32 connection, const ZklConnectSettings *settings,
				 char *host, int *asked_ms)
{
	int			pid;

	strlcpy(host, zkl_hosts_next(), ZKL_MAX_HOST);
	*asked_ms = zkl_launch_put_start(zkl_link_output(), connection, host, settings,
									 zkl_control->ctl_status.session_id != 0);
	pid = link_spawn();
	if (pid == 0)
	{
		zkl_identity_note_error(ZKL_ABOUT_PROCESS, psprintf("could not start zklock_session: %s",
															strerror(errno)));
		zkl_link_kill();
		return false;
	}
	zkl_identity_process_started(pid);
	return true;
}
