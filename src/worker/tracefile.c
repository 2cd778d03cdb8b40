/*
 * tracefile.c
 *	  The file that the core's trace goes to, and what ZooKeeper's client says.
 *
 * Owns zklock.trace and zklock.trace.old in the data directory.  Runs in the
 * worker only; takes no locks.  It does not know what the lines say.
 *
 * The worker collects lines in memory and writes them when it has nothing else
 * to do.  If it cannot write the file, the server log says so once, and the
 * trace stops until the configuration is reloaded: locks matter more.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "miscadmin.h"
#include "pgtime.h"
#include "shared/settings.h"
#include "storage/fd.h"
#include "utils/timestamp.h"
#include "worker/tracefile.h"
#include "worker/worker.h"

#define TRACE_FILE		"zklock.trace"
#define TRACE_FILE_OLD	"zklock.trace.old"
#define TRACE_FILE_MODE (S_IRUSR | S_IWUSR)
#define MAX_TRACE_FILE	(8 * 1024 * 1024)	/* each of the two */

ZklTrace	zkl_tracefile = {0};

static int	trace_fd = -1;		/* -1: no trace */
static off_t trace_size;		/* of the file */
static char unwritten[64 * 1024];
static size_t nunwritten = 0;

static void
stop_trace(void)
{
	zkl_trace_begin(&zkl_tracefile, zkl_core, NULL, NULL);
	nunwritten = 0;
	if (trace_fd >= 0)
		close(trace_fd);
	trace_fd = -1;
}

static void
fail_trace(const char *what)
{
	ereport(LOG,
			(errcode_for_file_access(),
			 errmsg("could not %s file \"%s\": %m", what, TRACE_FILE),
			 errdetail("The trace stops until the configuration is reloaded.")));
	stop_trace();
}

static bool
open_file(void)
{
	struct stat status;

	trace_fd = BasicOpenFilePerm(TRACE_FILE,
								 O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
								 TRACE_FILE_MODE);
	if (trace_fd < 0 || fchmod(trace_fd, TRACE_FILE_MODE) != 0 ||
		fstat(trace_fd, &status) != 0)
	{
		fail_trace("open");
		return false;
	}
	trace_size = status.st_size;
	return true;
}

/* A full file becomes the old one. */
static bool
rotate_if_full(void)
{
	if (trace_size + (off_t) nunwritten <= MAX_TRACE_FILE)
		return true;
	if (rename(TRACE_FILE, TRACE_FILE_OLD) != 0 && errno != ENOENT)
	{
		fail_trace("rename");
		return false;
	}
	close(trace_fd);
	return open_file();
}

void
zkl_tracefile_flush(void)
{
	size_t		done = 0;

	if (nunwritten == 0 || !rotate_if_full())
		return;
	while (done < nunwritten)
	{
		ssize_t		n = write(trace_fd, unwritten + done, nunwritten - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
		{
			fail_trace("write");
			return;
		}
		done += (size_t) n;
	}
	trace_size += (off_t) nunwritten;
	nunwritten = 0;
}

/* Each line begins with the time, as in the server log. */
static void
add_line(void *context, const char *line)
{
	TimestampTz now = GetCurrentTimestamp();
	pg_time_t	seconds = timestamptz_to_time_t(now);
	char		time[64];
	char		zone[64];
	struct pg_tm *local = pg_localtime(&seconds, log_timezone);

	pg_strftime(time, sizeof(time), "%Y-%m-%d %H:%M:%S", local);
	pg_strftime(zone, sizeof(zone), "%Z", local);
	if (sizeof(unwritten) - nunwritten <
		strlen(time) + strlen(zone) + strlen(line) + 16)
		zkl_tracefile_flush();
	if (trace_fd < 0)
		return;
	nunwritten += (size_t)
		snprintf(unwritten + nunwritten, sizeof(unwritten) - nunwritten,
				 "%s.%06d %s %s\n", time, (int) (now % USECS_PER_SEC), zone,
				 line);
	nunwritten = Min(nunwritten, sizeof(unwritten) - 1);	/* if it was cut */
}

void
zkl_tracefile_take_log(ZklWireReader *body)
{
	uint32_t	length;
	const char *text = zkl_wire_get_string(body, &length);

	if (trace_fd >= 0)
		add_line(NULL, psprintf("client %.*s", (int) length, text));
}

void
zkl_tracefile_reload(void)
{
	char		first[64];

	if (!zkl_trace && trace_fd >= 0)
	{
		zkl_tracefile_flush();
		stop_trace();
	}
	else if (zkl_trace && trace_fd < 0 && open_file())
	{
		snprintf(first, sizeof(first), "process %d begins", MyProcPid);
		add_line(NULL, first);
		zkl_trace_begin(&zkl_tracefile, zkl_core, add_line, NULL);
	}
}

void
zkl_tracefile_begin(void)
{
	zkl_tracefile_reload();
}
