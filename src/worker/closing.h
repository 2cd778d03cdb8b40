/*
 * closing.h
 *	  Closing a ZooKeeper session in good order.  Worker only.
 *
 * Times are in µs of CLOCK_BOOTTIME throughout; connection is the generation
 * of the frames on the link.
 */
#ifndef ZKL_WORKER_CLOSING_H
#define ZKL_WORKER_CLOSING_H

#include "core/manager.h"

/* Begins to close a session that is of no use. */
extern void zkl_closing_give_up(uint32 connection, int64 now);

/* Begins to close it, so that a session with another timeout can follow. */
extern void zkl_closing_renew(uint32 connection, int64 now, ZklManager *core);

/* Until when to wait for that; 0: no session is being closed */
extern int64 zkl_closing_until(void);

/*
 * It came to an end: the session is closed, or its process gone.  Returns
 * whether another session is to take its place.
 */
extern bool zkl_closing_end(bool acknowledged);

/* Until then a session that was not closed for sure may live on. */
extern int64 zkl_closing_not_before(void);

/* Closes the session, and waits for that for a few seconds. */
extern void zkl_closing_wait(uint32 connection);

#endif							/* ZKL_WORKER_CLOSING_H */
