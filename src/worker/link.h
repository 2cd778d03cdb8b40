/*
 * link.h
 *	  The worker's end of the link: spawning the session process, talking to
 *	  it, and making sure that it is gone.  Worker only.
 *
 * There is at most one session process at a time.
 */
#ifndef ZKL_WORKER_LINK_H
#define ZKL_WORKER_LINK_H

#include "wire/wire.h"

/*
 * Starts a session process.  Returns its pid, or 0 with errno set when it
 * could not be started.
 */
extern int	zkl_link_spawn(void);

/* Kills it, waits for its end, and drops all that was under way on the link. */
extern void zkl_link_kill(void);

/*
 * Makes sure that a session process of an earlier worker is gone: it was not
 * our child, but must not speak for the session beside ours.
 */
extern void zkl_link_await_orphan(int pid);

extern bool zkl_link_up(void);

/* Frames written here go out at the next flush. */
extern ZklWireBuffer *zkl_link_output(void);

/* Writes a frame that has no body. */
extern void zkl_link_say(ZklWireType type, uint32 generation);

/* Writes what it can without blocking.  False: the link is broken. */
extern bool zkl_link_flush(void);

/* Reads what the last wait found.  False: the link is broken or at its end. */
extern bool zkl_link_read(void);

/*
 * The next whole frame that was read, good until the next call; 0: none, -1:
 * garbage.
 */
extern int	zkl_link_next(ZklWireHeader *header, ZklWireReader *body);

/* Waits for the latch, the link or the time, in ms (-1: no limit). */
extern void zkl_link_wait(long timeout_ms);

#endif							/* ZKL_WORKER_LINK_H */
