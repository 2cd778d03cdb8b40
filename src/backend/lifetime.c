/*
 * lifetime.c
 *	  When holds end by themselves: with transactions, and with the session.
 *
 * Owns the callbacks and hooks by which holds end.  Run by backends.  Takes no
 * locks; what it changes in shared memory it changes through backend_slot.h.
 *
 * Must not know how a request is answered, nor anything of ZooKeeper.
 *
 * A hold of session lifetime ends by unlock, DISCARD ALL or the end of the
 * session.  One of transaction lifetime ends with its transaction, or with the
 * subtransaction that acquired it.  By then the transaction is visible to others or
 * fully undone, its catalog changes are announced, and its other locks are released.
 * PostgreSQL releases its own advisory locks as late (CommitTransaction in xact.c).
 * The callbacks that end holds only set flags and latches.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "backend/admission.h"
#include "backend/backend_slot.h"
#include "backend/cancel.h"
#include "backend/commit.h"
#include "backend/hold.h"
#include "backend/lifetime.h"
#include "backend/statement.h"
#include "backend/tell.h"
#include "backend/text.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "shared/compat.h"
#include "shared/loaded.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "storage/ipc.h"
#include "tcop/utility.h"
#include "utils/fmgrprotos.h"
#include "utils/resowner.h"

static ProcessUtility_hook_type previous_utility_hook = NULL;
static ExecutorStart_hook_type previous_executor_start_hook = NULL;
static ExecutorRun_hook_type previous_executor_run_hook = NULL;
static ExecutorFinish_hook_type previous_executor_finish_hook = NULL;
static ExecutorEnd_hook_type previous_executor_end_hook = NULL;
static bool exit_registered = false;

/* Set between the end of a transaction, or subtransaction, and its release */
static bool transaction_over = false;
static XactEvent transaction_end;
static SubTransactionId subtransaction_over = InvalidSubTransactionId;
static int	utility_depth = 0;	/* of utility statements that run */
static int	query_depth = 0;	/* of queries that run */
static bool in_procedure = false;	/* the outermost one is a client's CALL or
									 * DO */
static bool in_block = false;	/* between BEGIN and COMMIT */
static bool chains = false;		/* COMMIT AND CHAIN: a block follows */

/* ---- ending ---- */

static void
end_holds(ZklLifetime lifetime)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &zkl_holds[lifetime])
		zkl_hold_end(dlist_container(ZklHold, link, iter.cur));
}

/* ---- transactions ---- */

/* The client learns of each loss that it was not told of yet. */
static void
tell_lost(void)
{
	int			i;

	for (i = 0; i < lengthof(zkl_holds); i++)
	{
		dlist_iter	iter;

		dlist_foreach(iter, &zkl_holds[i])
		{
			ZklHold    *hold = dlist_container(ZklHold, link, iter.cur);
			ZklError	error;

			if (hold->told || zkl_hold_is_good(hold, &error))
				continue;
			hold->told = true;
			ereport(WARNING,
					(errmsg("distributed lock \"%s\" was lost",
							zkl_text_for_client(hold->name)),
					 errdetail("%s", zkl_slot_lost_detail(error))));
		}
	}
}

static void
end_transaction(XactEvent event)
{
	bool		aborted = event == XACT_EVENT_ABORT;

	zkl_commit_end_steps(!aborted);
	if (aborted && zkl_hold_is_any() && !proc_exit_inprogress)
	{
		tell_lost();
		zkl_tell_release_requests();
	}
	zkl_cancel_stand_by();
	transaction_over = true;
	transaction_end = event;
}

static void
release_transaction(void)
{
	transaction_over = false;
	subtransaction_over = InvalidSubTransactionId;
	in_block = chains && transaction_end == XACT_EVENT_COMMIT;
	chains = false;
	if (transaction_end != XACT_EVENT_ABORT && zkl_commit_is_checked())
		zkl_tell_note_late(transaction_end == XACT_EVENT_PREPARE);
	end_holds(ZKL_LIFETIME_TRANSACTION);
	zkl_commit_forget();
	if (zkl_hold_is_any())
		zkl_admission_drain_resign();
}

/*
 * Registered before all that are registered on the way, and so the last one to
 * run: what the others waited for is behind us.
 */
static void
transaction_callback(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE)
	{
		if (zkl_commit_needs_no_check())
			tell_lost();
		zkl_commit_check_last(event == XACT_EVENT_PRE_PREPARE);
	}
	else if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE ||
			 event == XACT_EVENT_ABORT)
		end_transaction(event);
}

static void
release_subtransaction(void)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &zkl_holds[ZKL_LIFETIME_TRANSACTION])
	{
		ZklHold    *hold = dlist_container(ZklHold, link, iter.cur);
		uint32		before = hold->count;

		zkl_hold_scope_abort(hold, subtransaction_over);
		if (hold->count == 0)
			zkl_hold_end(hold);
		else if (hold->count != before)
			zkl_backend_slot_set_holds(hold->grant.slotno, hold->count);
	}
	subtransaction_over = InvalidSubTransactionId;
}

static void
subtransaction_callback(SubXactEvent event, SubTransactionId subid,
						SubTransactionId parent, void *arg)
{
	dlist_iter	iter;

	if (event == SUBXACT_EVENT_ABORT_SUB)
	{
		if (!proc_exit_inprogress)
			tell_lost();
		subtransaction_over = subid;
	}
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
	{
		dlist_foreach(iter, &zkl_holds[ZKL_LIFETIME_TRANSACTION])
			zkl_hold_scope_commit(dlist_container(ZklHold, link, iter.cur), subid,
								  parent);
	}
}

/*
 * PostgreSQL calls this for each resource owner, children first; also for those of
 * portals.  In this phase it has released all locks of the transaction.
 */
static void
release_callback(ResourceReleasePhase phase, bool is_commit, bool is_top_level,
				 void *arg)
{
	if (phase != RESOURCE_RELEASE_AFTER_LOCKS)
		return;
	if (transaction_over && is_top_level)
		release_transaction();
	else if (subtransaction_over != InvalidSubTransactionId && !is_top_level)
		release_subtransaction();
}

static void
exit_callback(int code, Datum arg)
{
	end_holds(ZKL_LIFETIME_TRANSACTION);
	end_holds(ZKL_LIFETIME_SESSION);
}

/* ---- utility statements ---- */

/*
 * Whether a statement is a transaction by itself.  If not, PostgreSQL refuses
 * those that must be (see its PreventInTransactionBlock).
 */
static bool
is_alone(ProcessUtilityContext context)
{
	return context == PROCESS_UTILITY_TOPLEVEL && !IsTransactionBlock() &&
		!IsSubTransaction() && (MyXactFlags & XACT_FLAGS_PIPELINING) == 0;
}

/*
 * COMMIT PREPARED and ROLLBACK PREPARED are done before the callbacks of their
 * own transaction run.  If they are refused, they must leave no trace here: the
 * transaction in which they stand may go on, behind a savepoint.
 */
static void
before_prepared(TransactionStmtKind kind, ProcessUtilityContext context)
{
	if (!is_alone(context))
		zkl_commit_check_soon();
	else if (kind == TRANS_STMT_COMMIT_PREPARED)
		zkl_commit_check_now();
	else
		zkl_commit_check_never();
}

/*
 * A statement counts as the only one of its transaction if no other runs around
 * it.  A procedure goes on behind a COMMIT of its own, and what it does there
 * is not always a statement: PL/pgSQL evaluates simple expressions by itself.
 */
static void
note_statement(bool looks)
{
	zkl_commit_note_statement(looks && utility_depth == 0);
}

/* ROLLBACK AND CHAIN begins a block, too, which is not known as one. */
static void
note_block(const TransactionStmt *statement)
{
	TransactionStmtKind kind = statement->kind;

	if (kind == TRANS_STMT_BEGIN || kind == TRANS_STMT_START)
		in_block = true;
	else if (kind == TRANS_STMT_COMMIT || kind == TRANS_STMT_PREPARE)
	{
		in_block = false;
		chains = statement->chain;
	}
}

/*
 * Whether a callback that PostgreSQL calls before a commit may be running this
 * statement.  An open transaction block, the statements of a procedure and deferred
 * triggers come before the callbacks.  A query may run in a callback, but none is
 * called within it, as a query cannot commit; nor within a function that a procedure
 * calls without a query, as the assignments of PL/pgSQL do.
 */
static ZklCommitPlace
place_of_statement(void)
{
	if (proc_exit_inprogress)
		return ZKL_COMMIT_ANYWHERE;
	if (in_block || zkl_compat_may_unregister())
		return ZKL_COMMIT_OUTSIDE;
	if (query_depth > 0)
		return ZKL_COMMIT_IN_QUERY;
	if (in_procedure && zkl_compat_portal_snapshot() != NULL)
		return ZKL_COMMIT_IN_PROCEDURE;
	return DatumGetInt32(DirectFunctionCall1(pg_trigger_depth, 0)) > 0 ?
		ZKL_COMMIT_OUTSIDE : ZKL_COMMIT_ANYWHERE;
}

static void
before_utility(Node *statement, ProcessUtilityContext context)
{
	TransactionStmtKind kind;

	zkl_tell_late();
	if (IsA(statement, TransactionStmt))
		note_block(castNode(TransactionStmt, statement));
	if (!IsA(statement, ExecuteStmt))	/* what it executes follows */
		note_statement(zkl_statement_is_idle(statement));
	if (!zkl_hold_is_any() || IsInParallelMode())
		return;
	zkl_tell_release_requests();
	if (!zkl_statement_may_follow_a_loss(statement))
		zkl_commit_check_statement();
	if (!IsA(statement, TransactionStmt))
	{
		zkl_commit_check_soon();
		if (!IsTransactionBlock() && zkl_statement_checks_first(statement))
			zkl_commit_check_before();
		return;
	}
	kind = castNode(TransactionStmt, statement)->kind;
	if (kind == TRANS_STMT_COMMIT || kind == TRANS_STMT_PREPARE)
		zkl_commit_check_first(place_of_statement());
	else if (kind == TRANS_STMT_COMMIT_PREPARED ||
			 kind == TRANS_STMT_ROLLBACK_PREPARED)
		before_prepared(kind, context);
	else
		zkl_commit_check_soon();
}

/*
 * After the statement, which may have brought in other extensions that commit
 * elsewhere in callbacks of theirs, as a foreign server does at its first use.
 */
static void
after_statement(void)
{
	if (!zkl_hold_is_any() || IsInParallelMode())
		return;
	zkl_tell_release_requests();
	zkl_commit_check_first(place_of_statement());
}

static void
enter_query(void)
{
	if (query_depth++ == 0)
		zkl_commit_note_query();
}

/*
 * EXECUTE is what it executes, and does nothing beside it.  Some statements fire
 * triggers without a query of their own.
 */
static void
run_utility(PlannedStmt *pstmt, const char *query, bool read_only_tree,
			ProcessUtilityContext context, ParamListInfo params,
			QueryEnvironment *environment, DestReceiver *dest,
			QueryCompletion *completion)
{
	ProcessUtility_hook_type run = previous_utility_hook != NULL ?
	previous_utility_hook : standard_ProcessUtility;
	int			depth = utility_depth;
	int			queries = query_depth;
	ZklCancelScope scope;

	zkl_cancel_enter(&scope);
	if (scope.depth == 0)
		in_procedure = zkl_statement_may_commit(pstmt->utilityStmt, context);
	if (!IsA(pstmt->utilityStmt, ExecuteStmt))
		utility_depth++;
	if (zkl_statement_fires_triggers(pstmt->utilityStmt))
		enter_query();
	PG_TRY();
	{
		run(pstmt, query, read_only_tree, context, params, environment, dest,
			completion);
	}
	PG_CATCH();
	{
		utility_depth = depth;
		query_depth = queries;
		zkl_cancel_fail(&scope);
		PG_RE_THROW();
	}
	PG_END_TRY();
	utility_depth = depth;
	query_depth = queries;
	zkl_cancel_leave(&scope);
}

static void
utility_hook(PlannedStmt *pstmt, const char *query, bool read_only_tree,
			 ProcessUtilityContext context, ParamListInfo params,
			 QueryEnvironment *environment, DestReceiver *dest,
			 QueryCompletion *completion)
{
	Node	   *statement = pstmt->utilityStmt;
	bool		discard_all = zkl_statement_is_discard_all(statement);
	bool		ends = IsA(statement, TransactionStmt);

	before_utility(statement, context);
	run_utility(pstmt, query, read_only_tree, context, params, environment,
				dest, completion);
	if (discard_all)
		end_holds(ZKL_LIFETIME_SESSION);
	zkl_admission_script_note_drop(statement);
	if (!ends)
		after_statement();
}

/*
 * Outside of a block, under a lock that is known to be lost, or may be: what
 * writes does not begin, as nothing could save it; what only looks may end
 * without a check.
 */
static void
before_plan(const PlannedStmt *plan, int flags)
{
	bool		in_doubt;

	zkl_tell_release_requests();
	zkl_commit_check_statement();
	zkl_commit_check_soon();
	in_doubt = !IsTransactionBlock() && zkl_commit_is_in_doubt();
	note_statement(in_doubt && zkl_statement_only_looks(plan));
	if (in_doubt && (flags & EXEC_FLAG_EXPLAIN_ONLY) == 0 &&
		zkl_statement_writes(plan))
		zkl_commit_check_known();
}

/*
 * What an earlier transaction left held must be checked first in this one too,
 * also where the commit is no statement of its own.
 */
static void
executor_start_hook(QueryDesc *query, int flags)
{
	zkl_tell_late();
	if (zkl_hold_is_any() && !IsInParallelMode())
		before_plan(query->plannedstmt, flags);
	else
		note_statement(false);
	if (previous_executor_start_hook)
		previous_executor_start_hook(query, flags);
	else
		standard_ExecutorStart(query, flags);
}

static void
executor_run_hook(ZKL_EXECUTOR_RUN_PARAMETERS)
{
	ExecutorRun_hook_type run = previous_executor_run_hook != NULL ?
	previous_executor_run_hook : standard_ExecutorRun;
	int			depth = query_depth;
	ZklCancelScope scope;

	zkl_cancel_enter(&scope);
	enter_query();
	PG_TRY();
	{
		run(ZKL_EXECUTOR_RUN_ARGUMENTS);
	}
	PG_CATCH();
	{
		query_depth = depth;
		zkl_cancel_fail(&scope);
		PG_RE_THROW();
	}
	PG_END_TRY();
	query_depth = depth;
	zkl_cancel_leave(&scope);
}

/* Here the triggers run that come after the query. */
static void
executor_finish_hook(QueryDesc *query)
{
	ExecutorFinish_hook_type finish = previous_executor_finish_hook != NULL ?
	previous_executor_finish_hook : standard_ExecutorFinish;
	int			depth = query_depth;
	ZklCancelScope scope;

	zkl_cancel_enter(&scope);
	enter_query();
	PG_TRY();
	{
		finish(query);
	}
	PG_CATCH();
	{
		query_depth = depth;
		zkl_cancel_fail(&scope);
		PG_RE_THROW();
	}
	PG_END_TRY();
	query_depth = depth;
	zkl_cancel_leave(&scope);
}

static void
executor_end_hook(QueryDesc *query)
{
	if (previous_executor_end_hook)
		previous_executor_end_hook(query);
	else
		standard_ExecutorEnd(query);
	after_statement();
	zkl_cancel_stand_by();
}

/* ---- what is done by calls ---- */

void
zkl_lifetime_check(void)
{
	zkl_loaded_check();
	if (IsInParallelMode())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot acquire or release distributed locks during a parallel operation")));
}

void
zkl_lifetime_begin(void)
{
	zkl_lifetime_check();
	if (!exit_registered)
	{
		on_shmem_exit(exit_callback, 0);
		exit_registered = true;
	}
	zkl_cancel_watch();
	zkl_commit_note_acquisition();
	zkl_commit_check_soon();
}

/*
 * Behind a pooler that gives a client another database session for each
 * transaction, nothing of session lifetime belongs to that client.
 */
void
zkl_lifetime_check_allowed(ZklLifetime lifetime)
{
	if (zkl_session_locks || lifetime != ZKL_LIFETIME_SESSION)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("distributed locks of session lifetime are not allowed"),
			 errdetail("\"zklock.session_locks\" is off."),
			 errhint("Use a function of transaction lifetime, such as zk_xact_lock() or zk_xact_acquire_permits().  Behind a connection pooler, session pooling allows session locks.")));
}

void
zkl_lifetime_init(void)
{
	RegisterXactCallback(transaction_callback, NULL);
	RegisterSubXactCallback(subtransaction_callback, NULL);
	RegisterResourceReleaseCallback(release_callback, NULL);
	previous_utility_hook = ProcessUtility_hook;
	ProcessUtility_hook = utility_hook;
	previous_executor_start_hook = ExecutorStart_hook;
	ExecutorStart_hook = executor_start_hook;
	previous_executor_run_hook = ExecutorRun_hook;
	ExecutorRun_hook = executor_run_hook;
	previous_executor_finish_hook = ExecutorFinish_hook;
	ExecutorFinish_hook = executor_finish_hook;
	previous_executor_end_hook = ExecutorEnd_hook;
	ExecutorEnd_hook = executor_end_hook;
}
