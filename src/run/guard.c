/*
 * guard.c
 *	  The program that runs under the lock, and what ends it in time.
 *
 * Owns the deadlines, in memory that zklock-run shares with its guards; the guards; and
 * what is known of the program.
 *
 *		zklock-run ── outer guard ── inner guard ── program ── what it starts
 *
 * zklock-run moves the deadlines each time it has renewed the lock.  If it is stopped,
 * no deadline moves any more, and a guard ends the program in time; if it is gone, as
 * the pipe "life" tells, at once.  Each of the three can end the program by itself, so
 * two of them may be stopped or killed:
 *
 * - Each is a subreaper, and so an ancestor of all that the program has started,
 *   whatever session that is in, while those above it live or not.
 * - If the outer guard is killed, zklock-run starts another one, beside the inner one.
 * - If the inner guard is killed, the kernel kills the program (PR_SET_PDEATHSIG), and
 *   what is left descends from the outer guard.
 * - A guard that is stopped is made to go on by its parent, and the outer one by the
 *   inner one, too.
 *
 * If all three are killed at once, the program alone ends.
 *
 * On a terminal, the program is in zklock-run's process group, as it would be with
 * nice(1): for the shell and the terminal they are one job.  Else it has a process
 * group of its own, which can be signalled in one step.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* pipe2 */
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/cgroup.h"
#include "run/clock.h"
#include "run/family.h"
#include "run/guard.h"
#include "run/options.h"
#include "run/signals.h"

#define LOOK_MS		1000		/* the deadlines may have come nearer */
#define AGAIN_MS	20			/* SIGKILL is repeated until nothing is left */
#define DENIED_TIMES 25			/* before somebody is told */

typedef struct Shared
{
	_Atomic int64_t term;
	_Atomic int64_t kill;
	_Atomic bool termed;
	_Atomic bool killed;
	_Atomic bool over;			/* zklock-run may end */
	_Atomic bool suspended;		/* the program */
	_Atomic pid_t run;
	_Atomic pid_t outer;
	_Atomic pid_t inner;
	_Atomic pid_t deputy;
	_Atomic pid_t group;		/* 0: it has none of its own, or none is left */
} Shared;

/* What the inner guard tells */
typedef struct News
{
	enum
	{
		BEGUN,					/* there is a process, also for signals */
		NOT_EXECUTED,			/* value: errno */
		ENDED					/* value: of waitpid() */
	}			what;
	int			value;
} News;

static Shared *shared = NULL;
static bool on_terminal = false;
static bool is_ancestor = true; /* of the program */

/* Nothing is ever written into "life": zklock-run has the end for it, as long as it lives. */
static int	life[2] = {-1, -1};
static int	news[2] = {-1, -1};
static const char *name = NULL; /* of the program */
static pid_t program = 0;		/* in the inner guard */
static bool begun = false;		/* in zklock-run */
static int	status = -1;		/* in zklock-run: see zkl_guard_read_news() */

static bool
share_memory(void)
{
	if (shared == NULL)
		shared = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared != MAP_FAILED;
}

/* ---- the deadlines ---- */

void
zkl_guard_set_deadlines(int64_t term, int64_t kill)
{
	if (!share_memory())
	{
		zkl_options_say("could not share memory: %s", strerror(errno));
		exit(EXIT_FAILURE);
	}
	atomic_store(&shared->term, term);
	atomic_store(&shared->kill, kill);
}

/*
 * All that the program has started and that this process can know of.  One that is no
 * ancestor of it is a child of zklock-run's, and looks from there.
 */
static ZklFamily
family(void)
{
	pid_t		run = atomic_load(&shared->run);
	ZklFamily	f = {.root = is_ancestor ? getpid() : getppid() == run ? run : 0};

	f.spared[0] = run;
	f.spared[1] = atomic_load(&shared->outer);
	f.spared[2] = atomic_load(&shared->inner);
	f.spared[3] = atomic_load(&shared->deputy);
	return f;
}

/* Returns whether there was anybody. */
static bool
signal_all(int signo)
{
	ZklFamily	f = family();
	pid_t		group = atomic_load(&shared->group);
	bool		any;

	if (signo == SIGKILL)
		zkl_cgroup_kill();
	any = group > 0 && kill(-group, signo) == 0;
	return zkl_family_signal(&f, signo, signo == SIGKILL ? 0 : group) > 0 || any;
}

/* Nothing but a cgroup can end who became another user, as with sudo. */
static void
tell_of_denied(void)
{
	static int	times = 0;

	if (getpid() == atomic_load(&shared->run) && zkl_family_denied() != 0 && ++times == DENIED_TIMES)
		zkl_options_say("cannot end process %d, which runs as another user",
						(int) zkl_family_denied());
}

int64_t
zkl_guard_enforce(void)
{
	int64_t		now = zkl_clock_ms();

	if (now >= atomic_load(&shared->kill))
	{
		if (signal_all(SIGKILL))
			atomic_store(&shared->killed, true);
		tell_of_denied();
		return now + AGAIN_MS;
	}
	if (now < atomic_load(&shared->term))
		return atomic_load(&shared->term);
	if (!atomic_exchange(&shared->termed, true))
	{
		(void) signal_all(SIGTERM);
		(void) signal_all(SIGCONT);
	}
	return atomic_load(&shared->kill);
}

bool
zkl_guard_has_ended(void)
{
	return atomic_load(&shared->termed) || atomic_load(&shared->killed);
}

void
zkl_guard_signal(int signo)
{
	ZklFamily	f = family();
	pid_t		group = atomic_load(&shared->group);

	if (on_terminal)
		(void) zkl_family_signal(&f, signo, 0);
	else if (group > 0)
		kill(-group, signo);
}

bool
zkl_guard_is_on_terminal(void)
{
	return on_terminal;
}

bool
zkl_guard_is_suspended(void)
{
	return atomic_load(&shared->suspended);
}

/* ---- children ---- */

/* When nobody is left in it, the number of the program's group may be used again. */
static void
forget_empty_group(void)
{
	pid_t		group = atomic_load(&shared->group);

	if (group > 0 && kill(-group, 0) != 0 && errno == ESRCH)
		atomic_store(&shared->group, 0);
}

static void
tell_run(int what, int value)
{
	News		item = {.what = what,.value = value};

	if (write(news[1], &item, sizeof(item)) != sizeof(item))
		return;					/* zklock-run is gone */
}

static void
take_child_end(pid_t child, int how)
{
	forget_empty_group();
	if (child == atomic_load(&shared->outer))
		atomic_store(&shared->outer, 0);
	else if (child == atomic_load(&shared->inner))
		atomic_store(&shared->inner, 0);
	else if (child == program && program != 0)
		tell_run(ENDED, how);
}

/* zklock-run waits for that of the program, and looks when it gets a signal. */
static void
take_child_stop(pid_t child, bool stopped)
{
	if (child == program && program != 0)
	{
		atomic_store(&shared->suspended, stopped);
		kill(atomic_load(&shared->run), SIGCHLD);
	}
	else if (stopped &&
			 (child == atomic_load(&shared->outer) || child == atomic_load(&shared->inner)))
		kill(child, SIGCONT);
}

/* Returns whether a child is left. */
static bool
reap(void)
{
	pid_t		child;
	int			how;

	while ((child = waitpid(-1, &how, WNOHANG | WUNTRACED | WCONTINUED)) > 0)
	{
		if (WIFSTOPPED(how) || WIFCONTINUED(how))
			take_child_stop(child, WIFSTOPPED(how));
		else
			take_child_end(child, how);
	}
	return child == 0;
}

/* ---- the guards ---- */

/* A descriptor of zklock-run's connection would keep that open. */
static void
close_all_but(int one, int other)
{
	DIR		   *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL)
	{
		int			fd = atoi(entry->d_name);

		if (fd > STDERR_FILENO && fd != one && fd != other && fd != dirfd(dir))
			close(fd);
	}
	if (dir != NULL)
		closedir(dir);
}

/* The inner guard does what zklock-run would do, which may be stopped or gone. */
static void
wake_outer(void)
{
	pid_t		parent = getppid();

	if (parent == atomic_load(&shared->outer))
		kill(parent, SIGCONT);
}

/* zklock-run is gone. */
static void end_all(void) __attribute__((noreturn));

static void
end_all(void)
{
	if (atomic_load(&shared->over))
		_exit(0);
	do
	{
		/* A deputy that is about to end may have moved them. */
		zkl_guard_set_deadlines(0, 0);
		(void) zkl_guard_enforce();
		wake_outer();
		(void) poll(NULL, 0, AGAIN_MS);
	} while (reap());
	zkl_cgroup_remove();
	_exit(0);
}

static void be_guard(void) __attribute__((noreturn));

/* The end of the last child is that of a guard which is an ancestor of the program. */
static void
be_guard(void)
{
	struct pollfd fds[2] = {{.fd = life[0],.events = POLLIN}};
	bool		by_terminal;

	setsid();
	(void) prctl(PR_SET_NAME, "zklock-guard");
	close_all_but(life[0], program != 0 ? news[1] : -1);
	zkl_signals_take_children_only();
	fds[1].fd = zkl_signals_fd();
	fds[1].events = POLLIN;
	while (reap() || !is_ancestor)
	{
		int64_t		left = zkl_guard_enforce() - zkl_clock_ms();

		wake_outer();
		left = left > LOOK_MS ? LOOK_MS : left;
		(void) poll(fds, 2, left < 1 ? 1 : (int) left);
		if (fds[0].revents != 0)
			end_all();
		while (zkl_signals_next(&by_terminal) != 0)
			;
	}
	_exit(0);
}

/* Parent and child do it, as nobody knows who comes first. */
static void
set_group(pid_t pid)
{
	if (on_terminal)
		return;
	setpgid(pid, pid);
	atomic_store(&shared->group, pid);
}

/* In a child of the inner guard */
static void become_program(char **words, pid_t parent) __attribute__((noreturn));

static void
become_program(char **words, pid_t parent)
{
	set_group(getpid());
	zkl_cgroup_enter();
	(void) prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	zkl_signals_restore();

	/* Who was stopped since the deadlines were set may be too late. */
	if (zkl_clock_ms() >= atomic_load(&shared->term))
	{
		atomic_store(&shared->killed, true);
		raise(SIGKILL);
	}
	execvp(words[0], words);
	tell_run(NOT_EXECUTED, errno);
	_exit(ZKL_RUN_NOT_EXECUTABLE);
}

static void become_inner_guard(char **words) __attribute__((noreturn));

static void
become_inner_guard(char **words)
{
	pid_t		self = getpid();

	atomic_store(&shared->inner, self);
	(void) prctl(PR_SET_CHILD_SUBREAPER, 1);
	program = fork();
	if (program == 0)
		become_program(words, self);
	if (program < 0)
	{
		tell_run(NOT_EXECUTED, errno);
		_exit(EXIT_FAILURE);
	}
	set_group(program);
	tell_run(BEGUN, 0);
	be_guard();
}

static void become_outer_guard(char **words) __attribute__((noreturn));

static void
become_outer_guard(char **words)
{
	pid_t		inner;

	(void) prctl(PR_SET_CHILD_SUBREAPER, 1);
	inner = fork();
	if (inner == 0)
		become_inner_guard(words);
	if (inner < 0)
	{
		tell_run(NOT_EXECUTED, errno);
		_exit(EXIT_FAILURE);
	}
	atomic_store(&shared->inner, inner);
	be_guard();
}

/* "words": of the program, or NULL if it runs already */
static bool
start_guard(char **words)
{
	pid_t		guard = fork();

	if (guard == 0)
	{
		atomic_store(&shared->outer, getpid());
		if (words != NULL)
			become_outer_guard(words);
		is_ancestor = false;
		be_guard();
	}
	if (guard > 0)
		atomic_store(&shared->outer, guard);
	return guard > 0;
}

/* ---- in zklock-run ---- */

bool
zkl_guard_start(char **words, const char *lock, const char *token)
{
	int			terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

	on_terminal = terminal >= 0;
	if (on_terminal)
		close(terminal);
	name = words[0];
	setenv("ZKLOCK_NAME", lock, 1);
	setenv("ZKLOCK_TOKEN", token, 1);
	zkl_family_begin();
	zkl_cgroup_make();
	atomic_store(&shared->run, getpid());
	(void) prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (pipe2(life, O_CLOEXEC) != 0 || pipe2(news, O_CLOEXEC) != 0 || !start_guard(words))
	{
		zkl_options_say("could not start a guard: %s", strerror(errno));
		return false;
	}
	close(news[1]);
	return true;
}

bool
zkl_guard_has_started(void)
{
	return name != NULL;
}

bool
zkl_guard_has_begun(void)
{
	return begun || news[0] < 0;
}

void
zkl_guard_reap(void)
{
	(void) reap();
	if (atomic_load(&shared->outer) == 0 && news[0] >= 0)
		(void) start_guard(NULL);
}

int
zkl_guard_news(void)
{
	return news[0];
}

static void
take_news(const News *item)
{
	begun = true;
	if (item->what == NOT_EXECUTED)
	{
		zkl_options_say("could not run \"%s\": %s", name, strerror(item->value));
		status = item->value == ENOENT ? ZKL_RUN_NOT_FOUND : ZKL_RUN_NOT_EXECUTABLE;
	}
	else if (item->what == ENDED && status < 0)
		status = WIFEXITED(item->value) ? WEXITSTATUS(item->value) :
			128 + WTERMSIG(item->value);
}

int
zkl_guard_read_news(void)
{
	struct pollfd fd = {.fd = news[0],.events = POLLIN};
	News		item;

	while (news[0] >= 0 && poll(&fd, 1, 0) > 0)
	{
		if (read(news[0], &item, sizeof(item)) == sizeof(item))
		{
			take_news(&item);
			continue;
		}
		close(news[0]);
		news[0] = -1;
		if (status < 0)
		{
			zkl_options_say("the guard of \"%s\" was killed, and with it the program", name);
			status = 128 + SIGKILL;
		}
	}
	return status;
}

bool
zkl_guard_is_over(void)
{
	ZklFamily	f = family();

	return news[0] < 0 && zkl_family_signal(&f, 0, 0) == 0 && zkl_cgroup_is_empty();
}

void
zkl_guard_finish(void)
{
	pid_t		outer = atomic_load(&shared->outer);

	atomic_store(&shared->over, true);
	close(life[1]);
	if (outer > 0)
	{
		kill(outer, SIGKILL);
		waitpid(outer, NULL, 0);
	}
	zkl_cgroup_remove();
}

void
zkl_guard_depute(void)
{
	atomic_store(&shared->deputy, getpid());
	is_ancestor = false;
	(void) prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != atomic_load(&shared->run))
		_exit(EXIT_FAILURE);
	close(life[1]);
}
