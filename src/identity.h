/*
 * identity.h
 *	  What zk_status shows of the worker, and which ZooKeeper session is this
 *	  server's.  Worker only.
 */
#ifndef ZKL_IDENTITY_H
#define ZKL_IDENTITY_H

#include "core/manager.h"
#include "shmem.h"

/* Puts an error into zk_status and the server's log. */
extern void zkl_identity_note_error(const char *message);

/*
 * Whether a message about trouble may go to the server's log: not each, while
 * it lasts.
 */
extern bool zkl_identity_may_log(void);

extern void zkl_identity_set_state(ZklWorkerState state);

/*
 * A connection to a server ("host:port") stands: its session is this server's
 * now.  Fills in the session's generation, a new one if the session is, and
 * what else shared memory knows.
 */
extern void zkl_identity_adopt(ZklSession *session, const char *password,
							   size_t length, const char *server);

/* The session is gone: whatever was granted in it is void from now on. */
extern void zkl_identity_lose(void);

#endif							/* ZKL_IDENTITY_H */
