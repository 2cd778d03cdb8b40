/*
 * run.c
 *	  zklock-run: runs a program while it has a distributed lock.
 *
 * Owns the order of things, and the turn of --once.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/clock.h"
#include "run/guard.h"
#include "run/holding.h"
#include "run/options.h"
#include "run/server.h"
#include "run/signals.h"

#define LAST_WORD_MS	10000	/* for what is to be said behind the program */
#define LEFT_MS			1000	/* for what is left when the program has ended */

static ZklRunOptions options;
static char called_at[64];		/* when the run began, by ZooKeeper's clock */
static bool was_cut_short = false;	/* somebody told the program to end */

/* ---- --once ---- */

/* Whether the program is to run.  at_least_once: it is recorded when it has succeeded. */
static bool
is_due(void)
{
	const char *values[] = {options.lock, options.period, options.zone,
	options.at_least_once ? "at_least_once" : "at_most_once"};
	PGresult   *result;
	bool		due;

	if (options.period == NULL)
		return true;
	PQclear(zkl_ask_or_leave("BEGIN", 0, NULL));
	result = zkl_ask_or_leave("SELECT zk_time(), zk_once($1, $2, $3, $4)", 4, values);
	snprintf(called_at, sizeof(called_at), "%s", PQgetvalue(result, 0, 0));
	due = PQgetvalue(result, 0, 1)[0] == 't';
	PQclear(result);
	PQclear(zkl_ask_or_leave(options.at_least_once ? "ROLLBACK" : "COMMIT", 0, NULL));
	if (!due && !zkl_options_is_quiet())
		zkl_options_say("another run of \"%s\" has this period", options.lock);
	return due;
}

/*
 * Whether a run that ended with 0 counts: a program that is told to end may exit with 0
 * even if half of its work is left.
 */
static bool
does_count(void)
{
	if (options.period == NULL || !options.at_least_once || !was_cut_short)
		return true;
	zkl_options_say("\"%s\" was told to end, so its run does not count", options.program[0]);
	return false;
}

/* The run succeeded, in the period in which it began. */
static bool
record_run(int64_t until)
{
	const char *values[] = {options.lock, options.period, options.zone, called_at};
	PGresult   *result;
	bool		done;

	if (options.period == NULL || !options.at_least_once)
		return true;
	result = zkl_ask_until(until, "SELECT zk_once($1, $2, $3, 'at_least_once', $4)", 4, values);
	done = PQresultStatus(result) == PGRES_TUPLES_OK;
	if (!done)
		zkl_options_say("could not record the run of \"%s\", so it may run again: %s", options.lock,
						result == NULL ? "no answer" : zkl_ask_words(result));
	PQclear(result);
	return done;
}

/* ---- while the program runs ---- */

/* In place of zklock-run while that is stopped, until the program ends */
static void be_deputy(pid_t run) __attribute__((noreturn));

static void
be_deputy(pid_t run)
{
	bool		by_terminal;

	zkl_guard_depute();
	zkl_holding_resume();
	for (;;)
	{
		struct pollfd news = {.fd = zkl_guard_news(),.events = POLLIN};

		while (zkl_signals_next(&by_terminal) != 0)
			;
		if (poll(&news, 1, 0) > 0)
			kill(run, SIGCONT);
		zkl_holding_keep();
	}
}

/*
 * The job is suspended, as with Ctrl-Z.  A child keeps the lock: else the program would be
 * ended soon.
 */
static void
suspend(int signo)
{
	pid_t		run = getpid();
	pid_t		deputy;

	zkl_holding_pause();
	deputy = fork();
	if (deputy == 0)
		be_deputy(run);
	if (deputy < 0)
		zkl_options_say("could not start a deputy: %s", strerror(errno));
	else
		zkl_signals_obey(signo);
	if (deputy > 0)
	{
		kill(deputy, SIGKILL);
		waitpid(deputy, NULL, 0);
	}
	zkl_holding_resume();
}

/*
 * What the terminal stops is the program as well, in its own time: the job is suspended
 * when the program is.  A shell that got the terminal earlier would share it with that.
 */
static void
take_signals(void)
{
	static int	stop_asked = 0;
	bool		by_terminal;
	int			signo;

	while ((signo = zkl_signals_next(&by_terminal)) != 0)
	{
		bool		shared = by_terminal && zkl_guard_is_on_terminal();

		if (zkl_signals_is_stop(signo) && shared)
			stop_asked = signo;
		else if (zkl_signals_is_stop(signo))
		{
			suspend(signo);
			stop_asked = 0;
		}
		else if (signo != SIGCHLD && !shared)
			zkl_guard_signal(signo);
	}
	if (stop_asked != 0 && zkl_guard_is_suspended())
	{
		suspend(stop_asked);
		stop_asked = 0;
	}
}

/* The program has ended.  What it has left must end before the lock is given up. */
static void
end_rest(void)
{
	int64_t		now = zkl_clock_ms();

	if (zkl_guard_has_ended_program() && zkl_holding_is_limited(now))
		zkl_options_say("ended the program after --at-most");
	else if (zkl_guard_has_ended_program())
		zkl_options_say("ended the program, as \"%s\" could not be kept: %s", options.lock,
						zkl_holding_trouble());
	zkl_holding_limit(now + LEFT_MS);
}

/*
 * Returns the program's exit status.  A program that was ended has not succeeded, even if
 * it says so.
 */
static int
watch(void)
{
	int			status = -1;

	for (;;)
	{
		bool		ran = status < 0;

		if (zkl_guard_has_begun())
			take_signals();
		status = zkl_guard_read_news();
		if (ran && status >= 0)
		{
			was_cut_short = zkl_signals_is_end_told();
			end_rest();
		}
		zkl_guard_reap();
		if (zkl_guard_is_over())
			break;
		zkl_holding_keep();
	}
	if (zkl_guard_has_ended_program())
		return status == 0 ? 128 + SIGTERM : status;
	if (zkl_guard_has_ended())
		zkl_options_say("ended what \"%s\" had left running", options.program[0]);
	return status;
}

int
main(int argc, char **argv)
{
	int			status;

	options = zkl_options_read(argc, argv);
	zkl_signals_begin();
	zkl_server_begin(&options);
	zkl_holding_reserve(&options);
	if (!is_due())
		zkl_ask_leave(0);
	zkl_holding_prove();
	if (!zkl_guard_start(options.program, options.lock, zkl_holding_token()))
		zkl_ask_leave(EXIT_FAILURE);
	status = watch();
	zkl_guard_finish();
	if (status == 0 && !does_count())
		status = 128 + SIGTERM;
	else if (status == 0 && !record_run(zkl_clock_ms() + LAST_WORD_MS))
		status = ZKL_RUN_UNAVAILABLE;
	zkl_ask_leave(status);
}
