/*
 * hosts.c
 *	  Whom to connect to, and with which credentials.
 *
 * Owns the list that "zklock.connect_string" names.  Runs in the worker only;
 * takes no locks; connects to nothing itself.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/memutils.h"

#include "hosts.h"
#include "zklock.h"

#define MAX_HOSTS	64

static char *hosts[MAX_HOSTS];	/* host:port and chroot, in TopMemoryContext */
static int	nhosts = 0;
static int	last_host = 0;

static void
add_host(const char *start, size_t length, const char *chroot)
{
	const char *bracket = memchr(start, ']', length);
	const char *from = bracket != NULL ? bracket : start;
	bool		has_port = memchr(from, ':', length - (size_t) (from - start)) != NULL;

	while (length > 0 && (*start == ' ' || *start == '\t'))
		start++, length--;
	while (length > 0 && (start[length - 1] == ' ' || start[length - 1] == '\t'))
		length--;
	if (length == 0 || nhosts == MAX_HOSTS)
		return;
	hosts[nhosts++] = psprintf("%.*s%s%s", (int) length, start,
							   has_port ? "" : ":2181", chroot);
}

/* host[:port][,host[:port]...][/chroot] */
void
zkl_hosts_parse(const char *connect_string)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	const char *at = connect_string;
	const char *chroot = strchr(at, '/');
	const char *end = chroot != NULL ? chroot : at + strlen(at);

	while (nhosts > 0)
		pfree(hosts[--nhosts]);
	if (chroot == NULL || chroot[1] == '\0')
		chroot = "";
	while (at < end)
	{
		const char *comma = memchr(at, ',', (size_t) (end - at));
		const char *stop = comma != NULL ? comma : end;

		add_host(at, (size_t) (stop - at), chroot);
		at = stop + 1;
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

/*
 * The credentials: one line "scheme:credentials" of zklock.auth_file.  An
 * unreadable file is an error in zk_status, not a connection without them.
 */
bool
zkl_hosts_credentials(char *line, size_t size)
{
	FILE	   *file;
	bool		good;

	line[0] = '\0';
	if (zkl_auth_file == NULL || zkl_auth_file[0] == '\0')
		return true;
	file = AllocateFile(zkl_auth_file, "r");
	if (file == NULL)
		return false;
	good = fgets(line, (int) size, file) != NULL && strchr(line, ':') != NULL;
	FreeFile(file);
	line[strcspn(line, "\r\n")] = '\0';
	return good;
}
