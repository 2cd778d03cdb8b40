/*
 * mishaps.h
 *	  What may go wrong in a world, at one of the moments where it can matter.
 */
#ifndef WORLDS_MISHAPS_H
#define WORLDS_MISHAPS_H

#include "schedule.h"

/* X(name, what happens) */
#define MISHAPS(X) \
	X(LOSE, "its connection breaks, and what is on its way to ZooKeeper is lost") \
	X(UNANSWERED, "its connection breaks, and what is on its way is done without an answer") \
	X(DONE_LATE, "its connection breaks, and what is on its way is done a second later") \
	X(STALL, "it stands still until its lease is over") \
	X(FREEZE, "the whole server stands still until its lease is over") \
	X(STALL_LONG, "it stands still for longer than a session lasts without a word") \
	X(SILENCE, "its connection is silent until its session is over") \
	X(EXPIRE, "its connection breaks, and it stands still until its session is over") \
	X(KILL_WORKER, "its worker is killed") \
	X(END_WORKER, "its worker is terminated") \
	X(CRASH, "the server crashes") \
	X(STOP, "the server is stopped as planned") \
	X(KILL_SESSION, "the session's process ends") \
	X(ELECT, "the leader stops, and another one is elected") \
	X(DEPOSE, "the leader is cut off, and another one is elected; it does not know") \
	X(LAG, "a follower learns nothing for as long as S1 allows") \
	X(CUT, "a follower is cut off for as long as a session lasts, and does not know") \
	X(LOSE_WRITE, "ZooKeeper loses its latest transaction") \
	X(LOSE_WRITES, "ZooKeeper loses its latest three transactions") \
	X(WIPE, "the ensemble is set up anew, without its data") \
	X(REFUSE, "ZooKeeper answers with errors for a tenth of a second") \
	X(NOT_SENT, "its ZooKeeper client does not send for a tenth of a second") \
	X(BREAK, "an operator breaks the first lock") \
	X(DELETE, "somebody deletes a znode of ours") \
	X(ASK, "somebody asks the first holder or waiter to give the lock up") \
	X(RECREATE, "somebody deletes the directory with all in it, and makes it again") \
	X(STRANGER, "somebody makes a znode that is no contender") \
	X(REAP, "ZooKeeper deletes an empty directory") \
	X(LOSE_MESSAGE, "a message between servers is lost")

typedef enum Mishap
{
#define MISHAP_ENUM(name, text) MISHAP_##name,
	MISHAPS(MISHAP_ENUM)
#undef MISHAP_ENUM
	MISHAPS_COUNT
} Mishap;

#define MAY(name) (UINT64_C(1) << MISHAP_##name)
#define BREAKS	(MAY(LOSE) | MAY(UNANSWERED) | MAY(DONE_LATE))
#define STALLS	(MAY(STALL) | MAY(STALL_LONG) | MAY(SILENCE) | MAY(EXPIRE))

/* Whether it can happen just before this event, and what comes of it differs from that
 * before another one.
 */
extern bool mishap_can_happen(Mishap mishap, const Event *e);
extern void mishap_happen(Mishap mishap, const Event *e);
extern const char *mishap_text(Mishap mishap);

#endif							/* WORLDS_MISHAPS_H */
