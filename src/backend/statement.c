/*
 * statement.c
 *	  What a statement is for a backend that holds locks: whether it may follow
 *	  the loss of one, and whether it must not begin without the commit check.
 *
 * Owns nothing.  Run by backends.  Takes no locks of zklock's.
 *
 * Must not know which locks are held.
 *
 * Some statements act outside of their transaction: they delete the files of a
 * database, rewrite a configuration file, create a slot on another server.  If
 * the check fails at their commit, that is done.  PostgreSQL refuses most of
 * them inside a transaction block (see its PreventInTransactionBlock), but it
 * does not say which they are.  So the other statements are listed here: if a new
 * version adds a statement, that makes the check first.
 */
#include "postgres.h"

#include "access/transam.h"
#include "backend/statement.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "commands/extension.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"

/* ---- utility statements ---- */

/*
 * After a loss, the client must be able to end the transaction and to clean up.
 * COMMIT meets the commit check.
 */
bool
zkl_statement_may_follow_a_loss(Node *statement)
{
	if (!IsA(statement, TransactionStmt))
		return zkl_statement_is_idle(statement) &&
			!IsA(statement, PrepareStmt);
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

bool
zkl_statement_is_idle(Node *statement)
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
 * A statement needs no check ahead if it does nothing before the commit, or if
 * other statements do its work, which are looked at one by one.
 */
bool
zkl_statement_checks_first(Node *statement)
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
			return !zkl_statement_is_idle(statement);
	}
}

bool
zkl_statement_is_discard_all(Node *statement)
{
	return IsA(statement, DiscardStmt) &&
		castNode(DiscardStmt, statement)->target == DISCARD_ALL;
}

bool
zkl_statement_may_commit(Node *statement, ProcessUtilityContext context)
{
	return context == PROCESS_UTILITY_TOPLEVEL &&
		(IsA(statement, CallStmt) || IsA(statement, DoStmt));
}

bool
zkl_statement_drops_extension(Node *statement, const char *name)
{
	ListCell   *cell;

	if (!IsA(statement, DropStmt) ||
		castNode(DropStmt, statement)->removeType != OBJECT_EXTENSION)
		return false;
	foreach(cell, castNode(DropStmt, statement)->objects)
	{
		if (strcmp(strVal(lfirst(cell)), name) == 0)
			return true;
	}
	return false;
}

bool
zkl_statement_fires_triggers(Node *statement)
{
	return IsA(statement, CopyStmt) || IsA(statement, TruncateStmt) ||
		IsA(statement, ConstraintsSetStmt);
}

/* ---- plans ---- */

bool
zkl_statement_writes(const PlannedStmt *plan)
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
	extension = get_extension_oid("zklock", true);
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

bool
zkl_statement_only_looks(const PlannedStmt *plan)
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
