/*
 * session.h
 *	  The session as the core sees it, and the chain of heartbeat nodes.
 */
#ifndef ZKL_CORE_SESSION_H
#define ZKL_CORE_SESSION_H

#include "core/state.h"

/*
 * Makes the next heartbeat node, and deletes the old one.  But if nothing of this
 * connection tells yet whether the old one is as it was left, begins the look for
 * lost writes instead; the caller calls this again behind that.
 */
extern void zkl_session_open_chain(ZklManager *m);

/*
 * Takes the answer to the delete of an earlier heartbeat node; tries it
 * again.
 */
extern void zkl_session_swept(ZklManager *m, int32_t rc);
extern void zkl_session_sweep_again(ZklManager *m);
extern void zkl_session_chain_reply(ZklManager *m, const ZklReply *reply);

/*
 * Takes an answer in the look for lost writes.  True: ZooKeeper has lost writes that
 * it had acknowledged, or it does not tell, so nodes may be back that were deleted.
 */
extern bool zkl_session_check_reply(ZklManager *m, ZklOpKind kind,
									const ZklReply *reply);

/* The path of heartbeat node number "chain", among the actions' strings. */
extern char *zkl_session_heartbeat(ZklManager *m, uint32_t chain);

/* Gives this connection up. */
extern void zkl_session_give_up(ZklManager *m, int32_t rc);

/* A connection stands; it is gone; the session is gone. */
extern void zkl_session_begin(ZklManager *m, const ZklSession *session);
extern void zkl_session_disconnected(ZklManager *m);
extern void zkl_session_end(ZklManager *m);

/* The first beat of a connection was acknowledged. */
extern void zkl_session_proved(ZklManager *m);

/* A batch has no answer: no beat before the next heartbeat node. */
extern void zkl_session_need_chain(ZklManager *m);

/* The version that a beat expects; or takes back one that was not applied. */
extern int32_t zkl_session_next_version(ZklManager *m);
extern void zkl_session_set_version(ZklManager *m, int32_t version);

/* ZooKeeper has acknowledged a batch, which left the node in this version. */
extern void zkl_session_acknowledged(ZklManager *m, int32_t version);

/* Why the directory of the heartbeat nodes cannot be made */
extern void zkl_session_parent_refused(ZklManager *m, int32_t rc);

/*
 * Whether the id of a batch that was just acknowledged cannot be right, as
 * far as this one answer can tell.  Call this once per answer.
 */
extern bool zkl_session_zxid_is_absurd(ZklManager *m, int64_t zxid);

/* Whether the id is smaller than one that was believed before */
extern bool zkl_session_zxid_went_back(const ZklManager *m, int64_t zxid);

/*
 * The id of a znode of ours, on a proved connection: the node is older than
 * the beat that proved it, so its id was acknowledged.
 */
extern bool zkl_session_zxid_is_known(const ZklManager *m, int64_t zxid);

/* From now on this id is the greatest seen. */
extern void zkl_session_zxid_believe(ZklManager *m, int64_t zxid);

/*
 * Until an election is dealt with, the host is told the greatest id from before it.
 * Nothing is granted meanwhile.
 */
extern void zkl_session_zxid_hide(ZklManager *m);
extern void zkl_session_zxid_show(ZklManager *m);
extern int64_t zkl_session_zxid_shown(const ZklManager *m);

/* Whether there was an election since the greatest id that was seen */
extern bool zkl_session_zxid_is_of_later_election(const ZklManager *m, int64_t zxid);

#endif							/* ZKL_CORE_SESSION_H */
