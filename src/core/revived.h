/*
 * revived.h
 *	  Sessions whose end ZooKeeper has lost.
 */
#ifndef ZKL_CORE_REVIVED_H
#define ZKL_CORE_REVIVED_H

#include "core/state.h"

/* A connection of that session is about to stand; the lease is as it was before. */
extern void zkl_revived_connected(ZklManager *m, const ZklSession *session);

/*
 * The first beat of a connection shows an election; "zxid" is of the batch that it
 * opened.
 */
extern void zkl_revived_elected(ZklManager *m, int64_t zxid);
extern void zkl_revived_disconnected(ZklManager *m);

/* The lock's directory is listed, with all contenders; or may not be. */
extern void zkl_revived_listed(ZklManager *m, ZklLock *lock);
extern void zkl_revived_unlisted(ZklManager *m, ZklLock *lock);

/* Whether the lease waits for a listing that tells of r */
extern bool zkl_revived_is_open(const ZklRequest *r);

/* Lists, a few at a time, the directories of the locks that are held. */
extern void zkl_revived_send(ZklManager *m);

/* The znode ahead of r's was read. */
extern void zkl_revived_ahead_read(ZklManager *m, ZklRequest *r,
								   const ZklReply *reply);

#endif							/* ZKL_CORE_REVIVED_H */
