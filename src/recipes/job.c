/*
 * job.c
 *	  A job of zk_once(): its lock, its clock and its history in ZooKeeper, and
 *	  the turns that this session has taken.
 *
 * Owns how a job is read and written, the format of its history, the list of turns
 * that are not used up, and the epilogues of their holds.  Run by backends.  Takes
 * no locks but the distributed one of the job; waits for errands.
 */
#include "postgres.h"

#include "access/xact.h"
#include "backend/acquire.h"
#include "backend/backend_slot.h"
#include "backend/commit.h"
#include "backend/hold.h"
#include "backend/refusal.h"
#include "backend/target.h"
#include "common/int.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "recipes/job.h"
#include "shared/compat.h"
#include "shared/errand_layout.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "utils/datetime.h"
#include "utils/json.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "znode/node_data.h"

/* ---- history ---- */

/*
 * Which turns of a job were used up: the data of its history's znode, and the
 * periods of zk_once().
 *
 * Takes no locks, keeps no state.  Must not know where the data is kept, nor who may
 * change it, nor read any clock.
 *
 * Periods are counted from a Monday, 2000-01-03 00:00, so that a week begins on
 * one; those of months from the January before it.  But each begins a little early,
 * by half a minute at most: if the server's clock is ahead of ZooKeeper's, a job
 * that a cron daemon starts at a full hour comes before that hour.  Between full
 * minutes, cron daemons start nothing.
 */

/* ---- periods ---- */

#define UNIX_TO_PG_MS	INT64CONST(946684800000)	/* from 1970 to 2000 */
#define EPOCH_US		(2 * USECS_PER_DAY) /* from 2000-01-01 to that Monday */
#define EARLY_US		(30 * USECS_PER_SEC)

/* ---- arguments ---- */

pg_noreturn static void
bad_period(const char *message)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s", message)));
	pg_unreachable();
}

static pg_tz *
find_zone(const char *name)
{
	pg_tz	   *zone = pg_tzset(name);

	if (zone == NULL || !pg_tz_acceptable(zone))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("time zone \"%s\" not recognized", name),
				 errhint("The view pg_timezone_names lists the names of time zones.")));
	return zone;
}

static bool
is_utc(const pg_tz * zone)
{
	long int	offset;

	return pg_get_timezone_offset(zone, &offset) && offset == 0;
}

static void
check_signs(const Interval *length)
{
	int64		us;

	if (pg_mul_s64_overflow(length->day, USECS_PER_DAY, &us) ||
		pg_add_s64_overflow(us, length->time, &us))
		bad_period("period is too long");
	if (length->month != 0 && us != 0)
		bad_period("period must not mix months with days or time");
	if (length->month < 0 || us < 0 || (length->month == 0 && us == 0))
		bad_period("period must be positive");
}

ZklPeriod
zkl_history_make(const Interval *length, const char *zone)
{
	ZklPeriod	period = {0};

	if (zkl_compat_interval_is_infinite(length) ||
		zkl_compat_interval_is_minus_infinite(length))
		bad_period("period must be finite");
	check_signs(length);
	period.zone = find_zone(zone);
	if (length->month != 0)
		period.months = length->month;
	else if (length->time == 0)
		period.days = length->day;
	else if (is_utc(period.zone))
		period.us = length->day * USECS_PER_DAY + length->time;
	else
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("period must be whole days or months in time zone \"%s\"",
						zone),
				 errhint("Without a time zone, periods of any length are counted in UTC.")));
	return period;
}

/* ---- counting ---- */

static int64
divide_down(int64 a, int64 b)
{
	return a / b - (a % b < 0 ? 1 : 0);
}

static int64
number_by_calendar(const ZklPeriod *period, TimestampTz time)
{
	struct pg_tm tm;
	fsec_t		fsec;
	int			offset;

	if (timestamp2tm(time, &offset, &tm, &fsec, NULL, period->zone) != 0)
		elog(ERROR, "time is out of range");
	if (period->months > 0)
		return divide_down((int64) (tm.tm_year - 2000) * MONTHS_PER_YEAR +
						   tm.tm_mon - 1, period->months);
	return divide_down(date2j(tm.tm_year, tm.tm_mon, tm.tm_mday) -
					   date2j(2000, 1, 3), period->days);
}

/*
 * The number of the period that a time (ms since 1970) is in.  It falls only where
 * the clock of the zone is set back over midnight, for that hour.
 */
static int64
number_of_period(const ZklPeriod *period, int64 time_ms)
{
	TimestampTz time = (time_ms - UNIX_TO_PG_MS) * 1000;

	if (period->us == 0)
		return number_by_calendar(period, time + EARLY_US);
	return divide_down(time - EPOCH_US + Min(EARLY_US, period->us / 2),
					   period->us);
}

static bool
is_no_period(const ZklPeriod *period)
{
	return period->months == 0 && period->days == 0 && period->us == 0;
}

bool
zkl_history_equal(const ZklPeriod *a, const ZklPeriod *b)
{
	return a->months == b->months && a->days == b->days && a->us == b->us &&
		(a->us != 0 || a->zone == b->zone);
}

/* No period of this kind is shorter, in µs. */
static int64
least_of_period(const ZklPeriod *period)
{
	return period->us != 0 ? period->us : USECS_PER_HOUR;
}

/* ---- the data ---- */

#define RUN_ID_BYTES	16
#define MAX_ROLE_JSON	300		/* a longer one leaves too little room */

/* As µs since 2000 it fits, and is a time of PostgreSQL's. */
#define MAX_TIME_MS		(PG_INT64_MAX / 1000 - INT64CONST(946857600000))

/* Clocks of several ZooKeeper servers that are in order differ by less. */
#define MAX_AHEAD_US	(60 * USECS_PER_SEC)

/* ---- reading ---- */

static bool
read_keys(ZklJsonReader *r, ZklHistory *history)
{
	if (!zkl_json_take(r, '['))
		return false;
	if (zkl_json_take(r, ']'))
		return true;
	do
	{
		if (history->nkeys == ZKL_HISTORY_KEYS ||
			!zkl_json_string(r, history->keys[history->nkeys++],
							 ZKL_MAX_RUN_KEY + 1))
			return false;
	} while (zkl_json_take(r, ','));
	return zkl_json_take(r, ']');
}

typedef struct Reading
{
	ZklHistory *history;
	bool		ours;
} Reading;

static bool
read_history_member(ZklJsonReader *r, const char *name, void *arg)
{
	Reading    *reading = arg;
	ZklHistory *history = reading->history;

	if (strcmp(name, "zklock") == 0)
		return reading->ours = zkl_json_word(r, "\"once\"");
	if (strcmp(name, "server") == 0)
		return zkl_json_string(r, history->server, sizeof(history->server));
	if (strcmp(name, "pid") == 0)
		return zkl_json_integer(r, 0, PG_INT32_MAX, &history->pid);
	if (strcmp(name, "role") == 0)
		return zkl_json_string(r, history->role, sizeof(history->role));
	if (strcmp(name, "at") == 0)
		return zkl_json_integer(r, 0, MAX_TIME_MS, &history->at);
	if (strcmp(name, "period_at") == 0)
		return zkl_json_integer(r, 0, MAX_TIME_MS, &history->period_at);
	if (strcmp(name, "keys") == 0)
		return read_keys(r, history);
	return zkl_json_skip_value(r);
}

/* False: this is no history.  No data at all is an empty one. */
static bool
history_read(const char *data, Size length, ZklHistory *history)
{
	Reading		reading = {history, false};

	memset(history, 0, sizeof(*history));
	return length == 0 ||
		(zkl_json_object(data, length, read_history_member, &reading) &&
		 reading.ours);
}

/* ---- deciding ---- */

/*
 * Clocks can go back, also ZooKeeper's, when another server leads: then the
 * last period that was used is still used.
 */
bool
zkl_history_has(const ZklHistory *history, const ZklTurnId *turn, int64 now_ms)
{
	uint32		i;

	if (!is_no_period(&turn->period))
		return history->period_at > 0 &&
			number_of_period(&turn->period, history->period_at) >=
			number_of_period(&turn->period, now_ms);
	for (i = 0; i < history->nkeys; i++)
	{
		if (strcmp(history->keys[i], turn->key) == 0)
			return true;
	}
	return false;
}

bool
zkl_history_is_ahead(const ZklHistory *history, const ZklTurnId *turn,
					 int64 now_ms)
{
	return !is_no_period(&turn->period) &&
		history->period_at - now_ms >
		Min(least_of_period(&turn->period), MAX_AHEAD_US) / 1000;
}

/* ---- writing ---- */

static void
put_role(StringInfo out, const char *role)
{
	int			before = out->len;

	if (role[0] == '\0')
		return;
	appendStringInfoString(out, ",\"role\":");
	escape_json(out, role);
	if (out->len - before <= MAX_ROLE_JSON)
		return;
	out->len = before;
	out->data[before] = '\0';
}

static void
put_run(StringInfo out, const char *role)
{
	uint8		run[RUN_ID_BYTES];
	int			i;

	if (!pg_strong_random(run, sizeof(run)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	appendStringInfoString(out, "{\"zklock\":\"once\",\"run\":\"");
	for (i = 0; i < RUN_ID_BYTES; i++)
		appendStringInfo(out, "%02x", run[i]);
	appendStringInfoString(out, "\",\"server\":");
	escape_json(out, zkl_settings_server_name());
	appendStringInfo(out, ",\"pid\":%d", MyProcPid);
	put_role(out, role);
}

static uint32
put_data(StringInfo out, char *data)
{
	uint32		length = (uint32) out->len;

	memcpy(data, out->data, length);
	pfree(out->data);
	return length;
}

/* Adds a key if it fits, and two brackets behind it. */
static bool
put_key(StringInfo out, const char *key)
{
	int			before = out->len;

	if (out->data[before - 1] != '[')
		appendStringInfoChar(out, ',');
	escape_json(out, key);
	if (out->len + 2 <= ZKL_MAX_NODE_DATA)
		return true;
	out->len = before;
	out->data[before] = '\0';
	return false;
}

uint32
zkl_history_write(const ZklHistory *history, const ZklTurnId *turn,
				  int64 now_ms, char *data)
{
	StringInfoData out;
	bool		has_key = is_no_period(&turn->period);
	uint32		nkeys = 0,
				i;

	initStringInfo(&out);
	put_run(&out, history->role);
	appendStringInfo(&out, ",\"at\":" INT64_FORMAT, now_ms);
	appendStringInfo(&out, ",\"period_at\":" INT64_FORMAT ",\"keys\":[",
					 has_key ? history->period_at : now_ms);
	if (has_key && put_key(&out, turn->key))
		nkeys++;
	for (i = 0; i < history->nkeys && nkeys < ZKL_HISTORY_KEYS; i++, nkeys++)
	{
		if (!put_key(&out, history->keys[i]))
			break;
	}
	appendStringInfoString(&out, "]}");
	return put_data(&out, data);
}

/*
 * Writes a history of that role without any turn, into ZKL_MAX_NODE_DATA bytes; it
 * differs from every other.  Returns its length.
 */
static uint32
history_write_empty(const char *role, char *data)
{
	StringInfoData out;

	initStringInfo(&out);
	put_run(&out, role);
	appendStringInfoString(&out, ",\"reset\":true,\"period_at\":0,\"keys\":[]}");
	return put_data(&out, data);
}

/* ---- job ---- */

/*
 * Must not know what SQL calls it, nor read any clock of this server.
 *
 * At most once: the turn is used up in ZooKeeper before the transaction
 * commits, while it can still fail.  The epilogue, wanted from then on until
 * the commit, takes that back.  A run of several transactions has the turn for
 * a session: whichever of them commits first uses it up, and until one does, no
 * abort ends it.
 *
 * At least once: the transaction commits, and is on disk, before the turn is
 * used up.  The epilogue, wanted from the commit on, does that.
 *
 * Either way the write is prepared before the commit, and no other session gets
 * the lock before it is done.  Each write names the version of the history that
 * it follows: if two sessions believe that they have the lock, only one of them
 * can write.
 */

/* ---- turns ---- */

#define MOST_WRITES	5			/* over as many connections */

static List *turns = NIL;		/* of ZklTurn, in TopMemoryContext */

/* ---- the list ---- */

/*
 * A turn lives with its hold: a subtransaction that rolls back, or a run that fails, ends
 * both, and may leave a turn behind in the list.
 */
static ZklHold *
hold_of(const ZklTurn *turn)
{
	ZklHold    *hold = zkl_hold_find(&turn->target, ZKL_EXCLUSIVE, turn->lifetime);

	return hold != NULL && hold->grant.token == turn->token ? hold : NULL;
}

static void
free_turn(ZklTurn *turn)
{
	pfree(unconstify(char *, turn->target.path));
	pfree(unconstify(char *, turn->target.name));
	pfree(turn);
}

/*
 * A transaction that rolls back to a savepoint again and again must not collect
 * the turns that ended there.
 */
static void
forget_ended_turns(void)
{
	ListCell   *cell;

	foreach(cell, turns)
	{
		ZklTurn    *turn = lfirst(cell);

		if (hold_of(turn) != NULL)
			continue;
		turns = foreach_delete_current(turns, cell);
		free_turn(turn);
	}
}

ZklTurn *
zkl_job_find(const ZklTarget *target)
{
	ListCell   *cell;

	foreach(cell, turns)
	{
		ZklTurn    *turn = lfirst(cell);

		if (strcmp(turn->target.path, target->path) == 0 &&
			hold_of(turn) != NULL)
			return turn;
	}
	return NULL;
}

/* ---- before the commit ---- */

/*
 * The segment outlives this process, and no process maps it until the worker
 * looks: so no error and no exit can leave it behind.
 */
static void
prepare_epilogue(ZklTurn *turn, int slotno)
{
	dsm_segment *segment = dsm_create(sizeof(ZklEpilogue), 0);
	ZklEpilogue *epilogue = dsm_segment_address(segment);
	const char *from = turn->at_least_once ? turn->from : turn->to;
	const char *to = turn->at_least_once ? turn->to : turn->from;

	snprintf(epilogue->path, sizeof(epilogue->path), "%s%s/%s", zkl_root,
			 turn->target.path, ZKL_HISTORY_NODE);
	epilogue->from_length = turn->at_least_once ?
		turn->from_length : turn->to_length;
	epilogue->to_length = turn->at_least_once ?
		turn->to_length : turn->from_length;
	memcpy(epilogue->from, from, epilogue->from_length);
	memcpy(epilogue->to, to, epilogue->to_length);
	dsm_pin_segment(segment);
	zkl_backend_slot_set_epilogue(slotno, dsm_segment_handle(segment));
	turn->slotno = slotno;
	dsm_detach(segment);
}

static bool
is_used_by_us(const ZklTurn *turn)
{
	ZklErrand  *get = zkl_errand_make(ZKL_ERRAND_GET, &turn->target,
									  ZKL_HISTORY_NODE, ZKL_MAX_NODE_DATA);
	bool		ours;

	ours = zkl_errand_run(get, &turn->target) == ZKL_RC_OK &&
		get->answer.size == turn->to_length &&
		memcmp(get->answer.bytes, turn->to, turn->to_length) == 0;
	zkl_errand_free(get);
	return ours;
}

static void
raise_changed(const ZklTurn *turn)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not record the run of \"%s\"", turn->target.name),
			 errdetail("Its history has changed since it was read."),
			 errhint("Another session may have taken the turn.  Retry the transaction.")));
}

/*
 * If an answer is lost, the same write goes out again: it expects the same
 * version, so that only one of them can have been carried out.
 */
static void
use_up_turn(ZklTurn *turn)
{
	ZklErrand  *set = zkl_errand_make(ZKL_ERRAND_SET, &turn->target,
									  ZKL_HISTORY_NODE, 0);
	bool		is_sent = turn->is_sent;
	int			tries = 0;

	set->version = turn->version;
	set->length = turn->to_length;
	memcpy(set->data, turn->to, turn->to_length);
	turn->is_sent = true;
	while (zkl_errand_run(set, &turn->target) == ZKL_RC_UNKNOWN)
	{
		if (++tries == MOST_WRITES)
			zkl_refusal_raise_unreachable();
		is_sent = true;
	}
	if (set->answer.rc == ZKL_RC_NONODE ||
		(set->answer.rc == ZKL_RC_BADVERSION && !(is_sent && is_used_by_us(turn))))
		raise_changed(turn);
	if (set->answer.rc != ZKL_RC_OK && set->answer.rc != ZKL_RC_BADVERSION)
		zkl_refusal_raise_failed(turn->target.name, ZKL_ERROR_ZOOKEEPER, set->answer.rc);
	turn->is_used = true;
	zkl_errand_free(set);
}

/* Whether this transaction is one that uses the turn up, and has yet to prepare that */
static bool
is_to_write(const ZklTurn *turn)
{
	if (turn->at_least_once)
		return turn->lifetime == ZKL_LIFETIME_TRANSACTION && turn->slotno < 0;
	return !turn->is_used;
}

/*
 * Turns of the kind at most once are used up in ZooKeeper.  Error 40001 if the
 * history is not as it was read.
 */
static bool
write_turns(void)
{
	bool		any = false;
	ListCell   *cell;

	foreach(cell, turns)
	{
		ZklTurn    *turn = lfirst(cell);
		ZklHold    *hold = hold_of(turn);

		if (hold == NULL || !is_to_write(turn))
			continue;
		any = true;
		if (turn->slotno < 0)
			prepare_epilogue(turn, hold->grant.slotno);
		if (turn->at_least_once)
			ForceSyncCommit();	/* or a crash could undo the commit */
		else
		{
			zkl_backend_slot_want_epilogue(turn->slotno, true);
			use_up_turn(turn);
		}
	}
	return any;
}

/* ---- the end ---- */

/*
 * The worker writes the wanted epilogues, before it gives the locks up.  What a session
 * has, and no transaction has used up, stays.
 */
static void
end_turns(bool committed)
{
	ListCell   *cell;

	foreach(cell, turns)
	{
		ZklTurn    *turn = lfirst(cell);
		bool		is_over = committed && turn->slotno >= 0;

		if (is_over && hold_of(turn) != NULL)
			zkl_backend_slot_want_epilogue(turn->slotno, turn->at_least_once);
		if (!is_over && turn->lifetime == ZKL_LIFETIME_SESSION && hold_of(turn) != NULL)
			continue;
		turns = foreach_delete_current(turns, cell);
		free_turn(turn);
	}
}

/*
 * If the turn's note was made for a commit that failed then, both holds have an epilogue
 * for a moment: the second one to be written finds it done.
 */
void
zkl_job_pass_on(const ZklTarget *target)
{
	ZklTurn    *turn = zkl_job_find(target);
	ZklHold    *hold = zkl_hold_find(target, ZKL_EXCLUSIVE, ZKL_LIFETIME_TRANSACTION);
	int			slotno;

	if (turn == NULL || hold == NULL)
		return;
	slotno = turn->slotno;
	turn->lifetime = ZKL_LIFETIME_TRANSACTION;
	turn->token = hold->grant.token;
	if (slotno < 0)
		return;
	prepare_epilogue(turn, hold->grant.slotno);
	zkl_backend_slot_want_epilogue(turn->slotno, true);
	zkl_backend_slot_want_epilogue(slotno, false);
}

/* ---- the beginning ---- */

void
zkl_job_take(const ZklTurn *turn)
{
	static const ZklCommitStep step = {write_turns, end_turns};
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	ZklTurn    *taken;

	zkl_commit_set_step(&step);
	forget_ended_turns();
	taken = palloc(sizeof(ZklTurn));
	*taken = *turn;
	taken->target.path = pstrdup(turn->target.path);
	taken->target.name = pstrdup(turn->target.name);
	taken->slotno = -1;
	turns = lappend(turns, taken);
	MemoryContextSwitchTo(old);
}

/* ---- what ZooKeeper keeps ---- */

#define CLOCK_NODE		".clock"
#define MAX_TRIES		10

/* ---- the lock ---- */

int64
zkl_job_lock(const ZklTarget *job)
{
	ZklLockRequest request = {0};
	int64		token = 0;

	request.lock = *job;
	request.mode = ZKL_EXCLUSIVE;
	request.lifetime = ZKL_LIFETIME_TRANSACTION;
	request.again = true;
	(void) zkl_acquire(&request, 1, &token);
	return token;
}

bool
zkl_job_try_lock(const ZklTarget *job)
{
	ZklLockRequest request = {0};
	int64		token;

	request.lock = *job;
	request.mode = ZKL_EXCLUSIVE;
	request.lifetime = ZKL_LIFETIME_TRANSACTION;
	request.is_try = true;
	return zkl_acquire(&request, 1, &token);
}

void
zkl_job_unlock(const ZklTarget *job)
{
	ZklHold    *hold = zkl_hold_find(job, ZKL_EXCLUSIVE, ZKL_LIFETIME_TRANSACTION);

	if (hold != NULL)
		zkl_hold_end(hold);
}

/* ---- reading ---- */

/* Whether it was done; false if it must be tried again. */
static bool
is_errand_done(const ZklErrand *errand, const ZklTarget *job)
{
	if (errand->answer.rc != ZKL_RC_OK && errand->answer.rc != ZKL_RC_NONODE &&
		errand->answer.rc != ZKL_RC_NODEEXISTS && errand->answer.rc != ZKL_RC_UNKNOWN)
		zkl_refusal_raise_failed(job->name, ZKL_ERROR_ZOOKEEPER, errand->answer.rc);
	return errand->answer.rc == ZKL_RC_OK;
}

/* Makes a persistent znode, unless another client has made it. */
static void
make_znode(const ZklTarget *directory, const char *name, const char *role)
{
	ZklErrand  *create = zkl_errand_make(ZKL_ERRAND_CREATE, directory, name,
										 0);

	if (role != NULL)
		create->length = history_write_empty(role, create->data);
	(void) zkl_errand_run(create, directory);
	(void) is_errand_done(create, directory);
	zkl_errand_free(create);
}

/* A write to a znode that is there for this: when its leader does it */
static bool
try_time(int64 *now_ms)
{
	ZklTarget	directory = {ZKL_ONCE_DIRECTORY, ZKL_ONCE_DIRECTORY,
	ZKL_DIALECT_CURATOR_RW};
	ZklErrand  *set = zkl_errand_make(ZKL_ERRAND_SET, &directory, CLOCK_NODE,
									  0);
	int32		rc = zkl_errand_run(set, &directory);
	bool		done = is_errand_done(set, &directory);

	*now_ms = set->answer.stat.mtime;
	zkl_errand_free(set);
	if (rc == ZKL_RC_NONODE)
		make_znode(&directory, CLOCK_NODE, NULL);
	return done;
}

/*
 * Reads a history into a turn; returns ZooKeeper's result code.  Under the job's
 * lock it is as new as that; "sync" makes it as new as the call.
 */
static int32
get_history(ZklTurn *turn, bool sync, int64 *mtime)
{
	ZklErrand  *get = zkl_errand_make(ZKL_ERRAND_GET, &turn->target,
									  ZKL_HISTORY_NODE, ZKL_MAX_NODE_DATA);
	int32		rc;
	bool		done;

	get->sync = sync;
	rc = zkl_errand_run(get, &turn->target);
	done = is_errand_done(get, &turn->target);
	if (mtime != NULL)
		*mtime = get->answer.stat.mtime;
	turn->version = get->answer.stat.version;
	turn->from_length = (uint32) get->answer.size;
	if (done && get->answer.size <= ZKL_MAX_NODE_DATA)
		memcpy(turn->from, get->answer.bytes, get->answer.size);
	zkl_errand_free(get);
	return rc;
}

void
zkl_job_role(char role[ZKL_MAX_ROLE])
{
	zkl_text_copy_to_utf8(role, ZKL_MAX_ROLE,
						  GetUserNameFromId(GetSessionUserId(), false));
}

static bool
try_history(ZklTurn *turn, void (*check_room) (const char *role))
{
	int32		rc = get_history(turn, false, NULL);
	char		role[ZKL_MAX_ROLE];

	if (rc == ZKL_RC_NONODE)
	{
		zkl_job_role(role);
		check_room(role);
		make_znode(&turn->target, ZKL_HISTORY_NODE, role);
	}
	return rc == ZKL_RC_OK;
}

static bool
is_readable(const ZklTurn *turn, ZklHistory *history)
{
	return turn->from_length <= ZKL_MAX_NODE_DATA &&
		history_read(turn->from, turn->from_length, history);
}

int64
zkl_job_time(void)
{
	int64		now_ms;
	int			tries = 0;

	while (!try_time(&now_ms))
	{
		if (++tries == MAX_TRIES)
			zkl_refusal_raise_unreachable();
	}
	return now_ms;
}

void
zkl_job_read(ZklTurn *turn, ZklHistory *history,
			 void (*check_room) (const char *role))
{
	int			tries = 0;

	while (!try_history(turn, check_room))
	{
		if (++tries == MAX_TRIES)
			zkl_refusal_raise_unreachable();
	}
	if (!is_readable(turn, history))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("history of \"%s\" is not readable",
						turn->target.name),
				 errdetail("The znode \"%s%s/%s\" contains data that zk_once() did not write.",
						   zkl_root, turn->target.path, ZKL_HISTORY_NODE),
				 errhint("If that data is not needed, call zk_once_reset().")));
}

bool
zkl_job_look(const ZklTarget *job, ZklJobRecord *record)
{
	ZklTurn		turn = {0};

	turn.target = *job;
	if (get_history(&turn, true, &record->mtime) != ZKL_RC_OK)
		return false;
	record->readable = is_readable(&turn, &record->history);
	record->version = turn.version;
	return true;
}

bool
zkl_job_read_record(const char *name, const ZklErrandAnswer *answer, ZklJobRecord *record)
{
	if (answer->rc != ZKL_RC_OK && !zkl_zkapi_is_definite(answer->rc))
		zkl_refusal_raise_failed(zkl_text_to_display(name, (int) strlen(name)),
								 ZKL_ERROR_ZOOKEEPER, answer->rc);
	memset(record, 0, sizeof(*record));
	if (answer->rc != ZKL_RC_OK)
		return answer->rc != ZKL_RC_NONODE;
	record->readable = history_read(answer->bytes, answer->size, &record->history);
	record->mtime = answer->stat.mtime;
	record->version = answer->stat.version;
	return true;
}

/* ---- forgetting ---- */

/*
 * If it is not known whether the znode was deleted, the version tells: should the
 * next try find another one, somebody has made a new znode.
 */
bool
zkl_job_delete(const ZklTarget *job, int32 version)
{
	ZklErrand  *errand = zkl_errand_make(ZKL_ERRAND_DELETE, job,
										 ZKL_HISTORY_NODE, 0);
	int			tries = 0;
	int32		rc;

	errand->version = version;
	while ((rc = zkl_errand_run(errand, job)) == ZKL_RC_UNKNOWN)
	{
		if (++tries == MAX_TRIES)
			zkl_refusal_raise_unreachable();
	}
	zkl_errand_free(errand);
	if (rc != ZKL_RC_OK && rc != ZKL_RC_NONODE && rc != ZKL_RC_BADVERSION)
		zkl_refusal_raise_failed(job->name, ZKL_ERROR_ZOOKEEPER, rc);
	return rc == ZKL_RC_OK || (rc == ZKL_RC_NONODE && tries > 0);
}

bool
zkl_job_has_history(const ZklTarget *job)
{
	ZklTurn		turn = {0};

	turn.target = *job;
	return get_history(&turn, true, NULL) != ZKL_RC_NONODE;
}

/* The role stays: one that is not known becomes that of the caller. */
static bool
empty_history(ZklTurn *turn)
{
	ZklHistory	history;
	bool		readable = is_readable(turn, &history);

	if (!readable || history.role[0] == '\0')
		zkl_job_role(history.role);
	turn->to_length = history_write_empty(history.role, turn->to);
	return !readable || history.period_at > 0 || history.nkeys > 0;
}

/* False: the history changed meanwhile, or it is not known what was done. */
static bool
try_forget(ZklTurn *turn)
{
	ZklErrand  *set = zkl_errand_make(ZKL_ERRAND_SET, &turn->target,
									  ZKL_HISTORY_NODE, 0);
	bool		done;

	set->version = turn->version;
	set->length = turn->to_length;
	memcpy(set->data, turn->to, turn->to_length);
	if (zkl_errand_run(set, &turn->target) == ZKL_RC_BADVERSION)
		set->answer.rc = ZKL_RC_UNKNOWN;
	done = is_errand_done(set, &turn->target);
	zkl_errand_free(set);
	return done;
}

/*
 * What is written differs from all that was there before, so that the epilogue
 * of a turn whose lock was lost does not take it for what it is to change.
 */
bool
zkl_job_forget(const ZklTarget *job)
{
	ZklTurn		turn = {0};
	bool		had = false;
	int			tries;

	turn.target = *job;
	for (tries = 0; tries < MAX_TRIES; tries++)
	{
		int32		rc = get_history(&turn, false, NULL);

		if (rc == ZKL_RC_NONODE)
			return had;
		had = empty_history(&turn) || had;
		if (try_forget(&turn))
			return had;
	}
	zkl_refusal_raise_unreachable();
}
