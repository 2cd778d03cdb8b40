/*
 * zkstate.h
 *	  What zk.c (the connection) and zkrequest.c (requests and their answers) share.
 *
 * They are the only files that see zookeeper.h, through this one.  There is
 * one connection per process, hence one of these.
 */
#ifndef ZKL_SESSION_ZKSTATE_H
#define ZKL_SESSION_ZKSTATE_H

#include <zookeeper/zookeeper.h>

#include "session/zk.h"

typedef struct ZklZkState
{
	ZklWireBuffer *out;
	uint32_t	generation;
	const ZklZkStart *start;
	zhandle_t  *handle;
	bool		established;	/* the server accepted our session */
	bool		connected;		/* CONNECTED was sent: auth is done too */
	bool		closing;		/* CLOSE waits for what is in flight */
	bool		gone;			/* GONE was sent */
	uint32_t	in_flight;		/* requests not answered yet */
	ZklAccess	access;
	struct ACL_vector acls;		/* of the nodes that we create */
	struct ACL_vector private_acls; /* of those not to be read by all */
} ZklZkState;

extern ZklZkState zkl_zk;

/* Begins a frame of this connection; end it with zkl_wire_end. */
static inline size_t
zkl_zkstate_begin_frame(ZklWireType type, uint64_t tag, int32_t rc)
{
	return zkl_wire_begin(zkl_zk.out, type, zkl_zk.generation, tag, rc);
}

/* ---- zk.c ---- */

/* Closes the session on the server, and says GONE. */
extern void zkl_zk_close(void);

/* Our end of the connection, an address in digits; empty if it is not known */
extern void zkl_zk_own_address(char *address, size_t size);

/* Asks the server for its version: VERSION comes, or nothing. */
extern void zkl_zk_ask_version(void);

/* ---- zk.c ---- */

/* The watcher of every watch: it reports EVENT. */
extern void zkl_zkevent_watcher(zhandle_t *handle, int type, int state,
								const char *path, void *context);

/* What an answer says of the server: it may not take us at all. */
extern void zkl_zkevent_heed(int rc);

/* Says GONE: the server is ClickHouse Keeper. */
extern void zkl_zkevent_refuse_keeper(void);

/* The client's callback: the server has taken our credentials, or not. */
extern void zkl_zkevent_authenticated(int rc, const void *data);

extern void zkl_zkevent_want_log(bool wanted);	/* whether LOG frames are sent */
extern void zkl_zkevent_log(const char *message);	/* the client's callback */

/* The last reason for a broken connection that the client gave, or we */
extern const char *zkl_zkevent_error(void);
extern void zkl_zkevent_set_error(const char *text);

/* Whether that reason is that the server closed it */
extern bool zkl_zkevent_was_closed(void);

/* ---- zk.c ---- */

/* Begins to ask the server at this address for its version, unless that goes on. */
extern void zkl_zkraw_ask_version(const char *address);

/* What to poll for: fd is -1 if there is nothing to wait for. */
extern void zkl_zkraw_interest(struct pollfd *pfd);

/*
 * Takes in what poll found.  Returns the version, such as 3.8.0, once that has
 * arrived, else NULL.  A server that does not tell ends it.  GONE was said if it is
 * ClickHouse Keeper.
 */
extern const char *zkl_zkraw_version(const struct pollfd *pfd);

/*
 * Whether what the server sends is no answer to the client's handshake, or the port
 * that closed the connection takes TLS only.  True: GONE was said.
 */
extern bool zkl_zkraw_is_garbage(int fd);
extern bool zkl_zkraw_requires_tls(const char *address);

/*
 * Reads on from a connection whose session was to be closed.  True: that is
 * acknowledged.
 */
extern bool zkl_zkraw_await_close(int fd, int timeout_ms);

#endif							/* ZKL_SESSION_ZKSTATE_H */
