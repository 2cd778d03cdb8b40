/*
 * identity.h
 *	  What zk_status shows of the worker, and which ZooKeeper session is this
 *	  server's.  Worker only.
 */
#ifndef ZKL_WORKER_IDENTITY_H
#define ZKL_WORKER_IDENTITY_H

#include "core/manager.h"
#include "shared/status.h"

/* Puts an error into zk_status and the server's log. */
extern void zkl_identity_note_error(const char *message);

/*
 * Into the server's log: what there is to say of the connection, always, and
 * what the ZooKeeper client says.  While there is trouble not all of that goes
 * there; the next message tells how many did not.
 */
extern void zkl_identity_log(const char *message);
extern void zkl_identity_log_client(bool trouble, const char *message);

extern void zkl_identity_set_state(ZklWorkerState state);

/*
 * A connection to a server ("host:port") stands: its session is this server's
 * now.  Fills in the session's generation, a new one if the session is, and
 * what else shared memory knows.  If it is new, asked_ms is the timeout that it
 * was asked for.
 */
extern void zkl_identity_adopt(ZklSession *session, const char *password,
							   size_t length, const char *server,
							   uint32 asked_ms);

/* The session is gone: whatever was granted in it is void from now on. */
extern void zkl_identity_lose(void);

/* The same for one that is given up although nothing hangs on it */
extern void zkl_identity_leave(void);

#endif							/* ZKL_WORKER_IDENTITY_H */
