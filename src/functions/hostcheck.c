/*
 * hostcheck.c
 *	  Which of the ZooKeeper servers in "zklock.connect_string" are there.
 *
 * Owns the processes that look at them.  Run by backends.  Takes no locks.
 *
 * Must not know how a connection is made, nor which host this server is connected to.
 *
 * A backend cannot ask for a name without waiting for the answer, which may take long
 * and cannot be cancelled.  So a zklock_session does that for each host (session/host_look.c),
 * and is ended when its time is over.
 */
#include "postgres.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/refusal.h"
#include "backend/target.h"
#include "functions/hostcheck.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/program.h"
#include "shared/settings.h"
#include "storage/fd.h"
#include "wire/look_answer.h"

#define MOST_MS		2000		/* for a host's answer */
#define OUTAGE_MS	500			/* the same without a connection */
#define POLL_MS		100			/* between looks for a cancel */

typedef struct
{
	char	   *name;
	pid_t		pid;			/* 0: none was started */
	int			link;			/* -1: it has ended */
	StringInfoData said;
} Host;

struct ZklHostCheck
{
	int64		begun;			/* in µs of boottime.h */
	int			n;
	Host	   *hosts;
};

static void
start_look(Host *host)
{
	char	   *arguments[] = {host->name,
	zkl_settings_tls().mode == ZKL_TLS_OFF ? ZKL_LOOK_PLAIN : ZKL_LOOK_TLS, NULL};
	int			fds[2];
	int			rc;

	ReserveExternalFD();
	host->link = -1;
	initStringInfo(&host->said);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		rc = errno;
	else
	{
		rc = zkl_program_spawn(arguments, fds[1], ZKL_LOOK_FD, &host->pid);
		close(fds[1]);
		host->link = fds[0];
	}
	if (rc != 0)
	{
		host->pid = 0;
		appendStringInfo(&host->said, "%czklock_session could not be started: %s",
						 ZKL_LOOK_BAD, strerror(rc));
	}
}

ZklHostCheck *
zkl_hostcheck_make(void)
{
	ZklHostCheck *check = palloc0(sizeof(ZklHostCheck));

	while (zkl_hosts_nth(zkl_connect_string, check->n) != NULL)
		check->n++;
	check->hosts = palloc0((check->n + 1) * sizeof(Host));
	for (int i = 0; i < check->n; i++)
		check->hosts[i].name = zkl_hosts_nth(zkl_connect_string, i);
	return check;
}

void
zkl_hostcheck_begin(ZklHostCheck *check)
{
	check->begun = zkl_boottime_us();
	for (int i = 0; i < check->n; i++)
		start_look(&check->hosts[i]);
}

static void
close_link(Host *host)
{
	if (host->link >= 0)
		close(host->link);
	host->link = -1;
}

static void
listen_to(Host *host)
{
	char		bytes[512];
	ssize_t		n = recv(host->link, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n > 0)
		appendBinaryStringInfo(&host->said, bytes, (int) n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		close_link(host);
}

/* False: all have ended, or their time is over. */
static bool
listen_to_all(ZklHostCheck *check, int64 most_ms)
{
	int64		left_ms = most_ms - (zkl_boottime_us() - check->begun) / 1000;
	struct pollfd *fds = palloc0((check->n + 1) * sizeof(struct pollfd));
	int			open = 0;

	for (int i = 0; i < check->n; i++)
	{
		fds[i].fd = check->hosts[i].link;
		fds[i].events = POLLIN;
		open += fds[i].fd >= 0;
	}
	if (open > 0)
		(void) poll(fds, (nfds_t) check->n, (int) Max(Min(left_ms, POLL_MS), 0));
	for (int i = 0; i < check->n; i++)
	{
		if (fds[i].fd >= 0 && fds[i].revents != 0)
			listen_to(&check->hosts[i]);
	}
	pfree(fds);
	return open > 0 && left_ms > 0;
}

/* What is wrong, or NULL */
static const char *
fault_of(const Host *host)
{
	const char *bad = strchr(host->said.data, ZKL_LOOK_BAD);

	if (bad != NULL)
		return bad + 1;
	if (strchr(host->said.data, ZKL_LOOK_GOOD) != NULL)
		return NULL;
	if (strchr(host->said.data, ZKL_LOOK_ACCEPTED) != NULL)
		return psprintf("\"%s\" accepts connections, and does not answer", host->name);
	if (strchr(host->said.data, ZKL_LOOK_RESOLVED) != NULL)
		return psprintf("\"%s\" does not accept connections", host->name);
	if (strchr(host->said.data, ZKL_LOOK_STARTED) != NULL)
		return psprintf("\"%s\" was not resolved in time", host->name);
	return psprintf("zklock_session did not start in time to look at \"%s\"", host->name);
}

/* The names of hosts are for those who may see them. */
bool
zkl_hostcheck_finish(ZklHostCheck *check, bool connected, char **detail)
{
	StringInfoData buf;
	int			missing = 0;

	while (listen_to_all(check, connected ? MOST_MS : OUTAGE_MS))
		CHECK_FOR_INTERRUPTS();
	initStringInfo(&buf);
	for (int i = 0; i < check->n; i++)
	{
		const char *fault = fault_of(&check->hosts[i]);

		if (fault == NULL)
			continue;
		appendStringInfo(&buf, "%s%s", missing > 0 ? "; " : "  ", fault);
		missing++;
	}
	if (missing > 0)
		appendStringInfoChar(&buf, '.');
	*detail = psprintf("Servers in \"zklock.connect_string\": %d, without an answer: %d.%s",
					   check->n, missing, zkl_refusal_may_see_hosts() ?
					   zkl_text_to_display(buf.data, buf.len) : "");
	if (!connected)
		*detail = psprintf("%s  In an outage of ZooKeeper this is not judged.", *detail);
	return missing == 0;
}

void
zkl_hostcheck_end(ZklHostCheck *check)
{
	for (int i = 0; i < check->n; i++)
	{
		Host	   *host = &check->hosts[i];

		close_link(host);
		ReleaseExternalFD();
		if (host->pid == 0)
			continue;
		kill(host->pid, SIGKILL);
		while (waitpid(host->pid, NULL, 0) < 0 && errno == EINTR)
			;
		host->pid = 0;
	}
}
