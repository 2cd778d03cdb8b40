/*
 * session_lease.h
 *	  How long the session surely lives.
 */
#ifndef ZKL_CORE_SESSION_LEASE_H
#define ZKL_CORE_SESSION_LEASE_H

#include "core/state.h"

/* A connection stands; the attempt to make it began at begun_at. */
extern void zkl_session_lease_begin(ZklManager *m, int64_t begun_at);

/* r's node could not be read: a hold must see it before the next renewal. */
extern void zkl_session_lease_doubt(ZklManager *m, ZklRequest *r);

/* It is not renewed before zkl_session_lease_verify() finds nothing open. */
extern void zkl_session_lease_suspend(ZklManager *m);

/* If the lease may be renewed again, sees to that. */
extern void zkl_session_lease_verify(ZklManager *m);

/* ZooKeeper has answered an operation sent at sent_at. */
extern void zkl_session_lease_contact(ZklManager *m, int64_t sent_at);

/* Until when the session lives, if a batch sent at that time is applied */
extern int64_t zkl_session_lease_until(const ZklManager *m, int64_t sent_at);

/* Reads something, if the session is idle and it is time to. */
extern void zkl_session_lease_send(ZklManager *m);

/* When to do so; -1: never. */
extern int64_t zkl_session_lease_timer(const ZklManager *m);

/* Somebody outside of the server relies on it: for a while it is renewed more often. */
extern void zkl_session_lease_prove(ZklManager *m);

/* How long after a beat the next one is due, in us */
extern int64_t zkl_session_lease_beat(const ZklManager *m);

/* The session is gone. */
extern void zkl_session_lease_end(ZklManager *m);

/* A beat was acknowledged: good until then, unless holds are in doubt. */
extern void zkl_session_lease_extend(ZklManager *m, int64_t until);

/* Whether the lease has run out since the last call, and was relied on */
extern bool zkl_session_lease_note_lapse(ZklManager *m);

#endif							/* ZKL_CORE_SESSION_LEASE_H */
