/*
 * request.h
 *	  The state machine of one request: its demand, and its znode.
 */
#ifndef ZKL_CORE_REQUEST_H
#define ZKL_CORE_REQUEST_H

#include "core/state.h"

/* For a manager with nothing but its config, and at its end. */
extern void zkl_request_init_all(ZklManager *m);
extern void zkl_request_free_all(ZklManager *m);

/* Sets up an unused request on its lock, demand WAITING and node NONE. */
extern ZklRequest *zkl_request_begin(ZklManager *m, uint32_t id,
									 const ZklDemand *demand);

/* node NONE -> NEW, with a new unique id. */
extern void zkl_request_create(ZklManager *m, ZklRequest *r);

/* NEW -> EXISTS: it is in ZooKeeper, with this number. */
extern void zkl_request_exists(ZklManager *m, ZklRequest *r, ZklSeq seq,
							   int64_t czxid);

/* NEW -> NEW or NONE: it never was in ZooKeeper. */
extern void zkl_request_node_never_was(ZklManager *m, ZklRequest *r);

/*
 * The answers.  cover: another hold of the owner, whose node it shares.  False:
 * its node has to be looked at before the grant, and the answer has the lock
 * decided again.
 */
extern void zkl_request_cover(ZklManager *m, ZklRequest *r, ZklRequest *cover);
extern bool zkl_request_grant(ZklManager *m, ZklRequest *r);
extern void zkl_request_deny(ZklManager *m, ZklRequest *r);

/* A GRANTED request that was cached has this owner and token now. */
extern void zkl_request_taken(ZklManager *m, ZklRequest *r,
							  const ZklRecalled *found);

/* It was requested together with others, and waits: tells its owner. */
extern void zkl_request_blocked(ZklManager *m, ZklRequest *r);

/*
 * A try that timed out waits for a server that may have the lock cached; NULL: no
 * longer.
 */
extern void zkl_request_behind_cached(ZklManager *m, ZklRequest *r,
									  const char *server);
extern void zkl_request_fail(ZklManager *m, ZklRequest *r, ZklFailure failure,
							 int32_t rc);

/* The same for a wing, which says why; that must live as long as the actions. */
extern void zkl_request_end_wait(ZklManager *m, ZklRequest *r,
								 ZklFailure failure, const void *reason);

/* An operator takes the place of a request that waits: it goes to the end. */
extern void zkl_request_requeue(ZklManager *m, ZklRequest *r);

/* Another client deleted the node of a request that holds or waits. */
extern void zkl_request_node_deleted(ZklManager *m, ZklRequest *r);

/* The session is gone: holds are lost, and waiting requests begin again. */
extern void zkl_request_session_lost(ZklManager *m, ZklRequest *r);

extern void zkl_request_time_out(ZklManager *m, ZklRequest *r);
extern void zkl_request_release(ZklManager *m, ZklRequest *r);

/* ---- loss: a hold is lost, with all that share its node ---- */

/*
 * An operator breaks the lock, or its node cannot be read: its holder loses
 * it at once, but the node stays in the queue until the holder has released
 * it.
 */
extern void zkl_loss_break(ZklManager *m, ZklRequest *r,
						   ZklFailure failure);

/* ---- end ---- */

/* How a request ends: its backend has finished with it, or its time is over. */

/* The steps of RELEASE and OVERDUE */
extern void zkl_end_release(ZklManager *m, uint32_t request,
							const ZklEnd *end);
extern void zkl_end_overdue(ZklManager *m, uint32_t request);

/* Releases the kept holds whose time is over. */
extern void zkl_end_due(ZklManager *m);

/* ---- node_write: the creates and deletes of our nodes ---- */

/* What the delete of r's node, which was sent alone, is answered */
extern void zkl_node_write_deleted(ZklManager *m, ZklRequest *r, int32_t rc);

/* ---- downgrade_reply: what became of a downgrade ---- */

/* It is known whether the downgrade was done. */
extern void zkl_downgrade_reply_settle(ZklManager *m, ZklRequest *r,
									   bool done);

/*
 * One of its operations was refused.  If the node still exists, the downgrade
 * is tried again: if another client has written to the node and it is yet to be
 * read, as soon as it has been, else after a pause.
 */
extern void zkl_downgrade_reply_refused(ZklManager *m, ZklRequest *r,
										int32_t rc);

#endif							/* ZKL_CORE_REQUEST_H */
