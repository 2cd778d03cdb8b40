/*
 * program.c
 *	  zklock_session, the program that speaks to ZooKeeper servers, and which of
 *	  their releases are not to be relied on.
 *
 * Owns the program's descriptor, which the postmaster opens and its children inherit.
 * Run by the worker and by backends; takes no locks.  It must not know what the program
 * does.
 *
 * An upgrade of the package replaces the files of library and program at once.  A
 * server that runs goes on with the library that it has mapped, so it has to go
 * on with the program of that library, too: they speak a protocol of their own.  So
 * the postmaster opens the program when it loads the library, and it is started from
 * this descriptor.  That works also when the file was deleted.
 */
#include "postgres.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <unistd.h>

#include "miscadmin.h"
#include "shared/program.h"

#define PROGRAM				"zklock_session"
#define PROGRAM_PATH		"/proc/self/fd/4"
#define MOST_ARGUMENTS		4

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
	strlcat(path, "/" PROGRAM, MAXPGPATH);
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
 * The child inherits nothing but that descriptor, stderr and the program: a plain fork
 * would pass on the postmaster's descriptors, and our signal handling.
 */
int
zkl_program_spawn(char *const *arguments, int fd, int as, pid_t *pid)
{
	char	   *argv[1 + MOST_ARGUMENTS + 1] = {PROGRAM, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t	signals;
	int			rc;

	for (int i = 0; arguments != NULL && arguments[i] != NULL; i++)
	{
		Assert(i < MOST_ARGUMENTS);
		argv[1 + i] = arguments[i];
	}
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, fd, as);
	posix_spawn_file_actions_adddup2(&files, program_fd, ZKL_PROGRAM_FD);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
#ifdef HAVE_CLOSEFROM_ACTION
	posix_spawn_file_actions_addclosefrom_np(&files, ZKL_PROGRAM_FD + 1);
#else
	for (int other = ZKL_PROGRAM_FD + 1; other < 1024; other++)
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

/*
 * Compared is the file itself: its path may lead to another one by now, or
 * nowhere, and the pid may be that of a later process.
 */
bool
zkl_program_is_of(int pid)
{
	char		path[64];
	struct stat program;
	struct stat run;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return fstat(program_fd, &program) == 0 && stat(path, &run) == 0 &&
		program.st_dev == run.st_dev && program.st_ino == run.st_ino;
}

/* ---- release: which releases of ZooKeeper are not to be relied on ---- */

/*
 * Run by the worker and backends.  It must not know how the version was found out.
 */

/* Releases from 3.9.4 on are not known to lose writes. */
bool
zkl_release_loses_writes(const char *version)
{
	int			major,
				minor,
				patch;

	if (sscanf(version, "%d.%d.%d", &major, &minor, &patch) != 3)
		return false;
	return major < 3 || (major == 3 && (minor < 9 || (minor == 9 && patch < 4)));
}
