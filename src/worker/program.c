/*
 * program.c
 *	  The program of the session process.
 *
 * Owns its descriptor.  The postmaster opens it, the worker uses it; takes no
 * locks.  It must not know what the program does.
 *
 * An upgrade of the package replaces the files of library and program at once.  A
 * server that runs goes on with the library that it has mapped, so it has to go
 * on with the program of that library, too: worker and program speak a protocol
 * of their own.  So the postmaster opens the program when it loads the library,
 * and each worker starts it from this descriptor.  That works also when the file
 * was deleted.
 */
#include "postgres.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "miscadmin.h"
#include "wire/wire.h"
#include "worker/program.h"

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

	if (dladdr((void *) zkl_program_open, &info) == 0 || info.dli_fname == NULL)
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
zkl_program_open(void)
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
zkl_program_spawn(int *link, pid_t *pid)
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
bool
zkl_program_is_run_by(int pid)
{
	char		path[64];
	struct stat program;
	struct stat run;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return fstat(program_fd, &program) == 0 && stat(path, &run) == 0 &&
		program.st_dev == run.st_dev && program.st_ino == run.st_ino;
}
