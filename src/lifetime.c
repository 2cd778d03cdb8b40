/*
 * lifetime.c
 *	  When a hold begins and ends: calls, transactions, the end of the session.
 *
 * Owns the callbacks and hooks by which holds end.  Run by backends.  Takes no
 * locks; what it changes in shared memory it changes through shmem.h.
 *
 * Must not know how a request is answered, nor anything of ZooKeeper.
 *
 * A hold of session lifetime ends by unlock, DISCARD ALL or the end of the
 * session.  One of transaction lifetime ends at XACT_EVENT_COMMIT or ABORT,
 * that is when the transaction is visible to others or fully undone, or with
 * the subtransaction that acquired it.  What runs there only sets flags and
 * latches.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "commit.h"
#include "encoding.h"
#include "executor/executor.h"
#include "hold.h"
#include "lifetime.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "notice.h"
#include "refusal.h"
#include "storage/ipc.h"
#include "tcop/utility.h"
#include "turn.h"
#include "zklock.h"

static ProcessUtility_hook_type previous_utility_hook = NULL;
static ExecutorStart_hook_type previous_executor_start_hook = NULL;
static bool exit_registered = false;

static void
refuse_parallel(void)
{
	if (IsInParallelMode())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot acquire or release distributed locks during a parallel operation")));
}

/* ---- ending ---- */

static void
end_hold(ZklHold *hold)
{
	(void) zkl_slot_release(hold->grant.slotno);
	zkl_hold_drop(hold);
}

static void
end_all(ZklLifetime lifetime)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &zkl_holds[lifetime])
		end_hold(dlist_container(ZklHold, link, iter.cur));
}

/* ---- transactions ---- */

/*
 * The client learns why its transaction was aborted, or that it is worse.  The
 * message is ASCII: nothing here may fail for want of a conversion.
 */
static void
tell_lost(void)
{
	char		name[4 * ZKL_MAX_NAME + 1];
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
			zkl_name_to_ascii(hold->key.path, name, sizeof(name));
			ereport(WARNING,
					(errmsg("distributed lock \"%s\" was lost", name),
					 errdetail("%s", zkl_lost_detail(error))));
		}
	}
}

static void
end_transaction(bool aborted)
{
	zkl_turn_end(!aborted);
	if (zkl_holds_anything())
	{
		if (aborted && !proc_exit_inprogress)
		{
			tell_lost();
			zkl_notice_tell(true);
		}
		end_all(ZKL_LIFETIME_TRANSACTION);
	}
	zkl_commit_forget();
}

static void
transaction_callback(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_COMMIT && zkl_holds_anything())
		zkl_notice_tell(false);
	else if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE)
		end_transaction(false);
	else if (event == XACT_EVENT_ABORT)
		end_transaction(true);
}

static void
subtransaction_callback(SubXactEvent event, SubTransactionId subid,
						SubTransactionId parent, void *arg)
{
	dlist_mutable_iter iter;

	if (event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB)
		return;
	if (event == SUBXACT_EVENT_ABORT_SUB && !proc_exit_inprogress)
		tell_lost();
	dlist_foreach_modify(iter, &zkl_holds[ZKL_LIFETIME_TRANSACTION])
	{
		ZklHold    *hold = dlist_container(ZklHold, link, iter.cur);
		uint32		before = hold->count;

		if (event == SUBXACT_EVENT_COMMIT_SUB)
			zkl_hold_scope_commit(hold, subid, parent);
		else
			zkl_hold_scope_abort(hold, subid);
		if (hold->count == 0)
			end_hold(hold);
		else if (hold->count != before)
			zkl_slot_set_holds(hold->grant.slotno, hold->count);
	}
}

static void
exit_callback(int code, Datum arg)
{
	end_all(ZKL_LIFETIME_TRANSACTION);
	end_all(ZKL_LIFETIME_SESSION);
}

/* ---- utility statements ---- */

/*
 * What must be possible after a loss: to end the transaction, or to clean up.
 * COMMIT meets the commit check.
 */
static bool
may_follow_a_loss(Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_TransactionStmt:
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
		case T_DiscardStmt:
		case T_VariableSetStmt: /* SET and RESET */
		case T_VariableShowStmt:
		case T_ClosePortalStmt:
		case T_DeallocateStmt:
			return true;
		default:
			return false;
	}
}

/*
 * COMMIT PREPARED and ROLLBACK PREPARED are done before the callbacks of their
 * own transaction run.
 */
static void
before_utility(Node *statement)
{
	TransactionStmtKind kind;

	if (!zkl_holds_anything() || IsInParallelMode())
		return;
	zkl_notice_tell(IsAbortedTransactionBlockState());
	if (!may_follow_a_loss(statement))
		zkl_commit_check_statement();
	if (!IsA(statement, TransactionStmt))
	{
		zkl_commit_check_soon();
		return;
	}
	kind = castNode(TransactionStmt, statement)->kind;
	if (kind == TRANS_STMT_COMMIT || kind == TRANS_STMT_PREPARE)
		zkl_commit_check_first();
	else if (kind == TRANS_STMT_COMMIT_PREPARED ||
			 kind == TRANS_STMT_ROLLBACK_PREPARED)
		zkl_commit_check_now();
	else
		zkl_commit_check_soon();
}

static bool
is_discard_all(Node *statement)
{
	return IsA(statement, DiscardStmt) &&
		castNode(DiscardStmt, statement)->target == DISCARD_ALL;
}

static void
utility_hook(PlannedStmt *pstmt, const char *query, bool read_only_tree,
			 ProcessUtilityContext context, ParamListInfo params,
			 QueryEnvironment *environment, DestReceiver *dest,
			 QueryCompletion *completion)
{
	Node	   *statement = pstmt->utilityStmt;
	bool		discard_all = is_discard_all(statement);

	before_utility(statement);
	if (previous_utility_hook)
		previous_utility_hook(pstmt, query, read_only_tree, context, params,
							  environment, dest, completion);
	else
		standard_ProcessUtility(pstmt, query, read_only_tree, context, params,
								environment, dest, completion);
	if (discard_all)
		end_all(ZKL_LIFETIME_SESSION);
}

/*
 * What an earlier transaction left held must be checked first in this one too,
 * also where the commit is no statement of its own.
 */
static void
executor_start_hook(QueryDesc *query, int flags)
{
	if (zkl_holds_anything() && !IsInParallelMode())
	{
		zkl_notice_tell(false);
		zkl_commit_check_statement();
		zkl_commit_check_soon();
	}
	if (previous_executor_start_hook)
		previous_executor_start_hook(query, flags);
	else
		standard_ExecutorStart(query, flags);
}

/* ---- what the SQL functions call ---- */

/* A live hold of this backend on the same lock, the stronger one first */
static int
find_sibling(const ZklTarget *lock)
{
	static const ZklLockMode modes[] = {ZKL_EXCLUSIVE, ZKL_SHARED};
	int			i;

	for (i = 0; i < 4; i++)
	{
		ZklHold    *hold = zkl_hold_find(lock, modes[i / 2],
										 (ZklLifetime) (i % 2));
		ZklError	error;

		if (hold != NULL && zkl_hold_is_good(hold, &error))
			return hold->grant.slotno;
	}
	return -1;
}

void
zkl_lifetime_begin(void)
{
	zkl_check_loaded();
	refuse_parallel();
	if (!exit_registered)
	{
		on_shmem_exit(exit_callback, 0);
		exit_registered = true;
	}
	zkl_commit_check_soon();
}

static void
refuse_again(const ZklAsk *ask)
{
	if (zkl_reentrant || find_sibling(&ask->lock) < 0)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_IN_USE),
			 errmsg("distributed lock \"%s\" is already held by this session",
					ask->lock.name),
			 errhint("Release it first, or set \"zklock.reentrant\" to on.")));
}

/* Returns only if what is held may be counted once more. */
static void
check_again(ZklHold *hold, const ZklAsk *ask)
{
	ZklError	error;

	zkl_ask_again(ask, hold->grant.slotno);
	if (!zkl_hold_is_good(hold, &error))
	{
		hold->told = true;
		zkl_raise_lost(hold->name, hold->key.lifetime, error);
	}
	zkl_hold_open(hold);
}

static void
drop_all(ZklHold **holds, int n)
{
	while (n > 0)
		zkl_hold_drop(holds[--n]);
}

/* Acquires what is not held yet, all or nothing. */
static bool
acquire_new(ZklAsk *asks, int n)
{
	ZklHold   **holds = palloc(n * sizeof(ZklHold *));
	ZklGrant   *grants = palloc(n * sizeof(ZklGrant));
	int volatile prepared = 0;
	bool		granted = false;
	int			i;

	PG_TRY();
	{
		for (; prepared < n; prepared++)
		{
			asks[prepared].sibling = find_sibling(&asks[prepared].lock);
			holds[prepared] = zkl_hold_prepare(&asks[prepared]);
		}
		granted = zkl_ask_locks(asks, n, grants);
	}
	PG_CATCH();
	{
		drop_all(holds, prepared);
		PG_RE_THROW();
	}
	PG_END_TRY();

	if (!granted)
		drop_all(holds, n);
	for (i = 0; granted && i < n; i++)
		zkl_hold_begin(holds[i], &grants[i]);
	return granted;
}

static ZklHold *
find_hold(const ZklAsk *ask)
{
	return zkl_hold_find(&ask->lock, ask->mode, ask->lifetime);
}

/* What is held is looked at before the others are waited for, and after. */
static void
check_held(const ZklAsk *asks, const bool *held, int n)
{
	int			i;

	for (i = 0; i < n; i++)
	{
		if (held[i])
			check_again(find_hold(&asks[i]), &asks[i]);
	}
}

bool
zkl_lifetime_acquire(ZklAsk *asks, int n, int64 *tokens)
{
	ZklAsk	   *wanted = palloc(n * sizeof(ZklAsk));
	bool	   *held = palloc(n * sizeof(bool));
	int			nwanted = 0;
	int			i;

	zkl_lifetime_begin();
	for (i = 0; i < n; i++)
	{
		refuse_again(&asks[i]);
		held[i] = find_hold(&asks[i]) != NULL;
		if (!held[i])
			wanted[nwanted++] = asks[i];
	}
	check_held(asks, held, n);
	if (nwanted > 0 && !acquire_new(wanted, nwanted))
		return false;
	PG_TRY();
	{
		if (nwanted > 0)
			check_held(asks, held, n);
	}
	PG_CATCH();
	{
		for (i = 0; i < nwanted; i++)
			end_hold(find_hold(&wanted[i]));
		PG_RE_THROW();
	}
	PG_END_TRY();

	for (i = 0; i < n; i++)
	{
		ZklHold    *hold = find_hold(&asks[i]);

		if (held[i])
		{
			zkl_hold_again(hold);
			zkl_slot_set_holds(hold->grant.slotno, hold->count);
			zkl_slot_rebound(hold->grant.slotno, asks[i].at_most_ms,
							 asks[i].at_least_ms);
		}
		tokens[i] = hold->grant.token;
	}
	return true;
}

void
zkl_lifetime_give_back(const ZklTarget *lock, ZklLockMode mode)
{
	ZklHold    *hold = zkl_hold_find(lock, mode, ZKL_LIFETIME_TRANSACTION);

	if (hold != NULL)
		end_hold(hold);
}

static void
warn_not_held(const ZklTarget *lock, ZklLockMode mode)
{
	ZklHold    *until_commit = zkl_hold_find(lock, mode,
											 ZKL_LIFETIME_TRANSACTION);

	ereport(WARNING,
			(lock->dialect == ZKL_DIALECT_LATCH ?
			 errmsg("you do not lead \"%s\"", lock->name) :
			 mode == ZKL_EXCLUSIVE ?
			 errmsg("you do not hold distributed lock \"%s\" in exclusive mode",
					lock->name) :
			 errmsg("you do not hold distributed lock \"%s\" in shared mode",
					lock->name),
			 until_commit != NULL ?
			 errhint("A lock of transaction lifetime ends with its transaction.") : 0));
}

/*
 * Ends a hold that is asked to end; false, with a warning, if it was lost, or
 * may have been.  A loss since the transaction began must not be waved through
 * to its commit.
 */
bool
zkl_lifetime_release(ZklHold *hold)
{
	ZklError	error;
	bool		known = zkl_commit_check_release(hold);

	if (!zkl_hold_is_good(hold, &error))
		ereport(WARNING,
				(errmsg("distributed lock \"%s\" had been lost", hold->name),
				 errdetail("%s", zkl_lost_detail(error))));
	else if (!known)
		ereport(WARNING,
				(errmsg("distributed lock \"%s\" may have been lost",
						hold->name),
				 errdetail("Its lease has passed.")));
	else
	{
		end_hold(hold);
		return true;
	}
	end_hold(hold);
	return false;
}

bool
zkl_lifetime_unlock(const ZklTarget *lock, ZklLockMode mode)
{
	ZklHold    *hold;
	ZklError	error;

	zkl_check_loaded();
	refuse_parallel();
	hold = zkl_hold_find(lock, mode, ZKL_LIFETIME_SESSION);
	if (hold == NULL)
	{
		warn_not_held(lock, mode);
		return false;
	}
	if (hold->count == 1 || !zkl_hold_is_good(hold, &error))
		return zkl_lifetime_release(hold);
	hold->count--;
	zkl_slot_set_holds(hold->grant.slotno, hold->count);
	return true;
}

void
zkl_lifetime_end(const ZklTarget *lock, ZklLockMode mode)
{
	ZklHold    *hold = zkl_hold_find(lock, mode, ZKL_LIFETIME_SESSION);

	if (hold != NULL)
		end_hold(hold);
}

void
zkl_lifetime_unlock_all(void)
{
	dlist_mutable_iter iter;

	zkl_check_loaded();
	refuse_parallel();
	dlist_foreach_modify(iter, &zkl_holds[ZKL_LIFETIME_SESSION])
		(void) zkl_lifetime_release(dlist_container(ZklHold, link, iter.cur));
}

/* Of several holds on one lock, the latest grant has the greatest token */
bool
zkl_lifetime_token(const ZklTarget *lock, int64 *token)
{
	bool		found = false;
	int			i;

	zkl_check_loaded();
	for (i = 0; i < 4; i++)
	{
		ZklHold    *hold = zkl_hold_find(lock, (ZklLockMode) (i / 2),
										 (ZklLifetime) (i % 2));
		ZklError	error;

		if (hold == NULL || !zkl_hold_is_good(hold, &error))
			continue;
		if (!found || hold->grant.token > *token)
			*token = hold->grant.token;
		found = true;
	}
	return found;
}

void
zkl_lifetime_init(void)
{
	RegisterXactCallback(transaction_callback, NULL);
	RegisterSubXactCallback(subtransaction_callback, NULL);
	previous_utility_hook = ProcessUtility_hook;
	ProcessUtility_hook = utility_hook;
	previous_executor_start_hook = ExecutorStart_hook;
	ExecutorStart_hook = executor_start_hook;
}
