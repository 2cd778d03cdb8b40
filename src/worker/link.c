/*
 * link.c
 *	  The worker's end of the link to the session process, and that process's
 *	  program.
 *
 * Owns the program's descriptor, the socket, the process, and the wait event set.  Runs
 * in the worker, but the postmaster opens the program; takes no locks.  It must not
 * know ZooKeeper, of messages only their framing, nor what the program does.
 *
 * An upgrade of the package replaces the files of library and program at once.  A
 * server that runs goes on with the library that it has mapped, so it has to go
 * on with the program of that library, too: worker and program speak a protocol
 * of their own.  So the postmaster opens the program when it loads the library,
 * and each worker starts it from this descriptor.  That works also when the file
 * was deleted.
 *
 * The process is a child of the worker, in the worker's process group, so the
 * postmaster's signals to the worker reach it as well.  It ignores those that
 * leave the worker time; only the worker ends it.  The worker learns of its end
 * from the end of the link, not from SIGCHLD.
 */
#include "postgres.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "miscadmin.h"
#include "shared/compat.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "wire/wire.h"
#include "worker/link.h"

/* ---- the program ---- */

#define SESSION_PROGRAM		"zklock_session"

#define PROGRAM_PATH		"/proc/self/fd/4"

/* So that no file action hits the descriptor of the program before it is used */
#define LEAST_FD			10

/* Asked in two steps, because other C libraries do not have the macro. */
#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 34)
#define HAVE_CLOSEFROM_ACTION
#endif
#endif

extern char **environ;

static int	program_fd = -1;

/* The program is in the directory that this library was loaded from. */
static void
find_path(char *path)
{
	Dl_info		info;
	char	   *slash;

	if (dladdr((void *) zkl_link_open_program, &info) == 0 || info.dli_fname == NULL)
		strlcpy(path, pkglib_path, MAXPGPATH);
	else
	{
		strlcpy(path, info.dli_fname, MAXPGPATH);
		slash = strrchr(path, '/');
		if (slash != NULL)
			*slash = '\0';
	}
	strlcat(path, "/" SESSION_PROGRAM, MAXPGPATH);
}

void
zkl_link_open_program(void)
{
	char		path[MAXPGPATH];
	int			fd;

	find_path(path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
	{
		program_fd = fcntl(fd, F_DUPFD_CLOEXEC, LEAST_FD);
		close(fd);
	}
	if (program_fd < 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not open file \"%s\": %m", path),
				 errdetail("zklock connects to ZooKeeper with this program.  It must be in the same directory as the zklock library.")));
}

/*
 * The child inherits nothing but the link, stderr and the program: a plain fork
 * would pass on the postmaster's descriptors, and the worker's signal handling.
 */
static int
spawn(int link, pid_t *pid)
{
	char	   *argv[] = {SESSION_PROGRAM, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t	signals;
	int			rc;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, link, ZKL_WIRE_LINK_FD);
	posix_spawn_file_actions_adddup2(&files, program_fd, ZKL_WIRE_PROGRAM_FD);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
#ifdef HAVE_CLOSEFROM_ACTION
	posix_spawn_file_actions_addclosefrom_np(&files, ZKL_WIRE_PROGRAM_FD + 1);
#else
	for (int other = ZKL_WIRE_PROGRAM_FD + 1; other < 1024; other++)
		posix_spawn_file_actions_addclose(&files, other);
#endif
	posix_spawnattr_init(&attributes);
	sigemptyset(&signals);
	posix_spawnattr_setsigmask(&attributes, &signals);
	sigfillset(&signals);
	posix_spawnattr_setsigdefault(&attributes, &signals);
	posix_spawnattr_setflags(&attributes,
							 POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	rc = posix_spawn(pid, PROGRAM_PATH, &files, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	return rc;
}

int
zkl_link_spawn_program(int *link, pid_t *pid)
{
	int			fds[2];
	int			rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		return errno;
	rc = pg_set_noblock(fds[0]) ? spawn(fds[1], pid) : errno;
	close(fds[1]);
	if (rc == 0)
		*link = fds[0];
	else
		close(fds[0]);
	return rc;
}

/*
 * Compared is the file itself: its path may lead to another one by now, or
 * nowhere, and the pid may be that of a later process.
 */
static bool
is_program_of(int pid)
{
	char		path[64];
	struct stat program;
	struct stat run;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return fstat(program_fd, &program) == 0 && stat(path, &run) == 0 &&
		program.st_dev == run.st_dev && program.st_ino == run.st_ino;
}

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
zkl_link_spawn(void)
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

	for (waited = 0; waited < ORPHAN_WAIT_MS && is_program_of(pid);
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
