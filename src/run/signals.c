/*
 * signals.c
 *	  The signals that zklock-run takes, and those that it leaves alone.
 *
 * Owns what this process does about signals, and what it was given.
 *
 * The program gets the signals that zklock-run was given to ignore, and its mask.  Two
 * are different in zklock-run itself: ended children have to be waited for, and
 * nobody who stops reading what it says may end it.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "run/options.h"
#include "run/signals.h"

#ifndef SI_KERNEL
#define SI_KERNEL	0x80
#endif

static int	taken = -1;			/* of signalfd() */
static sigset_t given_mask;
static struct sigaction given_pipe;
static bool interrupted = false;	/* at the terminal */
static bool end_told = false;

static bool
is_ignored(int signo)
{
	struct sigaction action;

	return sigaction(signo, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/* These signals wait to be read from now on, and no others. */
static void
take(const sigset_t *set)
{
	taken = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (taken < 0)
	{
		zkl_options_say("could not take signals: %s", strerror(errno));
		exit(EXIT_FAILURE);
	}
}

void
zkl_signals_begin(void)
{
	static const int wanted[] = {
		SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU
	};
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t	set;
	size_t		i;

	(void) sigaction(SIGCHLD, &action, NULL);
	action.sa_handler = SIG_IGN;
	(void) sigaction(SIGPIPE, &action, &given_pipe);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
	{
		/* signalfd() would show an ignored one that is blocked. */
		if (!is_ignored(wanted[i]))
			sigaddset(&set, wanted[i]);
	}
	sigprocmask(SIG_BLOCK, &set, &given_mask);
	take(&set);
}

int
zkl_signals_fd(void)
{
	return taken;
}

int
zkl_signals_next(bool *by_terminal)
{
	struct signalfd_siginfo info;

	if (read(taken, &info, sizeof(info)) != sizeof(info))
		return 0;
	*by_terminal = info.ssi_code == SI_KERNEL;
	interrupted |= *by_terminal && info.ssi_signo == SIGINT;

	/* SIGHUP by a process may mean to read a configuration again. */
	end_told |= info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT ||
		info.ssi_signo == SIGQUIT || (info.ssi_signo == SIGHUP && *by_terminal);
	return (int) info.ssi_signo;
}

bool
zkl_signals_is_end_told(void)
{
	return end_told;
}

bool
zkl_signals_is_stop(int signo)
{
	return signo == SIGTSTP || signo == SIGTTIN || signo == SIGTTOU;
}

void
zkl_signals_obey(int signo)
{
	sigset_t	set;

	sigemptyset(&set);
	sigaddset(&set, signo);
	raise(signo);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

/*
 * A shell that runs a script, and that was interrupted as well, ends only if that has
 * ended zklock-run.
 */
void
zkl_signals_exit(int status)
{
	if (interrupted && status == 128 + SIGINT)
		zkl_signals_obey(SIGINT);
	exit(status);
}

void
zkl_signals_restore(void)
{
	(void) sigaction(SIGPIPE, &given_pipe, NULL);
	sigprocmask(SIG_SETMASK, &given_mask, NULL);
}

void
zkl_signals_take_children_only(void)
{
	sigset_t	set;

	sigfillset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	take(&set);
}
