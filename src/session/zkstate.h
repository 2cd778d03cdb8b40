/*
 * zkstate.h
 *	  What zk.c (the connection) and zkrequest.c (requests and their answers)
 *	  share.
 *
 * The two are the only files that see zookeeper.h, through this one.  There
 * is one connection per process, hence one of these.
 */
#ifndef ZKL_ZKSTATE_H
#define ZKL_ZKSTATE_H

#include <zookeeper/zookeeper.h>

#include "session/zk.h"

typedef struct ZklZkState
{
	ZklWireBuffer *out;
	uint32_t	generation;
	zhandle_t  *handle;
	bool		established;	/* the server accepted our session */
	bool		connected;		/* CONNECTED was sent: auth is done too */
	bool		closing;		/* CLOSE waits for what is in flight */
	bool		gone;			/* GONE was sent */
	uint32_t	in_flight;		/* requests not answered yet */
	struct ACL_vector acls;		/* of the nodes that we create */
} ZklZkState;

extern ZklZkState zkl_zk;

/* Begins a frame of this connection; end it with zkl_wire_end. */
static inline size_t
zkl_zk_begin(ZklWireType type, uint64_t tag, int32_t rc)
{
	return zkl_wire_begin(zkl_zk.out, type, zkl_zk.generation, tag, rc);
}

/* The watcher of every watch: it reports EVENT. */
extern void zkl_zk_watcher(zhandle_t *handle, int type, int state,
						   const char *path, void *context);

/* Closes the session on the server, and says GONE. */
extern void zkl_zk_close(void);

#endif							/* ZKL_ZKSTATE_H */
