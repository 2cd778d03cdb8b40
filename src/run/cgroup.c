/*
 * cgroup.c
 *	  A cgroup of the program's own, where the system lets zklock-run make one.
 *
 * Owns that cgroup, of version 2, below the one in which zklock-run runs.
 *
 * Nobody may leave a cgroup who may not write above it, and cgroup.kill, which Linux
 * has since 5.14, ends all in it in one step: also those who start others faster than
 * they can be found, and those who became another user.  A role that runs a service
 * with "Delegate=yes" may make one, and so may root.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/cgroup.h"

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

void
zkl_cgroup_make(void)
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
		zkl_cgroup_remove();
}

void
zkl_cgroup_enter(void)
{
	if (own[0] != '\0')
		(void) write_word("cgroup.procs", "0");
}

void
zkl_cgroup_kill(void)
{
	if (own[0] != '\0')
		(void) write_word("cgroup.kill", "1");
}

bool
zkl_cgroup_is_empty(void)
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

void
zkl_cgroup_remove(void)
{
	if (own[0] != '\0')
		(void) rmdir(own);
	own[0] = '\0';
}
