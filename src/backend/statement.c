/*
 * statement.c
 *	  What is done before and after each statement of a backend that holds locks.
 *
 * Owns the hooks of utility statements and of the executor, and what they know of the
 * statements that run.  Run by backends.  Takes no locks of zklock's.
 *
 * Must not know how a hold begins or ends, nor anything of ZooKeeper.
 *
 * Some statements act outside of their transaction: they delete the files of a
 * database, rewrite a configuration file, create a slot on another server.  If
 * the check fails at their commit, that is done.  PostgreSQL refuses most of
 * them inside a transaction block (see its PreventInTransactionBlock), but it
 * does not say which they are.  So the other statements are listed here: if a new
 * version adds a statement, that makes the check first.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/transam.h"
#include "access/xact.h"
#include "backend/admission.h"
#include "backend/commit.h"
#include "backend/hold.h"
#include "backend/statement.h"
#include "backend/tell.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "commands/extension.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "shared/compat.h"
#include "shared/gate.h"
#include "storage/ipc.h"
#include "tcop/utility.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"


/* What our hooks stand in front of: the hooks of other extensions, or PostgreSQL */
static ProcessUtility_hook_type next_utility;
static ExecutorStart_hook_type next_executor_start;
static ExecutorRun_hook_type next_executor_run;
static ExecutorFinish_hook_type next_executor_finish;
static ExecutorEnd_hook_type next_executor_end;

static int	utility_depth = 0;	/* of utility statements that run */
static int	query_depth = 0;	/* of queries that run */
static bool in_procedure = false;	/* the outermost one is a client's CALL or
									 * DO */
static bool in_block = false;	/* between BEGIN and COMMIT */
static bool chains = false;		/* COMMIT AND CHAIN: a block follows */

/* ---- utility statements ---- */

/* Whether a utility statement does nothing that a lock could protect */
static bool
is_idle(Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_DiscardStmt:
		case T_VariableSetStmt: /* SET and RESET */
		case T_VariableShowStmt:
		case T_ClosePortalStmt:
		case T_PrepareStmt:
		case T_DeallocateStmt:
			return true;
		default:
			return false;
	}
}

/*
 * Whether a utility statement may follow a loss that became known in the same
 * transaction: it ends that, or cleans up.  After a loss, the client must be able to do
 * both.  COMMIT meets the commit check.
 */
static bool
may_follow_a_loss(Node *statement)
{
	if (!IsA(statement, TransactionStmt))
		return is_idle(statement) && !IsA(statement, PrepareStmt);
	switch (castNode(TransactionStmt, statement)->kind)
	{
		case TRANS_STMT_COMMIT:
		case TRANS_STMT_ROLLBACK:
		case TRANS_STMT_ROLLBACK_TO:
		case TRANS_STMT_RELEASE:
			return true;
		default:
			return false;
	}
}

/*
 * Whether a utility statement makes the commit check before it does anything, if no
 * transaction block is open.  It needs no check ahead if it does nothing before the commit,
 * or if other statements do its work, which are looked at one by one.
 */
static bool
checks_first(Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_TransactionStmt: /* has rules of its own */
		case T_CallStmt:
		case T_DoStmt:
		case T_ExecuteStmt:
		case T_ExplainStmt:
		case T_DeclareCursorStmt:
		case T_FetchStmt:
		case T_ListenStmt:
		case T_UnlistenStmt:
		case T_NotifyStmt:
		case T_LoadStmt:
		case T_LockStmt:
		case T_ConstraintsSetStmt:
		case T_CheckPointStmt:
			return false;
		default:
			return !is_idle(statement);
	}
}

static bool
is_discard_all(Node *statement)
{
	return IsA(statement, DiscardStmt) &&
		castNode(DiscardStmt, statement)->target == DISCARD_ALL;
}

/* Whether a utility statement runs statements that may commit, one by one */
static bool
may_commit(Node *statement, ProcessUtilityContext context)
{
	return context == PROCESS_UTILITY_TOPLEVEL &&
		(IsA(statement, CallStmt) || IsA(statement, DoStmt));
}

static bool
drops_zklock(Node *statement)
{
	ListCell   *cell;

	if (!IsA(statement, DropStmt) ||
		castNode(DropStmt, statement)->removeType != OBJECT_EXTENSION)
		return false;
	foreach(cell, castNode(DropStmt, statement)->objects)
	{
		if (strcmp(strVal(lfirst(cell)), ZKL_EXTENSION_NAME) == 0)
			return true;
	}
	return false;
}

/* Whether a utility statement fires triggers, and cannot commit */
static bool
fires_triggers(Node *statement)
{
	return IsA(statement, CopyStmt) || IsA(statement, TruncateStmt) ||
		IsA(statement, ConstraintsSetStmt);
}

/* ---- plans ---- */

/* Whether a plan changes something, or uses a foreign server */
static bool
writes(const PlannedStmt *plan)
{
	ListCell   *cell;

	if (plan->commandType != CMD_SELECT || plan->hasModifyingCTE)
		return true;
	foreach(cell, plan->rtable)
	{
		RangeTblEntry *entry = lfirst_node(RangeTblEntry, cell);

		if (entry->rtekind == RTE_RELATION &&
			entry->relkind == RELKIND_FOREIGN_TABLE)
			return true;
	}
	return false;
}

static bool
is_zklock_function(Oid function)
{
	Oid			extension;

	if (function < FirstNormalObjectId)
		return false;
	extension = get_extension_oid(ZKL_EXTENSION_NAME, true);
	return OidIsValid(extension) &&
		getExtensionOfObject(ProcedureRelationId, function) == extension;
}

/* "context" points to whether a function of ours was met. */
static bool
function_may_act(Oid function, void *context)
{
	if (is_zklock_function(function))
	{
		*(bool *) context = true;
		return false;
	}
	return func_volatile(function) == PROVOLATILE_VOLATILE;
}

static bool
expression_may_act(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, NextValueExpr) || IsA(node, SubPlan) ||
		check_functions_in_node(node, function_may_act, context))
		return true;
	return expression_tree_walker(node, expression_may_act, context);
}

/* What a plan's node has beside its target list and its condition */
static Node *
expressions_of(Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Result:
			return ((Result *) plan)->resconstantqual;
		case T_FunctionScan:
			return (Node *) ((FunctionScan *) plan)->functions;
		case T_Limit:
			return (Node *) list_make2(((Limit *) plan)->limitOffset,
									   ((Limit *) plan)->limitCount);
		default:
			return NULL;
	}
}

static bool
plan_may_act(Plan *plan, bool *has_ours)
{
	if (plan == NULL)
		return false;
	switch (nodeTag(plan))
	{
		case T_Result:
		case T_ProjectSet:
		case T_FunctionScan:
		case T_Limit:
		case T_Sort:
		case T_Agg:
			break;
		case T_SubqueryScan:
			if (plan_may_act(((SubqueryScan *) plan)->subplan, has_ours))
				return true;
			break;
		default:
			return true;
	}
	return expression_may_act((Node *) plan->targetlist, has_ours) ||
		expression_may_act((Node *) plan->qual, has_ours) ||
		expression_may_act(expressions_of(plan), has_ours) ||
		plan_may_act(outerPlan(plan), has_ours) ||
		plan_may_act(innerPlan(plan), has_ours);
}

/*
 * Whether a plan calls functions of zklock but no other volatile ones, and reads
 * no table: such plans look at zk_status or acknowledge a loss.
 */
static bool
only_looks(const PlannedStmt *plan)
{
	bool		has_ours = false;
	ListCell   *cell;

	if (plan->commandType != CMD_SELECT || plan->hasModifyingCTE ||
		plan->subplans != NIL || plan->rowMarks != NIL)
		return false;
	foreach(cell, plan->rtable)
	{
		RangeTblEntry *entry = lfirst_node(RangeTblEntry, cell);

		if (entry->rtekind == RTE_RELATION && entry->relkind != RELKIND_VIEW)
			return false;
	}
	return !plan_may_act(plan->planTree, &has_ours) && has_ours;
}

/* ---- before and after statements ---- */

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
	if (is_alone(context))
		zkl_commit_check_now(kind == TRANS_STMT_COMMIT_PREPARED);
	else
		(void) zkl_commit_check_soon();
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
static ZklCommitContext
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
		note_statement(is_idle(statement));
	if (!zkl_hold_is_any() || IsInParallelMode())
		return;
	zkl_tell_release_requests();
	if (!may_follow_a_loss(statement))
		zkl_commit_check_statement();
	if (!IsA(statement, TransactionStmt))
	{
		(void) zkl_commit_check_soon();
		if (!IsTransactionBlock() && checks_first(statement))
			zkl_commit_check_wait(NULL);
		return;
	}
	kind = castNode(TransactionStmt, statement)->kind;
	if (kind == TRANS_STMT_COMMIT || kind == TRANS_STMT_PREPARE)
		zkl_commit_check_first(place_of_statement());
	else if (kind == TRANS_STMT_COMMIT_PREPARED ||
			 kind == TRANS_STMT_ROLLBACK_PREPARED)
		before_prepared(kind, context);
	else
		(void) zkl_commit_check_soon();
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

/* What runs around a statement, which an error restores as its end does */
typedef struct Around
{
	ZklCancelScope scope;
	int			utilities;
	int			queries;
} Around;

static void
enter_statement(Around *around)
{
	zkl_cancel_enter(&around->scope);
	around->utilities = utility_depth;
	around->queries = query_depth;
}

static void
leave_statement(Around *around, bool failed)
{
	utility_depth = around->utilities;
	query_depth = around->queries;
	if (failed)
		zkl_cancel_fail(&around->scope);
	else
		zkl_cancel_leave(&around->scope);
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
	Around		around;

	enter_statement(&around);
	if (around.scope.depth == 0)
		in_procedure = may_commit(pstmt->utilityStmt, context);
	if (!IsA(pstmt->utilityStmt, ExecuteStmt))
		utility_depth++;
	if (fires_triggers(pstmt->utilityStmt))
		enter_query();
	PG_TRY();
	{
		next_utility(pstmt, query, read_only_tree, context, params, environment, dest,
					 completion);
	}
	PG_CATCH();
	{
		leave_statement(&around, true);
		PG_RE_THROW();
	}
	PG_END_TRY();
	leave_statement(&around, false);
}

static void
utility_hook(PlannedStmt *pstmt, const char *query, bool read_only_tree,
			 ProcessUtilityContext context, ParamListInfo params,
			 QueryEnvironment *environment, DestReceiver *dest,
			 QueryCompletion *completion)
{
	Node	   *statement = pstmt->utilityStmt;
	bool		discard_all = is_discard_all(statement);
	bool		ends = IsA(statement, TransactionStmt);

	before_utility(statement, context);
	run_utility(pstmt, query, read_only_tree, context, params, environment,
				dest, completion);
	if (discard_all)
		zkl_hold_end_all(ZKL_LIFETIME_SESSION);
	if (drops_zklock(statement))
		zkl_admission_note_drop();
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
	in_doubt = zkl_commit_check_soon() && !IsTransactionBlock();
	note_statement(in_doubt && only_looks(plan));
	if (in_doubt && (flags & EXEC_FLAG_EXPLAIN_ONLY) == 0 &&
		writes(plan))
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
	next_executor_start(query, flags);
}

/* Runs a part of a query, with all statements within it. */
#define RUN_QUERY(part) \
	do { \
		Around		around; \
		enter_statement(&around); \
		enter_query(); \
		PG_TRY(); \
		{ \
			part; \
		} \
		PG_CATCH(); \
		{ \
			leave_statement(&around, true); \
			PG_RE_THROW(); \
		} \
		PG_END_TRY(); \
		leave_statement(&around, false); \
	} while (0)

static void
executor_run_hook(ZKL_EXECUTOR_RUN_PARAMETERS)
{
	RUN_QUERY(next_executor_run(ZKL_EXECUTOR_RUN_ARGUMENTS));
}

/* Here the triggers run that come after the query. */
static void
executor_finish_hook(QueryDesc *query)
{
	RUN_QUERY(next_executor_finish(query));
}

static void
executor_end_hook(QueryDesc *query)
{
	next_executor_end(query);
	after_statement();
	zkl_cancel_stand_by();
}

void
zkl_statement_end_transaction(bool committed)
{
	in_block = chains && committed;
	chains = false;
}

void
zkl_statement_init(void)
{
	next_utility = ProcessUtility_hook ? ProcessUtility_hook : standard_ProcessUtility;
	ProcessUtility_hook = utility_hook;
	next_executor_start = ExecutorStart_hook ? ExecutorStart_hook : standard_ExecutorStart;
	ExecutorStart_hook = executor_start_hook;
	next_executor_run = ExecutorRun_hook ? ExecutorRun_hook : standard_ExecutorRun;
	ExecutorRun_hook = executor_run_hook;
	next_executor_finish = ExecutorFinish_hook ? ExecutorFinish_hook : standard_ExecutorFinish;
	ExecutorFinish_hook = executor_finish_hook;
	next_executor_end = ExecutorEnd_hook ? ExecutorEnd_hook : standard_ExecutorEnd;
	ExecutorEnd_hook = executor_end_hook;
}
