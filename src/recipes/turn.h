/*
 * turn.h
 *	  The turns that the current transaction has taken, until it ends.
 *
 * A turn of a job is a hold of transaction lifetime on the job's lock, and a
 * note in the job's history that it is used up.
 */
#ifndef ZKL_RECIPES_TURN_H
#define ZKL_RECIPES_TURN_H

#include "backend/errand.h"
#include "recipes/history.h"

/* The znode of the history, in the directory of the job's lock */
#define ZKL_HISTORY_NODE	".history"

typedef struct ZklTurn
{
	ZklTarget	target;			/* the job's lock */
	int64		token;			/* of the hold that the turn lives with */
	ZklTurnId	id;
	bool		at_least_once;	/* else at most once */
	int32		version;		/* of the history, as it was read */
	uint32		from_length;
	uint32		to_length;
	char		from[ZKL_MAX_NODE_DATA];	/* the history, as it was read */
	char		to[ZKL_MAX_NODE_DATA];	/* and with this turn used up */
	int			slotno;			/* turn.c's: of the hold, if it has an
								 * epilogue; or -1 */
} ZklTurn;

/*
 * A turn was taken, under the hold that has its token.  This keeps a copy as long
 * as that hold lives, or until the next turn is taken.
 */
extern void zkl_turn_take(const ZklTurn *turn);

/* The turn that this transaction has taken of a job, or NULL */
extern ZklTurn *zkl_turn_find(const ZklTarget *target);

#endif							/* ZKL_RECIPES_TURN_H */
