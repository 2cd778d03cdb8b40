/*
 * session.h
 *	  The session's life as the core sees it: connections, the chain of heartbeat
 *	  nodes, the transaction ids that are believed, and the lease.
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
extern int64_t zkl_session_zxid_shown(const ZklManager *m);

/* Whether there was an election since the greatest id that was seen */
extern bool zkl_session_zxid_is_of_later_election(const ZklManager *m, int64_t zxid);

/* ---- connection ---- */

/* What a change of the connection or session means for locks and requests. */

extern void zkl_connection_up(ZklManager *m, const ZklSession *session);
extern void zkl_connection_down(ZklManager *m);
extern void zkl_connection_session_lost(ZklManager *m);

/*
 * ZooKeeper has elected a leader, and may have lost its latest writes, those of other
 * clients among them (see session): contenders that had gone may be back.
 * "zxid" is of the first batch of this connection.
 */
extern void zkl_connection_elected(ZklManager *m, int64_t zxid);

/* ZooKeeper has lost writes that it had acknowledged, perhaps those of others too. */
extern void zkl_connection_writes_lost(ZklManager *m);

/* ---- session_lease: how long the session surely lives ---- */

/* r's node could not be read: a hold must see it before the next renewal. */
extern void zkl_session_lease_doubt(ZklManager *m, ZklRequest *r);

/* If the lease may be renewed again, sees to that. */
extern void zkl_session_lease_verify(ZklManager *m);

/* ZooKeeper has answered an operation sent at sent_at. */
extern void zkl_session_lease_contact(ZklManager *m, int64_t sent_at);

/* Until when the session lives, if a batch sent at that time is applied */
extern int64_t zkl_session_lease_until(const ZklManager *m, int64_t sent_at);

/* Reads something, if the session is idle and it is time to. */
extern void zkl_session_lease_send(ZklManager *m);

/* When to do so; -1: never. */
extern int64_t zkl_session_lease_timer(const ZklManager *m);

/* Somebody outside of the server relies on it: for a while it is renewed more often. */
extern void zkl_session_lease_prove(ZklManager *m);

/* How long after a beat the next one is due, in us */
extern int64_t zkl_session_lease_beat(const ZklManager *m);

/* A beat was acknowledged: good until then, unless holds are in doubt. */
extern void zkl_session_lease_extend(ZklManager *m, int64_t until);

/* Whether the lease has run out since the last call, and was relied on */
extern bool zkl_session_lease_note_lapse(ZklManager *m);

/* ---- revived: sessions whose end ZooKeeper has lost ---- */

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

#endif							/* ZKL_CORE_SESSION_H */
