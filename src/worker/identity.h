/*
 * identity.h
 *	  What zk_status shows of the worker, which ZooKeeper session belongs to this
 *	  server, and its entry in the fleet.
 */
#ifndef ZKL_WORKER_IDENTITY_H
#define ZKL_WORKER_IDENTITY_H

#include "core/manager.h"
#include "shared/status.h"

/*
 * Puts an error into zk_status and the server's log, and counts it.  While the
 * server is not connected, the log does not get all of them.
 */
extern void zkl_identity_note_error(ZklErrorKind kind, const char *message);

/* The same for ZooKeeper's answer with that result code */
extern void zkl_identity_note_answer(int32 rc, const char *message);

/*
 * The same for an error that leads to another state than "disconnected".  The first
 * one for each state is logged, whatever was logged before.
 */
extern void zkl_identity_note_change(ZklErrorKind kind, ZklWorkerState state,
									 const char *message);

/*
 * Puts a message about the connection into the server's log.  It also says how
 * many errors were not logged since the last message.
 */
extern void zkl_identity_log(const char *message);

/* Why the settings of the connection are not used, or NULL: they are. */
extern void zkl_identity_note_settings(const char *fault);

/* The settings have changed: errors that were logged before are news again. */
extern void zkl_identity_log_anew(void);

/* The worker begins; it ends. */
extern void zkl_identity_begin(void);
extern void zkl_identity_end(void);

/* A session process was started; the last one has ended. */
extern void zkl_identity_process_started(int pid);
extern void zkl_identity_process_ended(bool was_connected);

extern void zkl_identity_set_state(ZklWorkerState state);

/*
 * A connection to a ZooKeeper server ("host:port") stands, and its session
 * belongs to this server from now on.  Fills in the session's generation, which
 * is a new one for a new session, and zxid_seen.  asked_ms is the
 * timeout that was requested for a new session.
 */
extern void zkl_identity_adopt(ZklSession *session, const char *password,
							   size_t length, const char *server,
							   uint32 asked_ms);

/* The version of the session process, and the number of its messages' format */
extern void zkl_identity_note_program(const char *version, size_t length,
									  uint32 link_protocol);

/* TLS of the new connection, and its ZklAccess */
extern void zkl_identity_note_security(const ZklTlsStatus *tls, uint8 access);

/* The version of the ZooKeeper server of this connection */
extern void zkl_identity_note_release(const char *version);

/* An access control list has denied access to the lock with that path. */
extern void zkl_identity_note_refused(const char *path);

/* The session is gone, and all that was granted in it is void. */
extern void zkl_identity_lose(void);

/* The same for an idle session that the worker gives up */
extern void zkl_identity_leave(void);

/*
 * The same for the session of a worker before this one, whose session process is gone: it
 * is left to expire, within two ticks behind its time.  Until then there is no other; nor
 * for a while if workers end again and again.
 */
extern void zkl_identity_take_over(void);

/*
 * This worker leaves a session with that timeout, in ms: there is no other until it has
 * expired.  0: ZooKeeper has closed it.
 */
extern void zkl_identity_left(uint32 timeout_ms);

/* ZKL_PASSWORD_BYTES, of the session */
extern const char *zkl_identity_password(void);

/* ---- fleet_entry ---- */

/*
 * This server's znode in the directory of the fleet, and clones of this server
 * there.  Worker only.
 */

/*
 * Sees to it that the znode tells what is true now; "ready" tells whether the
 * connection is proved.  It never needs to be called for its own sake.
 */
extern void zkl_fleet_entry_tick(bool ready);

/* The credentials may have changed: makes the znode anew. */
extern void zkl_fleet_entry_renew(void);

/*
 * The server stops, and leaves its session to expire: takes the znode back, so that the
 * next start does not take this one for a clone.  Whether it is gone.
 */
extern bool zkl_fleet_entry_take_back(void);

/* The children of this znode have changed: perhaps servers have come or gone. */
extern void zkl_fleet_entry_event(const char *path);

/* The address at which our worker hears from others; empty: it does not. */
extern void zkl_fleet_entry_set_peer(const char *address);

/* Whether there is one, and the znode of the present session has it. */
extern bool zkl_fleet_entry_tells_peer(void);

/*
 * Whether a new session is not to be relied on yet: it is not known whether there
 * is a clone of this server, or what looks like one may be about to expire.
 */
extern bool zkl_fleet_entry_is_undecided(void);

#endif							/* ZKL_WORKER_IDENTITY_H */
