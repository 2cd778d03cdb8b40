/*
 * turn.c
 *	  The turns that the current transaction has taken, until it ends.
 *
 * Owns the list of them, in the transaction's memory, and the epilogues of
 * their holds.  Run by backends.  Takes no locks; waits for errands only.
 *
 * Must not know when a turn is free, nor what SQL calls it.
 *
 * At most once: the turn is used up in ZooKeeper before the transaction
 * commits, while it can still fail.  The epilogue, wanted from then on until
 * the commit, takes that back.
 *
 * At least once: the transaction commits, and is on disk, before the turn is
 * used up.  The epilogue, wanted from the commit on, does that.
 *
 * Either way the write is prepared before the commit, and no other session gets
 * the lock before it is done.  Each write names the version of the history that
 * it follows: if two sessions believe that they have the lock, only one of them
 * can write.
 */
#include "postgres.h"

#include "access/xact.h"
#include "backend/backend_slot.h"
#include "backend/commit.h"
#include "backend/hold.h"
#include "backend/refusal.h"
#include "recipes/turn.h"
#include "shared/epilogue.h"
#include "shared/settings.h"
#include "utils/memutils.h"

#define MAX_TRIES	5			/* over as many connections */

static List *turns = NIL;		/* of ZklTurn, in TopTransactionContext */

/* ---- the list ---- */

/*
 * A turn lives with its hold: a subtransaction that rolls back ends both, and
 * may leave a turn behind in the list.
 */
static ZklHold *
hold_of(const ZklTurn *turn)
{
	ZklHold    *hold = zkl_hold_find(&turn->target, ZKL_EXCLUSIVE,
									 ZKL_LIFETIME_TRANSACTION);

	return hold != NULL && hold->grant.token == turn->token ? hold : NULL;
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
		pfree(unconstify(char *, turn->target.path));
		pfree(unconstify(char *, turn->target.name));
		pfree(turn);
	}
}

ZklTurn *
zkl_turn_find(const ZklTarget *target)
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
	int			tries = 0;

	set->version = turn->version;
	set->length = turn->to_length;
	memcpy(set->data, turn->to, turn->to_length);
	while (zkl_errand_run(set, &turn->target) == ZKL_RC_UNKNOWN)
	{
		if (++tries == MAX_TRIES)
			zkl_refusal_raise_unreachable();
	}
	if (set->answer.rc == ZKL_RC_NONODE ||
		(set->answer.rc == ZKL_RC_BADVERSION && !(tries > 0 && is_used_by_us(turn))))
		raise_changed(turn);
	if (set->answer.rc != ZKL_RC_OK && set->answer.rc != ZKL_RC_BADVERSION)
		zkl_refusal_raise_failed(turn->target.name, ZKL_ERROR_ZOOKEEPER, set->answer.rc);
	zkl_errand_free(set);
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

		if (hold == NULL || turn->slotno >= 0)
			continue;
		any = true;
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

/* The worker writes the wanted epilogues, before it gives the locks up. */
static void
end_turns(bool committed)
{
	ListCell   *cell;

	if (committed)
	{
		foreach(cell, turns)
		{
			ZklTurn    *turn = lfirst(cell);

			if (turn->slotno >= 0)
				zkl_backend_slot_want_epilogue(turn->slotno, turn->at_least_once);
		}
	}
	turns = NIL;
}

/* ---- the beginning ---- */

void
zkl_turn_take(const ZklTurn *turn)
{
	static const ZklCommitStep step = {write_turns, end_turns};
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);
	ZklTurn    *taken = palloc(sizeof(ZklTurn));

	zkl_commit_set_step(&step);
	forget_ended_turns();
	*taken = *turn;
	taken->target.path = pstrdup(turn->target.path);
	taken->target.name = pstrdup(turn->target.name);
	taken->slotno = -1;
	turns = lappend(turns, taken);
	MemoryContextSwitchTo(old);
}
