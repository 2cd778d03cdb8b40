/*
 * job_run.c
 *	  zk_run_once() and zk_run_exclusive(): run SQL under a lock of all servers.
 *
 * Owns how the statements are run, and what is told of it.  Run by backends.  Takes no
 * locks but the distributed one.
 *
 * Must not know how a turn is used up, nor how a lock is granted.
 *
 * The statements may be CALLs that commit and roll back.  So the call has the lock, and
 * the turn, for a session, until it ends; and before that, its last transaction has both.
 */
#include "postgres.h"

#include "backend/commit.h"
#include "backend/hold.h"
#include "backend/target.h"
#include "backend/wait.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "nodes/parsenodes.h"
#include "parser/parser.h"
#include "parser/scansup.h"
#include "recipes/once.h"
#include "shared/compat.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

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
		!zkl_once_take_for_session(&run->lock, &run->id, run->at_least_once, run->called_ms))
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
	zkl_once_read_id(fcinfo, 1, 3, 6, &run.id);
	run.at_least_once = zkl_once_is_at_least(PG_GETARG_TEXT_PP(4));
	run.lock = zkl_once_job(name);
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
