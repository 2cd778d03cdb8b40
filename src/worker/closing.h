/*
 * closing.h
 *	  Closing the gate for new requests, and then the ZooKeeper session.  Worker
 *	  only.
 *
 * Times are in µs of boottime.h; "connection" is the generation of the frames
 * on the link.
 */
#ifndef ZKL_WORKER_CLOSING_H
#define ZKL_WORKER_CLOSING_H

/* Sets the gate as "zklock.enabled" wants it. */
extern void zkl_closing_tick(void);

/*
 * Whether the server needs a ZooKeeper session: not if "zklock.enabled" is off
 * and all that began before has ended.
 */
extern bool zkl_closing_needs_session(void);

/*
 * Whether a slot holds or awaits something, its transaction is past its commit
 * check, or an epilogue is still to be written; or, with "kept", a lock is kept.
 */
extern bool zkl_closing_is_in_use(bool kept);

/*
 * Whether a lock that nobody holds is reserved, or promised to whoever held it: then the
 * session must not be closed.
 */
extern bool zkl_closing_is_promised(void);

/*
 * For the end of the server: lets go of all other locks.  Whether that is done; else the
 * worker has to look at its slots.
 */
extern bool zkl_closing_let_go(void);

#define ZKL_CLOSING_TIME	1000000 /* for a session to be closed */

/* Begins to close a session that cannot be used: all its locks are lost. */
extern void zkl_closing_give_up(uint32 connection, int64 now);

/*
 * Begins to close it while the server is idle, so that another session can follow:
 * once this one has surely ended, see zkl_closing_not_before.
 */
extern void zkl_closing_replace(uint32 connection, int64 now);

/* Until when to wait for that; 0: no session is being closed */
extern int64 zkl_closing_until(void);

/*
 * The session is closed, or its process is gone.  Returns whether the session was
 * to be replaced, and not one that cannot be used.
 */
extern bool zkl_closing_end(bool acknowledged);

/* Until when a session that may not have been closed can live on */
extern int64 zkl_closing_not_before(void);

/* Closes the session; waits up to a few seconds.  Whether ZooKeeper has done so. */
extern bool zkl_closing_wait(uint32 connection);

#endif							/* ZKL_WORKER_CLOSING_H */
