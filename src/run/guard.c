/*
 * guard.c
 *	  The program that runs under the lock, its processes, and what ends them in
 *	  time.
 *
 * Owns the deadlines, in memory that zklock-run shares with its guards; the guards;
 * what is known of the program; and its cgroup, if the system lets zklock-run make
 * one.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* pipe2 */
#endif
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/clock.h"
#include "run/guard.h"
#include "run/options.h"
#include "run/signals.h"

/* ---- family: the processes that descend from one ---- */

/*
 * A process that leaves its process group and its session still has its parent; and
 * if that ends, the next living ancestor that is a subreaper.  So of a subreaper, all
 * that it has ever started descend, also indirectly.  A list is out of date once it
 * is read: who wants all to be ended repeats the call until there is none.
 */

typedef struct Process
{
	pid_t		pid;
	pid_t		parent;
	pid_t		group;
	unsigned long long begin;	/* since the machine was booted */
	bool		belongs;		/* to the family, or is spared in it */
} Process;

static Process *processes = NULL;
static size_t nprocesses = 0;
static size_t room = 0;

static pid_t denied = 0;

static Process *strangers = NULL;
static size_t nstrangers = 0;

static void cgroup_remove(void);
static ZklFamily family(void);

/* ---- what /proc says ---- */

/* False: it has ended. */
static bool
read_process(const char *name, Process *process)
{
	char		path[64];
	char		text[512];
	const char *behind;
	char		state;
	int			parent;
	int			group;
	int			fd;
	ssize_t		n;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n < 0 ? 0 : n] = '\0';

	/* The program's name may contain anything. */
	behind = strrchr(text, ')');
	if (behind == NULL ||
		sscanf(behind, ") %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
			   &state, &parent, &group, &process->begin) != 4)
		return false;
	process->pid = atoi(name);
	process->parent = parent;
	process->group = group;
	process->belongs = false;
	return state != 'Z' && state != 'X';
}

static int
by_number(const void *a, const void *b)
{
	pid_t		one = ((const Process *) a)->pid;
	pid_t		other = ((const Process *) b)->pid;

	return one < other ? -1 : one > other;
}

static void
read_processes(void)
{
	DIR		   *dir = opendir("/proc");
	struct dirent *entry;

	nprocesses = 0;
	while (dir != NULL && (entry = readdir(dir)) != NULL)
	{
		if (nprocesses == room)
		{
			size_t		more = room == 0 ? 256 : 2 * room;
			Process    *larger = realloc(processes, more * sizeof(*processes));

			if (larger == NULL)
				break;
			processes = larger;
			room = more;
		}
		if (isdigit((unsigned char) entry->d_name[0]) &&
			read_process(entry->d_name, &processes[nprocesses]))
			nprocesses++;
	}
	if (dir != NULL)
		closedir(dir);
	if (nprocesses > 0)
		qsort(processes, nprocesses, sizeof(*processes), by_number);
}

static Process *
process_of(pid_t pid)
{
	Process		key = {.pid = pid};

	return nprocesses == 0 ? NULL :
		bsearch(&key, processes, nprocesses, sizeof(*processes), by_number);
}

/* ---- the family ---- */

/*
 * The children that this process has now, and theirs, are no members of its family:
 * the shell that became zklock-run has started them.
 */
static void
family_begin(void)
{
	size_t		i;

	read_processes();
	strangers = malloc((nprocesses + 1) * sizeof(*strangers));
	for (i = 0; strangers != NULL && i < nprocesses; i++)
	{
		if (processes[i].parent == getpid())
			strangers[nstrangers++] = processes[i];
	}
}

/* Of two processes with one number, only one has begun at that time. */
static bool
is_stranger(const Process *process)
{
	size_t		i;

	for (i = 0; i < nstrangers; i++)
	{
		if (strangers[i].pid == process->pid && strangers[i].begin == process->begin)
			return true;
	}
	return false;
}

/* Whether there was one that belongs, and was not known to */
static bool
find_children(pid_t root)
{
	bool		found = false;
	size_t		i;

	for (i = 0; i < nprocesses; i++)
	{
		Process    *process = &processes[i];
		const Process *parent;

		if (process->belongs || process->pid == root || is_stranger(process))
			continue;
		parent = process_of(process->parent);
		if (process->parent == root || (parent != NULL && parent->belongs))
			found = process->belongs = true;
	}
	return found;
}

static bool
is_spared(const ZklFamily *family, pid_t pid)
{
	int			i;

	for (i = 0; i < ZKL_FAMILY_SPARED; i++)
	{
		if (family->spared[i] == pid)
			return true;
	}
	return pid == getpid();
}

/*
 * Sends a signal to all that descend from the root, but not to those in "but_group",
 * which is 0 or a process group.  Returns how many there are; with 0 as the signal it
 * only counts them.
 */
static int
family_signal(const ZklFamily *family, int signo, pid_t but_group)
{
	int			n = 0;
	size_t		i;

	denied = 0;
	if (family->root == 0)
		return 0;
	read_processes();
	while (find_children(family->root))
		;
	for (i = 0; i < nprocesses; i++)
	{
		const Process *process = &processes[i];

		if (!process->belongs || is_spared(family, process->pid))
			continue;
		n++;
		if (signo != 0 && (but_group == 0 || process->group != but_group) &&
			kill(process->pid, signo) != 0 && errno == EPERM)
			denied = process->pid;
	}
	return n;
}

/* One of those to whom the last call could not send its signal, or 0 */
static pid_t
family_denied(void)
{
	return denied;
}

/* ---- cgroup ---- */

/*
 * A cgroup of the program's own, where the system lets zklock-run make one.
 *
 * Nobody may leave a cgroup who may not write above it, and cgroup.kill, which Linux
 * has since 5.14, ends all in it in one step: also those who start others faster than
 * they can be found, and those who became another user.  A role that runs a service
 * with "Delegate=yes" may make one, and so may root.
 */

static char own[PATH_MAX] = ""; /* "": there is none */

/* The cgroup of this process, below the root of its hierarchy */
static bool
read_place(char *place, size_t size)
{
	FILE	   *file = fopen("/proc/self/cgroup", "re");
	bool		found = false;

	while (file != NULL && !found && fgets(place, (int) size, file) != NULL)
		found = strncmp(place, "0::/", 4) == 0;
	if (file != NULL)
		fclose(file);
	if (!found)
		return false;
	place[strcspn(place, "\n")] = '\0';
	memmove(place, place + 3, strlen(place + 3) + 1);
	return strstr(place, "/..") == NULL;	/* outside of our namespace */
}

/* Where that hierarchy is mounted, from its root on */
static bool
read_mount(char *mount, size_t size)
{
	FILE	   *file = fopen("/proc/self/mountinfo", "re");
	char		line[PATH_MAX + 256];
	bool		found = false;

	while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL)
	{
		char		root[PATH_MAX];
		char		point[PATH_MAX];

		found = strstr(line, " - cgroup2 ") != NULL &&
			sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) == 2 &&
			strcmp(root, "/") == 0 && strlen(point) < size;
		if (found)
			strcpy(mount, point);
	}
	if (file != NULL)
		fclose(file);
	return found;
}

/* The path of a file in it */
static const char *
cgroup_file(const char *file)
{
	static char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", own, file);
	return path;
}

static bool
write_word(const char *file, const char *word)
{
	int			fd = open(cgroup_file(file), O_WRONLY | O_CLOEXEC);
	bool		done = fd >= 0 && write(fd, word, strlen(word)) > 0;

	if (fd >= 0)
		close(fd);
	return done;
}

/* Makes it, if that is possible; else the other functions do nothing. */
static void
cgroup_make(void)
{
	char		mount[PATH_MAX];
	char		place[PATH_MAX];
	int			n;

	if (!read_mount(mount, sizeof(mount)) || !read_place(place, sizeof(place)))
		return;
	n = snprintf(own, sizeof(own), "%s%s/zklock-run.%d", mount,
				 strcmp(place, "/") == 0 ? "" : place, (int) getpid());
	if (n >= (int) sizeof(own))
		own[0] = '\0';

	/* One of an earlier process may have been left. */
	else if (mkdir(own, 0755) != 0 &&
			 (errno != EEXIST || rmdir(own) != 0 || mkdir(own, 0755) != 0))
		own[0] = '\0';
	else if (access(cgroup_file("cgroup.kill"), W_OK) != 0)
		cgroup_remove();
}

/* In a child that becomes the program */
static void
cgroup_enter(void)
{
	if (own[0] != '\0')
		(void) write_word("cgroup.procs", "0");
}

/* Ends all processes in it at once, whoever they belong to. */
static void
cgroup_kill(void)
{
	if (own[0] != '\0')
		(void) write_word("cgroup.kill", "1");
}

static bool
cgroup_is_empty(void)
{
	FILE	   *file = own[0] == '\0' ? NULL : fopen(cgroup_file("cgroup.events"), "re");
	char		line[64];
	bool		empty = true;

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		empty &= strcmp(line, "populated 1\n") != 0;
	if (file != NULL)
		fclose(file);
	return empty;
}

static void
cgroup_remove(void)
{
	if (own[0] != '\0')
		(void) rmdir(own);
	own[0] = '\0';
}

/* ---- guard: the program that runs under the lock, and what ends it in time ---- */

/*
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
	bool		by_guard;		/* when it ended, it had been told to */
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
static bool by_guard = false;	/* in zklock-run: of the program's end */

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
		cgroup_kill();
	any = group > 0 && kill(-group, signo) == 0;
	return family_signal(&f, signo, signo == SIGKILL ? 0 : group) > 0 || any;
}

/* Nothing but a cgroup can end who became another user, as with sudo. */
static void
tell_of_denied(void)
{
	static int	times = 0;

	if (getpid() == atomic_load(&shared->run) && family_denied() != 0 && ++times == DENIED_TIMES)
		zkl_options_say("cannot end process %d, which runs as another user",
						(int) family_denied());
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

bool
zkl_guard_has_ended_program(void)
{
	return by_guard;
}

void
zkl_guard_signal(int signo)
{
	ZklFamily	f = family();
	pid_t		group = atomic_load(&shared->group);

	if (on_terminal)
		(void) family_signal(&f, signo, 0);
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

	/* "killed" is set behind the first signals, which it may have ended by. */
	item.by_guard = zkl_guard_has_ended() || zkl_clock_ms() >= atomic_load(&shared->kill);
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
	cgroup_remove();
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
	cgroup_enter();
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
	family_begin();
	cgroup_make();
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
	{
		status = WIFEXITED(item->value) ? WEXITSTATUS(item->value) :
			128 + WTERMSIG(item->value);
		by_guard = item->by_guard;
	}
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
			by_guard = zkl_guard_has_ended();
		}
	}
	return status;
}

bool
zkl_guard_is_over(void)
{
	ZklFamily	f = family();

	return news[0] < 0 && family_signal(&f, 0, 0) == 0 && cgroup_is_empty();
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
	cgroup_remove();
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
