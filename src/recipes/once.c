/*
 * once.c
 *	  What SQL does with jobs: zk_once() and zk_run_once() give a turn to one
 *	  transaction among all servers.
 *
 * Owns the way from SQL arguments to a turn, how the statements of a job are run,
 * and which histories are old.  Run by backends.  Takes no locks but the distributed
 * ones of jobs; waits for errands.
 *
 * Must not know how a turn is used up, nor read any clock of this server.
 */
#include "postgres.h"

#include "backend/commit.h"
#include "backend/hold.h"
#include "backend/refusal.h"
#include "backend/target.h"
#include "backend/wait.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "nodes/pg_list.h"
#include "parser/parser.h"
#include "parser/scansup.h"
#include "recipes/once.h"
#include "shared/compat.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

ZKL_FUNCTION(zkl_sql_once);
ZKL_FUNCTION(zkl_sql_time);
ZKL_FUNCTION(zkl_sql_once_reset);

static void jobs_check_room(const char *role);

/* ---- arguments ---- */

pg_noreturn static void
bad_argument(const char *message)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s", message)));
	pg_unreachable();
}

/* The guarantee of that name, "at_most_once" or "at_least_once"; else error 22023 */
static bool
once_is_at_least(const text *guarantee)
{
	const char *name = text_to_cstring(guarantee);

	if (strcmp(name, "at_most_once") == 0)
		return false;
	if (strcmp(name, "at_least_once") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid guarantee: \"%s\"", name),
				 errhint("Valid guarantees are \"at_most_once\" and \"at_least_once\".")));
	return true;
}

static void
read_run_key(const text *argument, char *key)
{
	char	   *name = text_to_cstring(argument);
	char	   *utf8 = name;
	const char *c;

	if (GetDatabaseEncoding() != PG_SQL_ASCII)
		utf8 = pg_server_to_any(name, strlen(name), PG_UTF8);
	if (utf8[0] == '\0')
		bad_argument("run key must not be empty");
	if (strlen(utf8) > ZKL_MAX_RUN_KEY)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("run key is too long"),
				 errdetail("It must have at most %d bytes in UTF-8.",
						   ZKL_MAX_RUN_KEY)));
	if (pg_encoding_verifymbstr(PG_UTF8, utf8, strlen(utf8)) !=
		(int) strlen(utf8))
		bad_argument("run key must be valid UTF-8");
	for (c = utf8; *c != '\0'; c++)
	{
		if ((uint8) *c < ' ' || *c == '\x7f')
			bad_argument("run key must not contain control characters");
	}
	strlcpy(key, utf8, ZKL_MAX_RUN_KEY + 1);
}

/*
 * Which turn the arguments with these numbers mean: that of a period, with its time zone,
 * or of a run key.  Error 22004 if there is neither, 22023 if there are both.
 */
static void
once_read_id(FunctionCallInfo fcinfo, int period, int zone, int key, ZklTurnId *id)
{
	if (PG_ARGISNULL(key))
	{
		zkl_target_need(fcinfo, period, "period or run key");
		zkl_target_need(fcinfo, zone, "time zone");
		id->period = zkl_history_make(PG_GETARG_INTERVAL_P(period),
									  text_to_cstring(PG_GETARG_TEXT_PP(zone)));
		return;
	}
	if (!PG_ARGISNULL(period))
		bad_argument("a run must not have both a period and a run key");
	read_run_key(PG_GETARG_TEXT_PP(key), id->key);
}

/* ---- the turn ---- */

/* The job of that name, of which a call takes turns: its lock */
static ZklTarget
once_job(const text *name)
{
	return zkl_target_reserved(name, ZKL_ONCE_DIRECTORY, ZKL_MAY_ONCE);
}

/* The name of the job, as the caller gave it */
static const char *
user_name(const ZklTarget *job)
{
	return zkl_text_for_client(job->name + strlen(ZKL_ONCE_DIRECTORY));
}

static const char *
time_string(int64 ms)
{
	return pstrdup(timestamptz_to_str(time_t_to_timestamptz(ms / 1000) +
									  ms % 1000 * 1000));
}

/*
 * If ZooKeeper's clock was ahead then, or is behind now, a turn may count as used
 * up although no transaction had it.  While this call waited for the lock, a
 * later call may have run first: so it looks at the time again.
 */
static void
warn_if_ahead(const ZklTarget *job, const ZklHistory *history,
			  const ZklTurnId *id, int64 called_ms)
{
	int64		now_ms;

	if (!zkl_history_is_ahead(history, id, called_ms))
		return;
	now_ms = zkl_job_time();
	if (!zkl_history_is_ahead(history, id, now_ms))
		return;
	ereport(WARNING,
			(errmsg("last run of \"%s\" is in the future",
					user_name(job)),
			 errdetail("It was recorded at %s, but ZooKeeper's clock now says %s.  Every period up to that time counts as done.",
					   time_string(history->period_at), time_string(now_ms)),
			 errhint("Check the clocks of the ZooKeeper servers.  To let the job run before that time, call zk_once_reset().")));
}

static bool
is_same_turn(const ZklTurn *turn, const ZklTurnId *id, bool at_least_once)
{
	return zkl_history_equal(&turn->id.period, &id->period) &&
		strcmp(turn->id.key, id->key) == 0 &&
		turn->at_least_once == at_least_once;
}

/* Takes a turn whose job, lifetime and token are known, under the job's lock. */
static bool
take_locked(ZklTurn *turn, const ZklTurnId *id, bool at_least_once, int64 now_ms)
{
	ZklHistory	history;

	zkl_job_read(turn, &history, jobs_check_room);
	if (zkl_history_has(&history, id, now_ms))
	{
		warn_if_ahead(&turn->target, &history, id, now_ms);
		return false;
	}
	turn->id = *id;
	turn->at_least_once = at_least_once;
	turn->to_length = zkl_history_write(&history, id, now_ms, turn->to);
	zkl_job_take(turn);
	return true;
}

/*
 * Takes the turn for a session that has the job's lock, in the period of called_ms.  It
 * has the turn until that lock ends, or the turn is used up or passed on: see job.h.
 * False: it was used up.
 */
static bool
once_take_for_session(const ZklTarget *job, const ZklTurnId *id, bool at_least_once,
					  int64 called_ms)
{
	ZklTurn		turn = {.target = *job,.lifetime = ZKL_LIFETIME_SESSION};

	turn.token = zkl_hold_find(job, ZKL_EXCLUSIVE, ZKL_LIFETIME_SESSION)->grant.token;
	return take_locked(&turn, id, at_least_once, called_ms);
}

/*
 * Waits for the job's lock, and takes the turn for the transaction; in the period of
 * called_ms, when the caller was called, by zkl_job_time(), or of now (0).  False: it
 * was used up.  Error 0A000 if the transaction has another turn of the job.
 *
 * A turn that was taken is ours until the transaction ends, whatever the time;
 * the commit checks its lock.  The time of the call decides which period is
 * meant: if the call waits while another transaction runs a long job, it still
 * does not mean the next period.  called_ms is the time of an earlier call, or 0.
 */
static bool
once_take(const ZklTarget *job, const ZklTurnId *id, bool at_least_once, int64 called_ms)
{
	ZklTurn    *had = zkl_job_find(job);
	ZklTurn		turn = {.target = *job,.lifetime = ZKL_LIFETIME_TRANSACTION};
	int64		now_ms;

	if (had != NULL && is_same_turn(had, id, at_least_once))
		return true;
	if (had != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot take two turns of \"%s\" in one transaction",
						user_name(job)),
				 errhint("Use a separate transaction or a different name for each.")));
	now_ms = zkl_job_time();
	if (called_ms > now_ms)
		bad_argument("called_at must not be in the future");
	if (called_ms != 0)
		now_ms = called_ms;
	turn.token = zkl_job_lock(job);
	if (take_locked(&turn, id, at_least_once, now_ms))
		return true;
	zkl_job_unlock(job);
	return false;
}

/* ---- forgetting ---- */

/*
 * Waits under the job's lock until no other transaction has a turn.  Returns
 * whether there was anything to forget.
 */
static bool
reset_job(const text *name)
{
	ZklTarget	job = once_job(name);
	bool		had;

	if (zkl_job_find(&job) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("cannot reset \"%s\" in a transaction that has a turn of it",
						user_name(&job)),
				 errhint("Call zk_once_reset() in a separate transaction.")));
	if (!zkl_job_has_history(&job))
		return false;
	(void) zkl_job_lock(&job);
	had = zkl_job_forget(&job);
	zkl_job_unlock(&job);
	if (had)
		ereport(LOG,
				(errmsg("history of \"%s\" was reset by process %d (user \"%s\")",
						job.name, MyProcPid,
						GetUserNameFromId(GetUserId(), true))));
	return had;
}

/* ---- SQL ---- */

/* In ms since 1970 */
static int64
read_called_at(TimestampTz time)
{
	int64		ms = time / 1000 +
	(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * INT64CONST(86400000);

	if (TIMESTAMP_NOT_FINITE(time) || ms <= 0)
		bad_argument("called_at must be finite, and later than 1970");
	return ms;
}

/* (path, period, zone, guarantee, called_at, key) */
Datum
zkl_sql_once(PG_FUNCTION_ARGS)
{
	text	   *name = zkl_target_name(fcinfo);
	ZklTurnId	id = {0};
	ZklTarget	job;

	zkl_target_need(fcinfo, 3, "guarantee");
	once_read_id(fcinfo, 1, 2, 5, &id);
	if (!PG_ARGISNULL(4) && !PG_ARGISNULL(5))
		bad_argument("called_at is for a period");
	job = once_job(name);
	PG_RETURN_BOOL(once_take(&job, &id, once_is_at_least(PG_GETARG_TEXT_PP(3)),
							 PG_ARGISNULL(4) ? 0 : read_called_at(PG_GETARG_TIMESTAMPTZ(4))));
}

Datum
zkl_sql_time(PG_FUNCTION_ARGS)
{
	int64		ms = zkl_job_time();

	PG_RETURN_TIMESTAMPTZ(time_t_to_timestamptz(ms / 1000) + ms % 1000 * 1000);
}

Datum
zkl_sql_once_reset(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(reset_job(PG_GETARG_TEXT_PP(0)));
}

/* ---- job_run ---- */

/*
 * zk_run_once() and zk_run_exclusive(): run SQL under a lock of all servers.
 *
 * Takes no locks but the distributed one.
 *
 * Must not know how a turn is used up, nor how a lock is granted.
 *
 * The statements may be CALLs that commit and roll back.  So the call has the lock, and
 * the turn, for a session, until it ends; and before that, its last transaction has both.
 */

ZKL_FUNCTION(zkl_sql_run_once);
ZKL_FUNCTION(zkl_sql_run_exclusive);

typedef struct Run
{
	FunctionCallInfo fcinfo;
	const char *path;			/* as the caller gave it, for messages */
	ZklTarget	lock;			/* of the run */
	int64		timeout_ms;
	const char *sql;
	List	   *statements;		/* of RawStmt */
	bool		is_once;		/* and then: */
	bool		at_least_once;
	ZklTurnId	id;
	int64		called_ms;
} Run;

/* ---- arguments ---- */

/* A position in the SQL is none in the CALL: see _SPI_error_callback() in spi.c. */
static void
syntax_callback(void *sql)
{
	int			position = geterrposition();

	if (position <= 0)
		return;
	errposition(0);
	internalerrposition(position);
	internalerrquery(sql);
}

static List *
parse(const char *sql)
{
	ErrorContextCallback callback = {
		.callback = syntax_callback,
		.arg = unconstify(char *, sql),
		.previous = error_context_stack
	};
	List	   *statements;

	error_context_stack = &callback;
	statements = raw_parser(sql, RAW_PARSE_DEFAULT);
	error_context_stack = callback.previous;
	return statements;
}

static void
read_run(Run *run, FunctionCallInfo fcinfo, int sql, int timeout)
{
	zkl_gate_check();
	zkl_target_need(fcinfo, sql, "SQL");
	run->fcinfo = fcinfo;
	run->path = zkl_text_for_client(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	run->timeout_ms = zkl_target_timeout_ms(fcinfo, timeout);
	run->sql = text_to_cstring(PG_GETARG_TEXT_PP(sql));
	run->statements = parse(run->sql);
	if (run->statements == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("SQL must contain a statement")));
}

/* ---- statements ---- */

/* What PostgreSQL refuses within a transaction block, it refuses here. */
static void
statement_callback(void *arg)
{
	if (geterrcode() == ERRCODE_ACTIVE_SQL_TRANSACTION)
		errhint("Take the lock for the session, with CALL zk_await_lock(), and run the statement by itself behind that.");
}

static int
execute(const char *sql, bool may_commit)
{
	SPIExecuteOptions options = {.allow_nonatomic = may_commit};
	ErrorContextCallback callback = {
		.callback = statement_callback,
		.previous = error_context_stack
	};
	int			rc;

	error_context_stack = &callback;
	rc = SPI_execute_extended(sql, &options);
	error_context_stack = callback.previous;
	return rc;
}

static void
run_one_statement(const char *sql, const RawStmt * statement)
{
	const char *first = sql + statement->stmt_location;
	const char *end = statement->stmt_len > 0 ? first + statement->stmt_len : strchr(first, '\0');
	int			rc;

	while (scanner_isspace(*first))
		first++;
	rc = execute(pnstrdup(first, end - first),
				 IsA(statement->stmt, CallStmt) || IsA(statement->stmt, DoStmt));
	if (rc == SPI_ERROR_TRANSACTION)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_TERMINATION),
				 errmsg("cannot execute transaction commands as statements of a run"),
				 errhint("Let the run CALL a procedure that commits.")));
	if (rc == SPI_ERROR_COPY)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot COPY to or from the client as a statement of a run")));
	if (rc < 0)
		elog(ERROR, "SPI_execute_extended failed: %s", SPI_result_code_string(rc));
}

/* One after the other; those that may commit do so as if the client had sent them. */
static void
run_statements(const Run *run)
{
	bool		atomic = castNode(CallContext, run->fcinfo->context)->atomic;
	ListCell   *cell;

	if (SPI_connect_ext(atomic ? 0 : SPI_OPT_NONATOMIC) != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect_ext failed");
	foreach(cell, run->statements)
		run_one_statement(run->sql, lfirst_node(RawStmt, cell));
	SPI_finish();
	zkl_snapshot_regain();
}

/* ---- what is told ---- */

static const char *
when(int64 ms)
{
	return timestamptz_to_str(time_t_to_timestamptz(ms / 1000));
}

/* Why it is skipped: the lock was not to be had in time. */
static const char *
words_of_holder(const Run *run)
{
	ZklLockQueue queue;
	ZklNodeData data;

	zkl_errand_read_queue(&run->lock, &queue);
	if (queue.n == 0 ||
		!zkl_node_data_parse(queue.entries[0].data, queue.entries[0].length, &data) ||
		data.cached || data.since <= 0)
		return "skipped: another client has the lock";
	return psprintf("skipped: server \"%s\" has the lock since %s",
					zkl_text_to_display(data.server, (int) strlen(data.server)),
					when(data.since + data.waited_ms));
}

/* Whether this turn was the last one, of which a history knows more */
static bool
was_last_turn(const ZklHistory *history, const ZklTurnId *id)
{
	if (id->key[0] == '\0')
		return history->at != 0 && history->at == history->period_at;
	return history->nkeys > 0 && strcmp(history->keys[0], id->key) == 0 &&
		history->at != history->period_at;
}

/* Why it is skipped: the turn is used up. */
static const char *
words_of_turn(const Run *run)
{
	ZklJobRecord record;

	if (!zkl_job_look(&run->lock, &record) || !record.readable ||
		!was_last_turn(&record.history, &run->id))
		return "skipped: it has been run";
	return psprintf("skipped: server \"%s\" ran it at %s",
					zkl_text_to_display(record.history.server,
										(int) strlen(record.history.server)),
					when(record.history.at));
}

static const char *
words_of_run(void)
{
	const char *server = zkl_settings_server_name();

	return psprintf("run by server \"%s\"", zkl_text_to_display(server, (int) strlen(server)));
}

/* The result of a procedure is a row of its output arguments. */
static Datum
tell_and_return(const Run *run, bool ran, const char *words)
{
	TupleDesc	columns;
	const char *shown = zkl_text_for_client(words);
	Datum		values[] = {BoolGetDatum(ran), CStringGetTextDatum(shown)};
	bool		nulls[] = {false, false};

	ereport(NOTICE, (errmsg("\"%s\": %s", run->path, shown)));
	if (get_call_result_type(run->fcinfo, NULL, &columns) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(columns), values, nulls));
}

/* ---- the run ---- */

/* Waits without a snapshot.  False: not in time. */
static bool
take_lock(const Run *run)
{
	ZklLockRequest request = {
		.lock = run->lock,
		.mode = ZKL_EXCLUSIVE,
		.lifetime = ZKL_LIFETIME_SESSION,
		.timeout_ms = run->timeout_ms,
		.is_try = zkl_acquire_is_try(true, run->timeout_ms),
		.within_call = true,
		.keeps_snapshot = zkl_snapshot_give_up(run->fcinfo)
	};
	int64		token;
	bool		taken = zkl_acquire(&request, 1, &token);

	zkl_snapshot_regain();
	return taken;
}

/* Under the lock.  False: there was nothing to do. */
static bool
do_run(const Run *run)
{
	if (run->is_once &&
		!once_take_for_session(&run->lock, &run->id, run->at_least_once, run->called_ms))
		return false;
	run_statements(run);

	/*
	 * Without a lease the next wait has no end: it would be one for
	 * ZooKeeper.
	 */
	zkl_commit_check_wait(NULL);
	(void) zkl_job_lock(&run->lock);
	if (run->is_once)
		zkl_job_pass_on(&run->lock);
	return true;
}

static Datum
run_locked(const Run *run)
{
	bool		ran = false;

	if (!take_lock(run))
		return tell_and_return(run, false, words_of_holder(run));
	PG_TRY();
	{
		ran = do_run(run);
		if (ran)
			(void) zkl_held_release_lock(&run->lock, ZKL_EXCLUSIVE);
		else
			zkl_held_abandon(&run->lock, ZKL_EXCLUSIVE, ZKL_LIFETIME_SESSION);
	}
	PG_CATCH();
	{
		zkl_held_abandon(&run->lock, ZKL_EXCLUSIVE, ZKL_LIFETIME_SESSION);
		PG_RE_THROW();
	}
	PG_END_TRY();
	return tell_and_return(run, ran, ran ? words_of_run() : words_of_turn(run));
}

/* ---- SQL ---- */

/* (path, period, sql, zone, guarantee, timeout, key) */
Datum
zkl_sql_run_once(PG_FUNCTION_ARGS)
{
	Run			run = {.is_once = true};
	text	   *name = zkl_target_name(fcinfo);

	zkl_target_need(fcinfo, 4, "guarantee");
	read_run(&run, fcinfo, 2, 5);
	once_read_id(fcinfo, 1, 3, 6, &run.id);
	run.at_least_once = once_is_at_least(PG_GETARG_TEXT_PP(4));
	run.lock = once_job(name);
	if (zkl_hold_lookup(&run.lock) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("\"%s\" is run by this session already", run.path)));
	run.called_ms = zkl_job_time();
	return run_locked(&run);
}

/* (path, sql, timeout) */
Datum
zkl_sql_run_exclusive(PG_FUNCTION_ARGS)
{
	Run			run = {0};
	text	   *name = zkl_target_name(fcinfo);

	read_run(&run, fcinfo, 1, 2);
	run.lock = zkl_target_lock(name, ZKL_MAY_LOCK);
	return run_locked(&run);
}

/* ---- jobs: all jobs of zk_once() that have a history ---- */

/*
 * Takes no locks but the distributed ones of the jobs that it purges; waits for
 * errands.
 *
 * Must not know how a history is read or written.
 *
 * The directory of a job has its history, the znodes of its lock, and the
 * directories of the jobs whose names begin with its own.
 */

static ZklTarget
job_at(const char *path)
{
	ZklTarget	target = {path, zkl_text_to_display(path, (int) strlen(path)),
	ZKL_DIALECT_CURATOR_RW};

	return target;
}

/* ---- the walk ---- */

/*
 * Goes down level by level, as many directories at a time as an errand reads.  The names
 * are those of jobs, without the first slash.
 */
typedef struct Walk
{
	MemoryContext context;
	List	   *level;			/* directories that are yet to be read */
	const char **names;			/* those that are being read */
	List	   *jobs;			/* directories that have a history */
} Walk;

static const ZklTarget once_directory = {ZKL_ONCE_DIRECTORY, ZKL_ONCE_DIRECTORY,
ZKL_DIALECT_CURATOR_RW};

static bool
is_turn(const char *name)
{
	ZklLockMode mode;
	ZklSeq		seq;
	bool		has_uuid;
	ZklUuid		uuid;

	return zkl_znode_parse(ZKL_DIALECT_CURATOR_RW, name, &mode, &seq, &has_uuid,
						   &uuid);
}

/*
 * In memory of the walk; "directory" is empty at the top.  A name that is too long is
 * none that we made.
 */
static void
add_child(Walk *walk, const char *directory, const char *child)
{
	MemoryContext old = MemoryContextSwitchTo(walk->context);
	Size		most = ZKL_MAX_NAME - strlen(ZKL_ONCE_DIRECTORY "/");
	bool		top = directory[0] == '\0';

	if (!top && strcmp(child, ZKL_HISTORY_NODE) == 0)
		walk->jobs = lappend(walk->jobs, pstrdup(directory));
	else if (child[0] != '.' && !is_turn(child) &&
			 strlen(directory) + !top + strlen(child) <= most)
		walk->level = lappend(walk->level,
							  psprintf("%s%s%s", directory, top ? "" : "/", child));
	MemoryContextSwitchTo(old);
}

/* As new as this call, so what is read next is it, too. */
static void
list_top(Walk *walk)
{
	ZklErrand  *errand = zkl_errand_list(&once_directory, true);
	const char *name = NULL;

	while ((name = zkl_errand_next(errand, name)) != NULL)
		add_child(walk, "", name);
	zkl_errand_free(errand);
}

static void
take_job_names(void *arg, int number, const ZklErrandAnswer *answer)
{
	Walk	   *walk = arg;
	const char *directory = walk->names[number];
	const char *name;

	if (answer->rc != ZKL_RC_OK && answer->rc != ZKL_RC_NONODE)
		zkl_refusal_raise_failed(job_at(psprintf("%s/%s", ZKL_ONCE_DIRECTORY, directory)).name,
								 ZKL_ERROR_ZOOKEEPER, answer->rc);
	for (name = answer->bytes; name < answer->bytes + answer->size;
		 name += strlen(name) + 1)
		add_child(walk, directory, name);
}

/* The strings of a list */
static const char **
strings_of(const List *list)
{
	const char **strings = palloc((list_length(list) + 1) * sizeof(char *));
	int			i;

	for (i = 0; i < list_length(list); i++)
		strings[i] = list_nth(list, i);
	return strings;
}

/* The jobs that have a history */
static List *
find_jobs(void)
{
	Walk		walk = {CurrentMemoryContext};

	list_top(&walk);
	while (walk.level != NIL)
	{
		int			n = list_length(walk.level);

		walk.names = strings_of(walk.level);
		walk.level = NIL;
		zkl_errand_read_each(ZKL_ERRAND_LIST, &once_directory, walk.names, n,
							 take_job_names, &walk);
	}
	return walk.jobs;
}

typedef struct Reader
{
	void		(*fn) (void *arg, const char *name, const ZklJobRecord *record);
	void	   *arg;
	const List *jobs;
	ZklJobRecord record;
} Reader;

static void
take_history(void *arg, int number, const ZklErrandAnswer *answer)
{
	Reader	   *reader = arg;
	char	   *name = psprintf("/%s", (char *) list_nth(reader->jobs, number));

	if (zkl_job_read_record(name, answer, &reader->record))
		reader->fn(reader->arg, name, &reader->record);
}

void
zkl_jobs_each(void (*fn) (void *arg, const char *name,
						  const ZklJobRecord *record), void *arg)
{
	List	   *jobs = find_jobs();
	int			n = list_length(jobs);
	const char **histories = palloc((n + 1) * sizeof(char *));
	Reader	   *reader = palloc0(sizeof(Reader));
	int			i;

	reader->fn = fn;
	reader->arg = arg;
	reader->jobs = jobs;
	for (i = 0; i < n; i++)
		histories[i] = psprintf("%s/%s", (char *) list_nth(jobs, i), ZKL_HISTORY_NODE);
	zkl_errand_read_each(ZKL_ERRAND_GET, &once_directory, histories, n, take_history,
						 reader);
}

/* ---- how many ---- */

typedef struct JobCount
{
	const char *role;
	int			n;
} JobCount;

static void
count_own(void *arg, const char *name, const ZklJobRecord *record)
{
	JobCount   *count = arg;

	if (record->readable && strcmp(record->history.role, count->role) == 0)
		count->n++;
}

/* Only if there are so many histories at all, their roles are read. */
static void
jobs_check_room(const char *role)
{
	JobCount	own = {role, 0};

	if (superuser_arg(GetSessionUserId()))
		return;
	if (list_length(find_jobs()) >= ZKL_JOBS_PER_ROLE)
		zkl_jobs_each(count_own, &own);
	if (own.n >= ZKL_JOBS_PER_ROLE)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too many jobs are recorded for role \"%s\"",
						zkl_text_to_display(role, (int) strlen(role))),
				 errdetail("ZooKeeper has records of %d jobs that this role was the first to run.",
						   own.n),
				 errhint("Remove those that are no longer used with zk_once_purge().")));
}

/* ---- old histories ---- */

typedef struct Purge
{
	int64		before;			/* ms since 1970 */
	const char *role;			/* NULL: any */
	int64		purged;
} Purge;

static bool
may_go(const Purge *purge, const ZklJobRecord *record)
{
	return record->readable && record->mtime <= purge->before &&
		(purge->role == NULL || strcmp(record->history.role, purge->role) == 0);
}

/* Other sessions write only under the job's lock, so the second look decides. */
static void
purge_locked(Purge *purge, const ZklTarget *job)
{
	ZklJobRecord *record = palloc0(sizeof(ZklJobRecord));

	if (zkl_job_look(job, record) && may_go(purge, record) &&
		zkl_job_delete(job, record->version))
		purge->purged++;
	pfree(record);
}

static void
purge_if_old(void *arg, const char *name, const ZklJobRecord *record)
{
	Purge	   *purge = arg;
	char	   *path = psprintf("%s%s", ZKL_ONCE_DIRECTORY, name);
	ZklTarget	job = job_at(path);

	if (may_go(purge, record) && zkl_job_find(&job) == NULL &&
		zkl_job_try_lock(&job))
	{
		purge_locked(purge, &job);
		zkl_job_unlock(&job);
	}
	pfree(path);
}

int64
zkl_jobs_purge(int64 unused_ms, const char *role)
{
	Purge		purge = {zkl_job_time(), role, 0};

	if (unused_ms > purge.before)
		return 0;
	purge.before -= unused_ms;
	zkl_jobs_each(purge_if_old, &purge);
	return purge.purged;
}
