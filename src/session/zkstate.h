/*
 * zkstate.h
 *	  What zk.c (the connection), zkcheck.c and zkclose.c (its beginning and its
 *	  end), zkevent.c (events), zklog.c (the client's log), zkrequest.c and
 *	  zkmulti.c (requests and their answers) share.
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
	ZklWireAccess access;
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

/* The watcher of every watch: it reports EVENT. */
extern void zkl_zkevent_watcher(zhandle_t *handle, int type, int state,
								const char *path, void *context);

/* What an answer says of the server: it may not take us at all. */
extern void zkl_zkevent_heed(int rc);

/* The client's callback: the server has taken our credentials, or not. */
extern void zkl_zkevent_authenticated(int rc, const void *data);

/* Closes the session on the server, and says GONE. */
extern void zkl_zk_close(void);

/*
 * Reads on from a connection whose session was to be closed.  True: that is
 * acknowledged.
 */
extern bool zkl_zkclose_await(int fd, int timeout_ms);

/* Asks the server for its version: VERSION comes, or nothing. */
extern void zkl_zk_ask_version(void);

/* What the client is to log, and what must never be seen of it */
extern void zkl_zklog_begin(const ZklZkStart *start);
extern void zkl_zklog_want(bool wanted);	/* whether LOG frames are sent */
extern void zkl_zklog_write(const char *message);	/* the client's callback */

/* The last reason for a broken connection that the client gave, or we */
extern const char *zkl_zklog_error(void);
extern void zkl_zklog_set_error(const char *text);

/* Whether that reason is that the server closed it */
extern bool zkl_zklog_was_closed(void);

/*
 * Whether what the server sends is no answer to the client's handshake.  True:
 * GONE was said.
 */
extern bool zkl_zkcheck_is_garbage(int fd, const ZklZkStart *start);

/* Whether a port that closed the connection takes TLS only; then say so. */
extern bool zkl_zkcheck_wants_tls(const ZklZkStart *start,
								  const char *address);
extern void zkl_zkcheck_say_tls(const ZklZkStart *start);

extern void zkl_zkrequest_put_stat(const struct Stat *stat);

/*
 * ZooKeeper's rules for a path.  The client knows them too, but frees the
 * path twice when one breaks them in a multi under a chroot.
 */
extern bool zkl_zkrequest_path_is_valid(const char *path, size_t length);

/* A MULTI; false: the frame is malformed. */
extern bool zkl_zkmulti_request(uint64_t tag, ZklWireReader *body);

#endif							/* ZKL_SESSION_ZKSTATE_H */
