/*
 * request.h
 *	  One request: the steps of its demand and of its node.
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

/* NEW: its create was refused, and goes again, ahead of those that were never sent. */
extern void zkl_request_resend(ZklManager *m, ZklRequest *r);

/* Any -> NONE: the node is gone, for whatever reason. */
extern void zkl_request_node_gone(ZklManager *m, ZklRequest *r);

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

/* Its time is over. */
extern void zkl_request_answered(ZklManager *m, ZklRequest *r);

/* An operator takes the place of a request that waits: it goes to the end. */
extern void zkl_request_requeue(ZklManager *m, ZklRequest *r);

/* Another client deleted the node of a request that holds or waits. */
extern void zkl_request_node_deleted(ZklManager *m, ZklRequest *r);

/* The session is gone: holds are lost, and waiting requests begin again. */
extern void zkl_request_session_lost(ZklManager *m, ZklRequest *r);

extern void zkl_request_time_out(ZklManager *m, ZklRequest *r);
extern void zkl_request_release(ZklManager *m, ZklRequest *r);

/* For loss.c: what becomes of r, if its node is gone, or stays for now */
extern void zkl_request_lost(ZklManager *m, ZklRequest *r);
extern void zkl_request_set_broken(ZklRequest *r);

#endif							/* ZKL_CORE_REQUEST_H */
