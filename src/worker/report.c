/*
 * report.c
 *	  What the worker says in logs: of locks and deadlocks, of ZooKeeper and its
 *	  connection; and the statistics.
 *
 * Owns the words; what counts as a timeout, a denial, a loss and a deadlock;
 * lapsed_at and lapses of ZklStatus, so that a restarted worker does not log the
 * same outage again; zklock.trace and zklock.trace.old in the data directory.  Runs
 * in the worker only.  Takes slots' mutexes through slot.h, one at a time.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hashfn.h"
#include "core/manager.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "pgtime.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/deadlocks.h"
#include "shared/gate.h"
#include "shared/lockstats.h"
#include "shared/program.h"
#include "shared/settings.h"
#include "shared/status.h"
#include "storage/fd.h"
#include "utils/timestamp.h"
#include "worker/report.h"
#include "worker/worker.h"
#include "worker/worker_slot.h"

/* ---- tracefile ---- */

/*
 * The file that the core's trace goes to, and what ZooKeeper's client says.
 *
 * It does not know what the lines say.
 *
 * The worker collects lines in memory and writes them when it has nothing else
 * to do.  If it cannot write the file, the server log says so once, and the
 * trace stops until the configuration is reloaded: locks matter more.
 */

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

void
zkl_tracefile_end(void)
{
	if (trace_fd >= 0)
		add_line(NULL, psprintf("process %d ends", MyProcPid));
	zkl_tracefile_flush();
}

/* ---- diagnosis ---- */

/*
 * Says in words what is wrong with ZooKeeper, with a connection to it, or with the
 * lease.
 *
 * It must not know how the worker finds out what is wrong.
 */

#define MAX_TOLD			64	/* as many as there can be hosts */

/* ---- ZooKeeper, and connections to it ---- */

const char *
zkl_diagnosis_of(int32 rc, const char *host)
{
	switch (rc)
	{
		case ZKL_RC_LAPSED:
			return "the lease has passed while the worker was held up";
		case ZKL_RC_WENT_BACK:
			return "transaction ids of ZooKeeper have gone back: the ensemble was wiped, restored from a backup, or is another one; see zk_accept_lower_tokens()";
		case ZKL_RC_ABSURD:
			return psprintf("ZooKeeper server \"%s\" answered with a transaction id that cannot be right",
							host);
		case ZKL_RC_NOAUTH:
			return psprintf("not allowed to create this server's node below \"%s\": check \"zklock.auth_file\"",
							zkl_root);
		case ZKL_RC_NONODE:
			return "the chroot that \"zklock.connect_string\" ends in does not exist";
		default:
			return psprintf("no usable answer from ZooKeeper server \"%s\" (code %d)",
							host, rc);
	}
}

static const char *
step_behind(ZklWireStep last)
{
	switch (last)
	{
		case ZKL_WIRE_STEP_NONE:
			return "zklock_session had started";
		case ZKL_WIRE_STEP_STARTED:
			return "the name was resolved";
		case ZKL_WIRE_STEP_RESOLVED:
			return "the connection was accepted";
		default:
			return "the server answered";
	}
}

const char *
zkl_diagnosis_of_late(ZklWireStep last, const char *host)
{
	return psprintf("could not connect to ZooKeeper server \"%s\": the time was over before %s",
					host, step_behind(last));
}

const char *
zkl_diagnosis_of_crash(ZklWireStep last)
{
	return psprintf("the session process ended unexpectedly, before %s",
					step_behind(last));
}

const char *
zkl_diagnosis_of_gone(ZklWireGone reason, ZklWireReader *body)
{
	uint32_t	length;
	const char *text = zkl_wire_get_string(body, &length);

	return psprintf("%.*s%s", (int) length, text,
					reason == ZKL_WIRE_GONE_AUTH_FAILED ?
					": check \"zklock.auth_file\"" : "");
}

void
zkl_diagnosis_warn_of_lost_writes(void)
{
	ereport(WARNING,
			(errmsg("ZooKeeper has lost writes that it had acknowledged"),
			 errdetail("This server's node below \"%s/.servers\" is gone, or older than it was.  Locks that were released may not be free yet: the server looks through all directories for their znodes, and deletes them.",
					   zkl_root),
			 errhint("If nobody has deleted that node, check whether all ZooKeeper servers run version 3.9.4 or later, and whether one of them has lost its disk.")));
}

void
zkl_diagnosis_warn_of_other_holder(const char *path, int length, const char *other)
{
	ereport(WARNING,
			(errmsg("distributed lock \"%.*s\" of server \"%s\" may have another holder on %s%s%s",
					length, path, zkl_settings_server_name(),
					other[0] != '\0' ? "server \"" : "another client", other,
					other[0] != '\0' ? "\"" : ""),
			 errdetail("ZooKeeper shows its request ahead of the one that was granted here.  So ZooKeeper has lost writes that it had acknowledged: the end of a session, or a release."),
			 errhint("The lock belongs to this server, whose fencing token is higher.  Check the later changes of the other holder, and whether all ZooKeeper servers run version 3.9.4 or later.")));
}

void
zkl_diagnosis_check_timeout(uint32 timeout_ms, uint32 generation)
{
	static uint32 warned = 0;	/* the generation that was warned about */

	if (warned == generation ||
		timeout_ms >= (uint64) zkl_tick_time * ZKL_LEAST_TICKS)
		return;
	warned = generation;
	ereport(WARNING,
			(errmsg("the ZooKeeper session timeout of %u ms is less than %d ticks",
					timeout_ms, ZKL_LEAST_TICKS),
			 errdetail("\"zklock.tick_time\" is %d ms.  The lease then leaves little room for pauses of the ZooKeeper servers, and none for observers behind a follower.",
					   zkl_tick_time),
			 errhint("Increase \"zklock.session_timeout\" on all servers, or set \"zklock.tick_time\" to the tickTime in the ensemble's zoo.cfg.")));
}

/* Whether this was not told before, by this worker */
static bool
is_news(const char *text)
{
	static uint32 told[MAX_TOLD];
	static int	ntold = 0;
	uint32		hash = hash_bytes((const unsigned char *) text,
								  (int) strlen(text));
	int			i;

	for (i = 0; i < ntold; i++)
	{
		if (told[i] == hash)
			return false;
	}
	if (ntold == MAX_TOLD)
		return false;
	told[ntold++] = hash;
	return true;
}

void
zkl_diagnosis_check_version(const char *version, const char *host)
{
	if (!zkl_release_loses_writes(version) || !is_news(psprintf("%s %s", host, version)))
		return;
	ereport(LOG,
			(errmsg("ZooKeeper server \"%s\" has version %s", host, version),
			 errdetail(ZKL_RELEASE_FAULT),
			 errhint(ZKL_RELEASE_ADVICE)));
}

/* ---- the lease ends under held locks ---- */

static int
count_held_locks(void)
{
	int			n = 0;
	int			i;

	for (i = 0; i < zkl_control->ctl_nrequests; i++)
		n += zkl_slot_is_relied_on(i);
	return n;
}

static void
note_lapse(int64 at)
{
	ZklStatus  *status = zkl_status_begin();

	status->lapsed_at = at;
	status->lapses += at != 0;
	zkl_status_end();
}

static void
log_lapse(int64 deadline)
{
	int			held = count_held_locks();

	if (held == 0)
		return;
	note_lapse(deadline);
	ereport(WARNING,
			(errmsg("the lease of this server's distributed locks has ended"),
			 errdetail_plural("%d lock is held, and ZooKeeper has not confirmed it in time.",
							  "%d locks are held, and ZooKeeper has not confirmed them in time.",
							  held, held),
			 errhint("Until ZooKeeper answers, no lock is granted, and commits that rely on held locks wait for up to \"zklock.commit_wait\".  Check the view zk_status.")));
}

void
zkl_diagnosis_tick(void)
{
	int64		lapsed_at = zkl_control->ctl_status.lapsed_at;
	int64		now = zkl_boottime_ms();
	uint32		generation;
	int64		deadline;

	zkl_lease_read(&generation, &deadline);
	if (deadline <= now)
	{
		if (lapsed_at == 0 && deadline != 0 && zkl_manager_live(zkl_core) > 0)
			log_lapse(deadline);
	}
	else if (lapsed_at != 0)
	{
		note_lapse(0);
		ereport(LOG,
				(errmsg("this server has a lease for distributed locks again"),
				 errdetail("The previous lease ended %.3f s ago.",
						   (double) (now - lapsed_at) / 1000)));
	}
}

int64_t
zkl_diagnosis_timer(void)
{
	uint32		generation;
	int64		deadline;

	zkl_lease_read(&generation, &deadline);
	if (zkl_manager_live(zkl_core) == 0 || deadline <= zkl_boottime_ms())
		return -1;
	return deadline * 1000;
}

/* ---- report: what the server log and the statistics tell of locks and deadlocks ---- */

/*
 * Must not know why a lock is granted or lost, nor how the statistics are kept.
 *
 * The log tells everything of a deadlock.  The client sees the names of those locks only
 * that its session holds or waits for: the others may be secret.  What other servers
 * tell may be anything, so control characters do not reach the log.
 */

/* ---- statistics ---- */

static void
add(const ZklSlot *slot, const ZklLockstatsCounts *counts)
{
	if (counts->acquires + counts->timeouts + counts->denials + counts->losses +
		counts->deadlocks > 0)
		zkl_lockstats_add(slot->s_request.path, zkl_slot_shown_length(slot),
						  counts);
}

void
zkl_report_uncounted(int slotno, const ZklSlot *slot)
{
	ZklLockstatsCounts counts = zkl_worker_slot_take_uncounted(slotno);

	add(slot, &counts);
}

/*
 * A grant that the backend has not taken counts for nothing: a timeout, a cancel
 * or the wait for another lock of the same call came first.  Nor does the guard
 * of a semaphore, whose requests may be many in one call; but if the call times
 * out there, that is a timeout of the semaphore.  A try for permits may be refused
 * without any request: so permits have no denials.
 */
static void
count_freed(const ZklSlot *slot)
{
	bool		guard = slot->s_request.guard;
	ZklLockstatsCounts counts = slot->s_uncounted;

	if ((slot->s_holder.taken || slot->s_answer.claimed) && !guard)
		zkl_slot_tally(slot, &counts);
	counts.timeouts += slot->s_holder.gave_up;
	counts.denials += slot->s_answer.denied && !guard &&
		slot->s_request.dialect != ZKL_DIALECT_PERMIT;
	counts.losses += slot->s_answer.lost_us != 0 && !guard;
	counts.deadlocks += slot->s_answer.error == ZKL_ERROR_DEADLOCK;
	add(slot, &counts);
}

/* ---- locks, in the log ---- */

/* The guard of a semaphore is no lock that users know. */
static bool
is_logged(const ZklSlot *slot)
{
	return zkl_log_locks == ZKL_LOG_LOCKS_ALL &&
		slot->s_request.kind == ZKL_KIND_LOCK && !slot->s_request.guard;
}

static const char *
mode_name(const ZklSlotRequest *request)
{
	switch ((ZklDialect) request->dialect)
	{
		case ZKL_DIALECT_LATCH:
			return "leader";
		case ZKL_DIALECT_PERMIT:
			return "permit";
		case ZKL_DIALECT_MEMBER:
			return "member";
		default:
			return request->mode == ZKL_SHARED ? "shared" : "exclusive";
	}
}

static double
milliseconds(int64 from_us, int64 to_us)
{
	return (double) Max(to_us - from_us, 0) / 1000.0;
}

void
zkl_report_granted(int slotno)
{
	ZklSlot		slot;

	if (zkl_log_locks != ZKL_LOG_LOCKS_ALL)
		return;
	zkl_slot_copy(slotno, &slot);
	if (!is_logged(&slot) ||
		(slot.s_state != ZKL_SLOT_GRANTED && slot.s_request.ticket == 0))
		return;
	ereport(LOG,
			(errmsg("distributed lock \"%.*s\" was granted to %s after %.3f ms",
					zkl_slot_shown_length(&slot), slot.s_request.path,
					slot.s_request.ticket != 0 ?
					psprintf("ticket %lld", (long long) slot.s_request.ticket) :
					psprintf("process %d", slot.s_request.pid),
					milliseconds(slot.s_request.asked_us, slot.s_answer.granted_us)),
			 errdetail("Mode: %s.  Fencing token: %lld.  Database: \"%s\".  User: \"%s\".  Application: \"%s\".",
					   mode_name(&slot.s_request), (long long) slot.s_answer.token,
					   slot.s_request.database, slot.s_request.usename,
					   slot.s_request.application)));
}

void
zkl_report_lost(const ZklSlot *slot, ZklError error)
{
	if (zkl_log_locks == ZKL_LOG_LOCKS_OFF)
		return;
	if (slot->s_request.ticket != 0 && !slot->s_answer.claimed)
		ereport(LOG,
				(errmsg("ticket %lld for distributed lock \"%s\" has ended",
						(long long) slot->s_request.ticket, slot->s_request.path),
				 errdetail("%s  Role \"%s\" had yet to claim it.",
						   zkl_slot_lost_detail(error), slot->s_request.usename)));
	else if (zkl_slot_is_reservation(slot))
		ereport(LOG,
				(errmsg("the reservation of distributed lock \"%s\" was lost",
						slot->s_request.path),
				 errdetail("%s  Role \"%s\" had reserved it until %s.",
						   zkl_slot_lost_detail(error), slot->s_request.usename,
						   timestamptz_to_str(GetCurrentTimestamp() +
											  (slot->s_keep_until - zkl_boottime_ms()) * 1000))));
	else
		ereport(LOG,
				(errmsg("distributed lock \"%.*s\" of process %d was lost",
						zkl_slot_shown_length(slot), slot->s_request.path,
						slot->s_request.pid),
				 errdetail("%s", zkl_slot_lost_detail(error))));
}

/* A grant may come too late for a session that gives up. */
static void
log_end(const ZklSlot *slot)
{
	if (!is_logged(slot) || slot->s_answer.granted_us == 0 || slot->s_request.ticket != 0 ||
		(slot->s_answer.lost_us != 0 && slot->s_request.lifetime >= ZKL_HELD_LIFETIMES))
		return;
	if (slot->s_answer.lost_us != 0)
		ereport(LOG,
				(errmsg("the loss of distributed lock \"%.*s\" was acknowledged by process %d",
						zkl_slot_shown_length(slot), slot->s_request.path,
						slot->s_request.pid),
				 errdetail("The lock was held for %.3f ms.",
						   milliseconds(slot->s_answer.granted_us,
										slot->s_answer.lost_us))));
	else if (slot->s_holder.taken)
		ereport(LOG,
				(errmsg("distributed lock \"%.*s\" of process %d was released after %.3f ms",
						zkl_slot_shown_length(slot), slot->s_request.path,
						slot->s_request.pid,
						milliseconds(slot->s_answer.granted_us,
									 slot->s_holder.released_us))));
	else
		ereport(LOG,
				(errmsg("distributed lock \"%.*s\" was not taken by process %d",
						zkl_slot_shown_length(slot), slot->s_request.path,
						slot->s_request.pid)));
}

/* As many as fit are told to the client. */
#define MORE	"\n..."

void
zkl_report_freed(const ZklSlot *slot)
{
	count_freed(slot);
	log_end(slot);
}

/* ---- deadlocks, in words ---- */

static void
append_clean(StringInfo text, const char *from)
{
	for (; *from != '\0'; from++)
		appendStringInfoChar(text, (unsigned char) *from < ' ' ||
							 *from == 0x7f ? '?' : *from);
}

static void
append_process(StringInfo text, int32 pid, const char *server)
{
	appendStringInfo(text, "rocess %d", pid);
	if (server[0] == '\0')
		return;
	appendStringInfoString(text, " of server \"");
	append_clean(text, server);
	appendStringInfoChar(text, '"');
}

static void
append_lock(StringInfo text, const ZklEdge *edge, bool all_names)
{
	bool		named = all_names || edge->known;

	if (edge->lock[0] == '\0')
	{
		appendStringInfoString(text, "a PostgreSQL lock");
		return;
	}
	if (edge->dialect == ZKL_DIALECT_LATCH)
		appendStringInfoString(text, named ? "leadership" : "a leadership");
	else
		appendStringInfo(text, "%s on %s",
						 edge->mode == ZKL_SHARED ? "ShareLock" : "ExclusiveLock",
						 named ? "distributed lock" : "a distributed lock");
	if (!named)
		return;
	appendStringInfoString(text, " \"");
	append_clean(text, edge->lock);
	appendStringInfoChar(text, '"');
}

static void
append_edge(StringInfo text, const ZklEdge *edge, bool all_names)
{
	appendStringInfoString(text, text->len > 0 ? "\nP" : "P");
	append_process(text, edge->waiter_pid, edge->waiter_server);
	appendStringInfoString(text, " waits for ");
	append_lock(text, edge, all_names);
	appendStringInfoString(text, "; blocked by p");
	append_process(text, edge->blocker_pid, edge->blocker_server);
	appendStringInfoChar(text, '.');
}

/* For the client, cut behind a line */
static void
tell_backend(int slotno, uint32 serial, const ZklDeadlockSteps *steps)
{
	StringInfoData text;
	size_t		i;

	initStringInfo(&text);
	for (i = 0; i < steps->n; i++)
	{
		int			before = text.len;

		append_edge(&text, &steps->all[i], false);
		if (text.len + (int) strlen(MORE) < ZKL_MAX_DEADLOCK_TEXT)
			continue;
		text.len = before;
		appendStringInfoString(&text, MORE);
		break;
	}
	zkl_deadlocks_tell(slotno, serial, text.data);
	pfree(text.data);
}

void
zkl_report_deadlock(int slotno, const ZklDeadlockSteps *steps)
{
	StringInfoData text;
	ZklSlot		slot;
	size_t		i;

	zkl_slot_copy(slotno, &slot);
	tell_backend(slotno, slot.s_serial, steps);
	initStringInfo(&text);
	for (i = 0; i < steps->n; i++)
		append_edge(&text, &steps->all[i], true);
	ereport(LOG,
			(errmsg("process %d detected deadlock across servers while waiting for distributed lock \"%.*s\"",
					slot.s_request.pid, zkl_slot_shown_length(&slot),
					slot.s_request.path),
			 errdetail_internal("%s", text.data)));
	pfree(text.data);
}
