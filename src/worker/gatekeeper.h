/*
 * gatekeeper.h
 *	  Opens and closes the gate for new requests.  Worker only.
 */
#ifndef ZKL_WORKER_GATEKEEPER_H
#define ZKL_WORKER_GATEKEEPER_H

/* Sets the gate as "zklock.enabled" wants it. */
extern void zkl_gatekeeper_tick(void);

/*
 * Whether the server needs a ZooKeeper session: not if "zklock.enabled" is off
 * and all that began before has ended.
 */
extern bool zkl_gatekeeper_needs_session(void);

/*
 * Whether a slot holds or awaits something, its transaction is past its commit
 * check, or an epilogue is still to be written; or, with "kept", a lock is kept.
 */
extern bool zkl_gatekeeper_is_in_use(bool kept);

#endif							/* ZKL_WORKER_GATEKEEPER_H */
