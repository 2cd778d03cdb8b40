/*
 * statement.h
 *	  What a statement is for a backend that holds locks.
 */
#ifndef ZKL_BACKEND_STATEMENT_H
#define ZKL_BACKEND_STATEMENT_H

#include "nodes/plannodes.h"
#include "tcop/utility.h"

/*
 * Whether a utility statement may follow a loss that became known in the same
 * transaction: it ends that, or cleans up.
 */
extern bool zkl_statement_may_follow_a_loss(Node *statement);

/*
 * Whether a utility statement makes the commit check before it does anything,
 * if no transaction block is open: all do but those that are known to need
 * none.
 */
extern bool zkl_statement_checks_first(Node *statement);

/* Whether a utility statement does nothing that a lock could protect */
extern bool zkl_statement_is_idle(Node *statement);

extern bool zkl_statement_is_discard_all(Node *statement);

/* Whether a utility statement runs statements that may commit, one by one */
extern bool zkl_statement_may_commit(Node *statement,
									 ProcessUtilityContext context);

/* DROP EXTENSION of that name, perhaps among others */
extern bool zkl_statement_drops_extension(Node *statement, const char *name);

/* Whether a utility statement fires triggers, and cannot commit */
extern bool zkl_statement_fires_triggers(Node *statement);

/* Whether a plan changes something, or uses a foreign server */
extern bool zkl_statement_writes(const PlannedStmt *plan);

/*
 * Whether a plan calls functions of zklock but no other volatile ones, and reads
 * no table: such plans look at zk_status or acknowledge a loss.
 */
extern bool zkl_statement_only_looks(const PlannedStmt *plan);

#endif							/* ZKL_BACKEND_STATEMENT_H */
