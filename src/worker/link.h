/*
 * link.h
 *	  The session process: how it is started, and the worker's end of the link to
 *	  it.
 *
 * There is at most one session process at a time.
 */
#ifndef ZKL_WORKER_LINK_H
#define ZKL_WORKER_LINK_H

#include "shared/status.h"
#include "wire/wire.h"
#include "worker/connect_settings.h"

/*
 * Starts the program.  Returns 0, our end of the link to it, and the
 * pid; or an errno.
 */
extern int	zkl_link_spawn_program(int *link, pid_t *pid);

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

/* ---- launch ---- */

/*
 * Starts a session process, and tells it to what to connect, as whom, and whom to
 * trust.  Worker only.
 */

/* What a CONNECTED frame says of TLS */
extern void zkl_launch_get_tls(ZklWireReader *body, ZklTlsStatus *tls);

/*
 * Starts a process for the connection of this number, to the next host, which goes
 * to host[ZKL_MAX_HOST], as the requested session timeout goes to asked_ms.  False:
 * that failed, and the reason is noted.
 */
extern bool zkl_launch_begin(uint32 connection,
							 const ZklConnectSettings *settings, char *host,
							 int *asked_ms);

/*
 * Writes START, which attaches this server's session or begins a new one.  Returns the
 * session timeout that it requests.
 */
extern int	zkl_launch_put_start(ZklWireBuffer *out, uint32 connection,
								 const char *host,
								 const ZklConnectSettings *settings,
								 bool attach);

#endif							/* ZKL_WORKER_LINK_H */
