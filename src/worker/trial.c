/*
 * trial.c
 *	  Tries new settings of the connection beside the present one.
 *
 * Owns the process that tries them.  Runs in the worker only; takes no locks.  It must
 * not know what the present connection does, nor when the settings are taken over.
 *
 * To try settings is to begin a ZooKeeper session with them, to look whether the
 * chroot exists and whether znodes like this server's may be deleted below the root,
 * and to close that session.  Nothing less shows that a host is found, is trusted,
 * takes the credentials, and has a quorum.  One host that works is enough.  If none
 * does, all are tried again after a while: perhaps a host is not up yet, or a file
 * is being written.
 */
#include "postgres.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/boottime.h"
#include "shared/settings.h"
#include "shared/status.h"
#include "utils/memutils.h"
#include "wire/wire.h"
#include "worker/closing.h"
#include "worker/diagnosis.h"
#include "worker/launch.h"
#include "worker/link.h"
#include "worker/tracefile.h"
#include "worker/trial.h"

#define PAUSE			10000000
#define READ_SIZE		(16 * 1024)
#define WRITE_PAUSE		10000	/* for a process that does not read yet */

typedef enum
{
	IDLE,
	PAUSING,
	LOOKING,					/* waits for the chroot */
	DELETING,					/* waits for the delete of a znode that never
								 * was */
	CLOSING
} TrialPhase;

static TrialPhase phase = IDLE;
static int64 due = 0;			/* the end of the phase */
static int	host_number = 0;
static char host[ZKL_MAX_HOST];
static ZklWireStep step;		/* how far the attempt at it has come */
static pid_t pid = 0;
static pgsocket link_socket = PGINVALID_SOCKET;
static ZklWireBuffer input;
static ZklWireBuffer output;
static bool works;				/* CLOSING: the host has shown all that it
								 * must */
static ZklConnectSettings *tried = NULL;	/* in this round, or the last one */
static ZklTrialResult result;	/* of this tick */
static char *fault = NULL;		/* of the last round, in TopMemoryContext */
static bool is_news;			/* and of no round before */
static char *host_fault = NULL; /* of the first host of this round, likewise */

static void
set_fault(char **where, const char *text)
{
	if (*where != NULL)
		pfree(*where);
	*where = text != NULL ? MemoryContextStrdup(TopMemoryContext, text) : NULL;
}

static void
stop_program(void)
{
	if (link_socket != PGINVALID_SOCKET)
	{
		zkl_link_watch_too(ZKL_LINK_TRIAL, PGINVALID_SOCKET);
		close(link_socket);
	}
	link_socket = PGINVALID_SOCKET;
	if (pid != 0)
	{
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	pid = 0;
	zkl_wire_buffer_free(&input);
	zkl_wire_buffer_free(&output);
}

static void
forget_tried(void)
{
	if (tried != NULL)
		zkl_connect_settings_free(tried);
	tried = NULL;
}

void
zkl_trial_end(void)
{
	stop_program();
	forget_tried();
	phase = IDLE;
	set_fault(&fault, NULL);
	set_fault(&host_fault, NULL);
}

void
zkl_trial_begin(void)
{
	zkl_trial_end();
	phase = PAUSING;
	due = 0;
}

/* The last round's fault stays: so it is not told again. */
void
zkl_trial_put_off(void)
{
	if (phase == IDLE)
		return;
	stop_program();
	set_fault(&host_fault, NULL);
	phase = PAUSING;
	due = 0;
}

bool
zkl_trial_is_pending(void)
{
	return phase != IDLE;
}

const char *
zkl_trial_fault(void)
{
	return fault;
}

bool
zkl_trial_fault_is_news(void)
{
	return is_news;
}

const ZklConnectSettings *
zkl_trial_settings(void)
{
	return tried;
}

ZklConnectSettings *
zkl_trial_take_settings(void)
{
	ZklConnectSettings *taken = tried;

	tried = NULL;
	return taken;
}

static void
end_round(int64 now)
{
	is_news = fault == NULL || strcmp(fault, host_fault) != 0;
	set_fault(&fault, host_fault);
	set_fault(&host_fault, NULL);
	phase = PAUSING;
	due = now + PAUSE;
	result = ZKL_TRIAL_FAILED;
}

/* Returns what is wrong, or NULL. */
static const char *
start_program(void)
{
	int			rc;

	(void) zkl_launch_put_start(&output, 1, host, tried, false);
	rc = zkl_link_spawn_program(&link_socket, &pid);
	if (rc != 0)
		return psprintf("could not start zklock_session: %s", strerror(rc));
	zkl_link_watch_too(ZKL_LINK_TRIAL, link_socket);
	return NULL;
}

/* Goes on with the next host after one has failed, or with the first. */
static void
try_host(int64 now, const char *last_fault)
{
	for (;;)
	{
		const char *next = zkl_hosts_nth(tried->connect_string, host_number);

		stop_program();
		if (last_fault != NULL && host_fault == NULL)
			set_fault(&host_fault, last_fault);
		if (next == NULL)
		{
			end_round(now);
			return;
		}
		host_number++;
		strlcpy(host, next, sizeof(host));
		step = ZKL_WIRE_STEP_NONE;
		phase = LOOKING;
		due = now + ZKL_HOST_TRIAL_MS * INT64CONST(1000);
		last_fault = start_program();
		if (last_fault == NULL)
			return;
	}
}

static void
begin_round(int64 now)
{
	forget_tried();
	tried = zkl_connect_settings_read();
	host_number = 0;
	if (tried->fault == NULL)
		try_host(now, NULL);
	else
	{
		set_fault(&host_fault, tried->fault);
		end_round(now);
	}
}

static void
send_request(ZklSendKind kind, const char *path)
{
	size_t		frame = zkl_wire_begin(&output, ZKL_WIRE_SEND, 1, 1, 0);

	zkl_wire_put_u8(&output, (uint8) kind);
	zkl_wire_put_text(&output, path);
	zkl_wire_put_u8(&output, 0);
	zkl_wire_end(&output, frame);
}

static void
close_session(int64 now, int32 rc)
{
	if (!works && host_fault == NULL)
		set_fault(&host_fault, zkl_diagnosis_of(rc, host));
	zkl_wire_end(&output, zkl_wire_begin(&output, ZKL_WIRE_CLOSE, 1, 0, 0));
	phase = CLOSING;
	due = now + ZKL_CLOSING_TIME;
}

/*
 * Without the right to look at it, the chroot exists, too.  From version 3.6 on,
 * ZooKeeper asks for the right to delete before it looks for the znode
 * (PrepRequestProcessor.java).  Where there is no directory yet, this shows nothing.
 */
static void
take_sight(int64 now, int32 rc)
{
	if (phase == LOOKING && (rc == ZKL_RC_OK || rc == ZKL_RC_NOAUTH))
	{
		phase = DELETING;
		send_request(ZKL_SEND_DELETE, psprintf("%s/.servers/0", zkl_root));
		return;
	}
	works = phase == DELETING && (rc == ZKL_RC_OK || rc == ZKL_RC_NONODE);
	close_session(now, rc);
}

static void
take_end(int64 now, const char *why)
{
	if (phase != CLOSING || !works)
	{
		try_host(now, why);
		return;
	}
	stop_program();
	phase = IDLE;
	result = ZKL_TRIAL_WORKS;
}

static void
take_farewell(int64 now, ZklWireReader *body)
{
	ZklWireGone reason = (ZklWireGone) zkl_wire_get_u8(body);

	take_end(now, zkl_diagnosis_of_gone(reason, body));
}

static void
take_frames(int64 now)
{
	ZklWireHeader header;
	ZklWireReader body;
	int			got;

	while ((got = zkl_wire_peek(&input, &header, &body)) > 0)
	{
		switch (header.type)
		{
			case ZKL_WIRE_STEP:
				step = (ZklWireStep) zkl_wire_get_u8(&body);
				break;
			case ZKL_WIRE_CONNECTED:
				send_request(ZKL_SEND_GET, "/");
				break;
			case ZKL_WIRE_REPLY:
				take_sight(now, header.rc);
				break;
			case ZKL_WIRE_GONE:
				take_farewell(now, &body);
				return;
			case ZKL_WIRE_LOG:
				zkl_tracefile_take_log(&body);
				break;
			default:
				break;
		}
		zkl_wire_consume(&input, sizeof(header) + header.length);
	}
	if (got < 0)
		take_end(now, "malformed frame from zklock_session");
}

/* Writes and reads what is possible.  False: the process is gone. */
static bool
exchange(void)
{
	ssize_t		n = 1;

	if (output.end > output.start)
	{
		n = send(link_socket, output.data + output.start,
				 output.end - output.start, MSG_NOSIGNAL);
		if (n > 0)
			zkl_wire_consume(&output, (size_t) n);
	}
	while (n > 0 && zkl_wire_reserve(&input, READ_SIZE))
	{
		n = recv(link_socket, input.data + input.end, READ_SIZE, 0);
		if (n > 0)
			input.end += (size_t) n;
	}
	return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

static void
attend_to_host(int64 now)
{
	int			number = host_number;
	bool		runs = exchange();

	take_frames(now);

	/* A frame may have ended this process: "runs" is not about the next. */
	if (phase == IDLE || phase == PAUSING || host_number != number)
		return;
	if (!runs)
		take_end(now, zkl_diagnosis_of_crash(step));
	else if (now >= due)
		take_end(now, zkl_diagnosis_of_late(step, host));
}

ZklTrialResult
zkl_trial_tick(int64 now)
{
	result = ZKL_TRIAL_GOES_ON;
	if (phase == PAUSING && now >= due)
		begin_round(now);
	else if (phase != IDLE && phase != PAUSING)
		attend_to_host(now);
	return result;
}

int64
zkl_trial_timer(void)
{
	if (phase == IDLE)
		return -1;
	return output.end > output.start ? zkl_boottime_us() + WRITE_PAUSE : due;
}
