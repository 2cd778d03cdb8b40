/*
 * connection.h
 *	  What a change of the connection or session means for locks and requests.
 */
#ifndef ZKL_CORE_CONNECTION_H
#define ZKL_CORE_CONNECTION_H

#include "core/state.h"

extern void zkl_connection_up(ZklManager *m, const ZklSession *session);
extern void zkl_connection_down(ZklManager *m);
extern void zkl_connection_session_lost(ZklManager *m);

/*
 * ZooKeeper has elected a leader, and may have lost its latest writes, those of other
 * clients among them (see session.c): contenders that had gone may be back.
 * "zxid" is of the first batch of this connection.
 */
extern void zkl_connection_elected(ZklManager *m, int64_t zxid);

/* ZooKeeper has lost writes that it had acknowledged, perhaps those of others too. */
extern void zkl_connection_writes_lost(ZklManager *m);

#endif							/* ZKL_CORE_CONNECTION_H */
