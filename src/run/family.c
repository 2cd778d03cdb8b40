/*
 * family.c
 *	  The processes that descend from one.
 *
 * Owns the list of processes that was read last, and the children that this process
 * had at its start.
 *
 * A process that leaves its process group and its session still has its parent; and
 * if that ends, the next living ancestor that is a subreaper.  So of a subreaper, all
 * that it has ever started descend, also indirectly.  A list is out of date once it
 * is read: who wants all to be ended repeats the call until there is none.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/family.h"

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

void
zkl_family_begin(void)
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

int
zkl_family_signal(const ZklFamily *family, int signo, pid_t but_group)
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

pid_t
zkl_family_denied(void)
{
	return denied;
}
