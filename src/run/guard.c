/*
 * guard.c
 *	  The program that runs under the lock, and what ends it in time.
 *
 * Owns the deadlines, in memory that zklock-run shares with its guard, and the process
 * group of the program.
 *
 * The guard is a process that does nothing but wait for the deadlines.  zklock-run
 * moves them each time it has renewed the lock.  If zklock-run is stopped or killed, no
 * deadline moves any more, and the guard ends the program: at the deadlines, or at once
 * when zklock-run is gone, as the pipe between them tells.  If the guard is stopped,
 * zklock-run sends the same signals.  PR_SET_PDEATHSIG ends the program itself if both
 * are killed.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* pipe2 */
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/clock.h"
#include "run/guard.h"
#include "run/options.h"

typedef struct Shared
{
	_Atomic int64_t term;
	_Atomic int64_t kill;
	_Atomic bool termed;
	_Atomic bool killed;
	_Atomic pid_t group;		/* 0: not yet started */
} Shared;

static Shared *shared = NULL;
static int	guarded[2];			/* closed at the end of zklock-run */
static pid_t guard = 0;

static void fail_for_errno(const char *what) __attribute__((noreturn));

static void
fail_for_errno(const char *what)
{
	zkl_options_say("could not %s: %s", what, strerror(errno));
	exit(EXIT_FAILURE);
}

void
zkl_guard_set_deadlines(int64_t term, int64_t kill)
{
	if (shared == NULL)
	{
		shared = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (shared == MAP_FAILED)
			fail_for_errno("share memory");
	}
	atomic_store(&shared->term, term);
	atomic_store(&shared->kill, kill);
}

void
zkl_guard_signal(int signo)
{
	pid_t		group = shared == NULL ? 0 : atomic_load(&shared->group);

	if (group > 0)
		kill(-group, signo);
}

int64_t
zkl_guard_enforce(void)
{
	int64_t		now = zkl_clock_ms();
	bool		kills = now >= atomic_load(&shared->kill);

	if (kills)
	{
		atomic_store(&shared->killed, true);
		zkl_guard_signal(SIGKILL);
		return now + 100;
	}
	if (now < atomic_load(&shared->term))
		return atomic_load(&shared->term);
	if (!atomic_exchange(&shared->termed, true))
	{
		zkl_guard_signal(SIGTERM);
		zkl_guard_signal(SIGCONT);
	}
	return atomic_load(&shared->kill);
}

bool
zkl_guard_has_ended(void)
{
	return atomic_load(&shared->termed) || atomic_load(&shared->killed);
}

/* ---- the guard ---- */

#define LOOK_MS		1000		/* the deadlines may have come nearer */

static void be_guard(void) __attribute__((noreturn));

static void
be_guard(void)
{
	struct pollfd end = {.fd = guarded[0],.events = POLLIN};
	char		word;

	setsid();
	close(guarded[1]);
	for (;;)
	{
		int64_t		left = zkl_guard_enforce() - zkl_clock_ms();

		if (left > LOOK_MS)
			left = LOOK_MS;
		if (poll(&end, 1, left < 1 ? 1 : (int) left) <= 0)
			continue;

		/* A word tells that all is well; else zklock-run is gone. */
		if (read(guarded[0], &word, 1) != 1)
			zkl_guard_signal(SIGKILL);
		_exit(0);
	}
}

/* No terminal's signals, and nothing of the connection */
static void
start_guard(void)
{
	if (pipe2(guarded, O_CLOEXEC) != 0)
		fail_for_errno("make a pipe");
	guard = fork();
	if (guard < 0)
		fail_for_errno("start the guard");
	if (guard == 0)
		be_guard();
	close(guarded[0]);
}

/* ---- the program ---- */

/* In the child.  An error is written to "failed", which exec closes. */
static void become_program(char **program, pid_t parent, int failed) __attribute__((noreturn));

static void
become_program(char **program, pid_t parent, int failed)
{
	sigset_t	none;
	int			error;

	setpgid(0, 0);
	atomic_store(&shared->group, getpid());
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);	/* zklock-run is gone already */
	execvp(program[0], program);
	error = errno;
	if (write(failed, &error, sizeof(error)) != sizeof(error))
		_exit(EXIT_FAILURE);
	_exit(ZKL_RUN_NOT_EXECUTABLE);
}

pid_t
zkl_guard_start(char **program, const char *lock, const char *token)
{
	pid_t		parent = getpid();
	pid_t		pid;
	int			failed[2];
	int			error;

	setenv("ZKLOCK_NAME", lock, 1);
	setenv("ZKLOCK_TOKEN", token, 1);
	start_guard();
	if (pipe2(failed, O_CLOEXEC) != 0)
		fail_for_errno("make a pipe");
	pid = fork();
	if (pid < 0)
		fail_for_errno("start the program");
	if (pid == 0)
	{
		close(guarded[1]);
		become_program(program, parent, failed[1]);
	}
	setpgid(pid, pid);
	atomic_store(&shared->group, pid);
	close(failed[1]);
	if (read(failed[0], &error, sizeof(error)) == sizeof(error))
	{
		zkl_options_say("could not run \"%s\": %s", program[0], strerror(error));
		waitpid(pid, NULL, 0);
		atomic_store(&shared->group, 0);
		return error == ENOENT ? -ZKL_RUN_NOT_FOUND : -ZKL_RUN_NOT_EXECUTABLE;
	}
	close(failed[0]);
	return pid;
}

void
zkl_guard_finish(void)
{
	if (zkl_guard_has_ended())
		zkl_guard_signal(SIGKILL);
	atomic_store(&shared->group, 0);
	if (write(guarded[1], "", 1) != 1)
		kill(guard, SIGKILL);
	waitpid(guard, NULL, 0);
}
