/*
 * hosts.c
 *	  Which ZooKeeper servers to connect to.
 *
 * Owns the list that "zklock.connect_string" names.  Runs in the worker, but
 * for the check of a new value; takes no locks; connects to nothing itself.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "shared/settings.h"
#include "utils/memutils.h"

#include "shared/hosts.h"
#include "znode/znode.h"

#define MAX_HOSTS		64
#define MAX_HOST_NAME	255

static char *hosts[MAX_HOSTS];	/* host:port and chroot, in TopMemoryContext */
static int	nhosts = 0;
static int	last_host = 0;

/* As host:port with the chroot, or NULL if there is nothing but spaces */
static char *
complete_host(const char *start, size_t length, const char *chroot)
{
	const char *bracket = memchr(start, ']', length);
	const char *from = bracket != NULL ? bracket : start;
	size_t		left = length - (size_t) (from - start);
	bool		has_port = memchr(from, ':', left) != NULL;

	while (length > 0 && (*start == ' ' || *start == '\t'))
		start++, length--;
	while (length > 0 &&
		   (start[length - 1] == ' ' || start[length - 1] == '\t'))
		length--;
	return length == 0 ? NULL :
		psprintf("%.*s%s%s", (int) length, start, has_port ? "" : ":2181",
				 chroot);
}

/* The rule that one entry of the list breaks, or NULL */
static const char *
check_host(const char *start, size_t length)
{
	const char *bracket = memchr(start, ']', length);
	const char *from = bracket != NULL ? bracket : start;
	const char *colon = memchr(from, ':', length - (size_t) (from - start));
	size_t		name = colon != NULL ? (size_t) (colon - start) : length;
	long		port = 0;
	size_t		i;

	if (name == 0)
		return "Each entry must name a host.";
	if (name > MAX_HOST_NAME)
		return "The name of a host is too long.";
	for (i = 0; i < name; i++)
	{
		if (strchr(" \t\n;", start[i]) != NULL)
			return "Hosts are separated by commas, without spaces.";
	}
	if (colon == NULL)
		return NULL;
	for (i = name + 1; i < length && port <= 65535; i++)
	{
		if (start[i] < '0' || start[i] > '9')
			return "A port is a number.";
		port = port * 10 + (start[i] - '0');
	}
	return port >= 1 && port <= 65535 ? NULL :
		"A port is a number from 1 to 65535.";
}

const char *
zkl_hosts_check(const char *connect_string)
{
	const char *at = connect_string;
	const char *chroot = strchr(at, '/');
	const char *end = chroot != NULL ? chroot : at + strlen(at);
	const char *why = NULL;
	int			n = 0;

	while (why == NULL && at <= end)
	{
		const char *comma = memchr(at, ',', (size_t) (end - at));
		const char *stop = comma != NULL ? comma : end;

		while (at < stop && *at == ' ')
			at++;
		why = ++n > MAX_HOSTS ? "There are too many hosts." :
			check_host(at, (size_t) (stop - at));
		at = stop + 1;
	}
	if (why == NULL && chroot != NULL &&
		zkl_name_check_root(chroot, strlen(chroot)) != NULL)
		why = "What follows the last host is a path such as /apps, without a slash at its end.";
	return why;
}

char *
zkl_hosts_nth(const char *connect_string, int number)
{
	const char *at = connect_string;
	const char *chroot = strchr(at, '/');
	const char *end = chroot != NULL ? chroot : at + strlen(at);

	if (chroot == NULL || chroot[1] == '\0')
		chroot = "";
	while (at < end)
	{
		const char *comma = memchr(at, ',', (size_t) (end - at));
		const char *stop = comma != NULL ? comma : end;
		char	   *host = complete_host(at, (size_t) (stop - at), chroot);

		if (host != NULL && number-- == 0)
			return host;
		if (host != NULL)
			pfree(host);
		at = stop + 1;
	}
	return NULL;
}

void
zkl_hosts_parse(const char *connect_string)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	char	   *host;

	while (nhosts > 0)
		pfree(hosts[--nhosts]);
	while ((host = zkl_hosts_nth(connect_string, nhosts)) != NULL)
	{
		Assert(nhosts < MAX_HOSTS);
		hosts[nhosts++] = host;
	}
	MemoryContextSwitchTo(old);

	/* Servers of a fleet must not all take the same one first. */
	if (nhosts > 0)
		last_host = (int) ((uint32) MyProcPid % (uint32) nhosts);
}

int
zkl_hosts_count(void)
{
	return nhosts;
}

const char *
zkl_hosts_next(void)
{
	last_host = (last_host + 1) % nhosts;
	return hosts[last_host];
}
