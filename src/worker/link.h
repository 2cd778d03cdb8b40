/*
 * link.h
 *	  The worker's end of the link: starts the session process, exchanges frames
 *	  with it, and makes sure that it is gone.  Worker only.
 *
 * There is at most one session process at a time.
 */
#ifndef ZKL_WORKER_LINK_H
#define ZKL_WORKER_LINK_H

#include "wire/wire.h"

/*
 * Starts the program.  Returns 0, our end of the link to it, and the
 * pid; or an errno.
 */
extern int	zkl_link_spawn_program(int *link, pid_t *pid);

/* Starts a session process.  Returns its pid, or 0 with errno set. */
extern int	zkl_link_spawn(void);

/* Kills it, waits for its end, and drops all frames on the link. */
extern void zkl_link_kill(void);

/*
 * Makes sure that a session process of an earlier worker is gone: from then on, the time
 * of its ZooKeeper session runs.
 */
extern void zkl_link_await_orphan(int pid);

extern bool zkl_link_up(void);

/* Frames written here go out at the next flush. */
extern ZklWireBuffer *zkl_link_output(void);

/* Writes a frame that has no body. */
extern void zkl_link_say(ZklWireType type, uint32 generation);

/* Writes as much as possible without blocking.  False: the link is broken. */
extern bool zkl_link_flush(void);

/* Reads all bytes that have arrived.  False: the link is broken or closed. */
extern bool zkl_link_read(void);

/*
 * Returns 1 and the next frame, which is valid until the next call; 0 if no whole
 * frame was read; -1 if it is garbage.
 */
extern int	zkl_link_next(ZklWireHeader *header, ZklWireReader *body);

/* The owners of other sockets that end the wait, too, when they can be read */
typedef enum ZklLinkGuest
{
	ZKL_LINK_TRIAL,
	ZKL_LINK_PEERS
} ZklLinkGuest;

#define ZKL_LINK_GUESTS 2

/* From now on this socket of its owner does; PGINVALID_SOCKET: none. */
extern void zkl_link_watch_too(ZklLinkGuest guest, int other);

/* Whether there may be something to read from it, since the last wait. */
extern bool zkl_link_may_read(ZklLinkGuest guest);

/* Waits for the latch, the link or the time, in ms (-1: no limit). */
extern void zkl_link_wait(long timeout_ms);

#endif							/* ZKL_WORKER_LINK_H */
