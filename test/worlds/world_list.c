/*
 * world_list.c
 *	  The worlds.
 *
 * Owns nothing that changes.  T, the session timeout, is 4 s.
 */
#include "world.h"

#define SCRIPT(...) (const Command[]) {__VA_ARGS__, {.deed = DO_NOTHING}}
#define DO(what, number, time) {.deed = what, .n = number, .ms = time}

#define ALL_OF_A_SERVER \
	(MAY(KILL_WORKER) | MAY(END_WORKER) | MAY(CRASH) | MAY(STOP) | MAY(KILL_SESSION))

const World worlds[] = {
	{
		.name = "two",.about = "two servers want one lock at once, and again",
		.members = 1,.hosts = 2,.locks = 1,
		.scripts = {
			{SCRIPT(LOCK(0), COMMIT, LOCK(0), COMMIT, LOCK(0), COMMIT)},
			{SCRIPT(LOCK(0), WAIT(100), COMMIT)}
		},
		.mishaps = BREAKS | MAY(KILL_SESSION)
	},
	{
		.name = "lost",.about = "answers to a create, and to a delete, are lost; then a waiter's",
		.members = 1,.hosts = 2,.locks = 1,
		.scripts = {
			{SCRIPT(LOCK(0), WAIT(100), COMMIT)},
			{SCRIPT(WAIT(50), LOCK(0), WAIT(100), COMMIT)}
		},
		.mishaps = BREAKS
	},
	{
		.name = "elections",.about = "the same, with elections and a follower that lags",
		.members = 3,.hosts = 2,.locks = 1,.lags = true,
		.scripts = {
			{SCRIPT(LOCK(0), WAIT(100), COMMIT)},
			{SCRIPT(WAIT(50), LOCK(0), WAIT(100), COMMIT)}
		},
		.mishaps = MAY(LOSE) | MAY(UNANSWERED) | MAY(ELECT) | MAY(DEPOSE) | MAY(LAG)
	},
	{
		.name = "expiry",.about = "a session ends that holds, or whose grant is on its way",
		.members = 1,.hosts = 2,.locks = 1,
		.scripts = {
			{SCRIPT(LOCK(0), WAIT(11000), COMMIT)},
			{SCRIPT(WAIT(50), LOCK(0), WAIT(1000), COMMIT)}
		},
		.mishaps = STALLS | MAY(UNANSWERED)
	},
	{
		.name = "follower",.about = "a session ends whose server is connected to a follower",
		.members = 3,.hosts = 2,.locks = 1,.lags = true,
		.scripts = {
			{SCRIPT(LOCK(0), WAIT(6000), COMMIT)},
			{SCRIPT(WAIT(50), LOCK(0), WAIT(100), COMMIT)}
		},
		.mishaps = STALLS | MAY(CUT)
	},
	{
		.name = "break",.about = "an operator breaks the lock: against its release, and in full",
		.members = 1,.hosts = 2,.locks = 1,
		.scripts = {
			{SCRIPT(LOCK(0), WAIT(6000), COMMIT)},
			{SCRIPT(WAIT(50), LOCK(0), WAIT(100), COMMIT, LOCK(0), COMMIT)}
		},
		.mishaps = MAY(BREAK) | MAY(DELETE) | MAY(STALL) | MAY(UNANSWERED)
	},
	{
		.name = "cached",.about = "a cached lock against a waiter of another server",
		.members = 1,.hosts = 2,.locks = 1,.cache_time = 2000,
		.scripts = {
			{
				SCRIPT(LOCK(0), COMMIT, LOCK(0), COMMIT, LOCK(0), COMMIT, LOCK(0), COMMIT,
					   WAIT(200), LOCK(0), COMMIT, LOCK(0), WAIT(5000), COMMIT)
			},
			{SCRIPT(WAIT(207), LOCK(0), COMMIT)}
		},
		.mishaps = BREAKS | STALLS
	},
	{
		.name = "shared cache",.about = "a cached lock, two sessions of its server, and a try elsewhere",
		.members = 1,.hosts = 2,.locks = 1,.cache_time = 2000,
		.scripts = {
			{
				SCRIPT(LOCK(0), COMMIT, LOCK(0), COMMIT, LOCK(0), COMMIT, LOCK(0), COMMIT,
					   WAIT(200), LOCK(0), COMMIT),
				SCRIPT(WAIT(200), LOCK(0), WAIT(10), COMMIT)
			},
			{SCRIPT(WAIT(206), TRY(0, 0), COMMIT, TRY(0, 100 * MS), COMMIT)}
		},
		.mishaps = BREAKS | MAY(STALL) | MAY(BREAK)
	},
	{
		.name = "words",.about = "servers tell each other, and a holder releases while a waiter looks",
		.members = 1,.hosts = 2,.locks = 1,.peers = true,
		.scripts = {
			{SCRIPT(LOCK(0), WAIT(100), COMMIT, LOCK(0), COMMIT)},
			{SCRIPT(WAIT(50), LOCK(0), WAIT(100), COMMIT)}
		},
		.mishaps = BREAKS | MAY(LOSE_MESSAGE) | MAY(KILL_WORKER) | MAY(EXPIRE)
	},
	{
		.name = "guarded words",.about = "the same, with locks under which ZooKeeper is read, and tries",
		.members = 1,.hosts = 2,.locks = 1,.peers = true,
		.scripts = {
			{SCRIPT(LOCK(0,.guard = true), LOCK(0), WAIT(100), COMMIT), SCRIPT(WAIT(20), LOCK(0,.give_up = 50 * MS), COMMIT)},
			{SCRIPT(WAIT(50), TRY(0, 80 * MS), COMMIT, LOCK(0), COMMIT)}
		},
		.mishaps = BREAKS | MAY(LOSE_MESSAGE) | MAY(KILL_SESSION)
	},
	{
		.name = "deadlock",.about = "two servers take two locks in two orders",
		.members = 1,.hosts = 2,.locks = 2,.cycles = true,
		.scripts = {
			{SCRIPT(LOCK(0), WAIT(10), LOCK(1), COMMIT)},
			{SCRIPT(LOCK(1), WAIT(10), LOCK(0), COMMIT)}
		},
		.mishaps = BREAKS | MAY(KILL_SESSION) | MAY(STALL)
	},
	{
		.name = "dissolved",.about = "a deadlock that a timeout dissolves as it is found",
		.members = 1,.hosts = 2,.locks = 2,.cycles = true,
		.scripts = {
			{SCRIPT(LOCK(0), WAIT(10), LOCK(1,.give_up = 200 * MS), COMMIT)},
			{SCRIPT(LOCK(1), WAIT(10), LOCK(0), COMMIT)}
		},
		.mishaps = BREAKS | MAY(KILL_SESSION)
	},
	{
		.name = "deadlock of readers",.about = "a reader waits for a writer that waits for a reader",
		.members = 1,.hosts = 2,.locks = 2,.cycles = true,.peers = true,
		.scripts = {
			{
				SCRIPT(SHARE(0), WAIT(10), LOCK(1), COMMIT),
				SCRIPT(WAIT(5), LOCK(0), COMMIT)
			},
			{SCRIPT(LOCK(1), WAIT(10), SHARE(0), COMMIT), SCRIPT(SHARE(0), WAIT(300), COMMIT)}
		},
		.mishaps = BREAKS | MAY(BREAK) | MAY(KILL_SESSION)
	},
	{
		.name = "cached deadlock",.about = "a cycle of waits through a cached lock",
		.members = 1,.hosts = 2,.locks = 2,.cycles = true,.cache_time = 2000,
		.scripts = {
			{
				SCRIPT(LOCK(0), COMMIT, LOCK(0), COMMIT, LOCK(0), COMMIT, LOCK(0), COMMIT,
					   WAIT(50), LOCK(0), LOCK(1), COMMIT)
			},
			{SCRIPT(WAIT(40), LOCK(1), WAIT(20), LOCK(0), COMMIT)}
		},
		.mishaps = MAY(UNANSWERED) | MAY(BREAK)
	},
	{
		.name = "readers",.about = "a writer goes on as a reader, among readers and a writer",
		.members = 1,.hosts = 2,.locks = 1,
		.scripts = {
			{SCRIPT(LOCK(0), SHARE(0), DO(DO_GIVE_BACK, 0, 0), WAIT(100), COMMIT)},
			{
				SCRIPT(SHARE(0), COMMIT), SCRIPT(LOCK(0), COMMIT)
			}
		},
		.mishaps = BREAKS | MAY(BREAK) | MAY(KILL_SESSION)
	},
	{
		.name = "upgrade",.about = "readers that want the lock for themselves",
		.members = 1,.hosts = 2,.locks = 1,
		.scripts = {
			{SCRIPT(SHARE(0), LOCK(0), COMMIT)},
			{SCRIPT(SHARE(0), WAIT(10), LOCK(0), COMMIT), SCRIPT(WAIT(5), LOCK(0), COMMIT)}
		},
		.mishaps = BREAKS
	},
	{
		.name = "semaphore",.about = "three sessions want one permit",
		.members = 1,.hosts = 2,.locks = 1,.permits = 1,
		.scripts = {
			{SCRIPT(LOCK(0), WAIT(10), COMMIT), SCRIPT(LOCK(0), COMMIT)},
			{SCRIPT(LOCK(0), WAIT(10), COMMIT)}
		},
		.mishaps = BREAKS | MAY(STALL_LONG) | MAY(KILL_SESSION) | MAY(STRANGER)
	},
	{
		.name = "reservation",.about = "a kept lock is renewed as it ends",
		.members = 1,.hosts = 2,.locks = 1,
		.scripts = {
			{
				SCRIPT(LOCK(0,.at_least = 300), DO(DO_KEEP, 0, 300), COMMIT, WAIT(199),
					   DO(DO_RENEW, 200, 0), WAIT(100), DO(DO_RENEW, 0, 0)),
				SCRIPT(WAIT(150), LOCK(0), COMMIT)
			},
			{SCRIPT(WAIT(100), LOCK(0), COMMIT)}
		},
		.mishaps = BREAKS | MAY(STALL) | MAY(BREAK)
	},
	{
		.name = "promise",.about = "a server is stopped, or broken, although a time was told",
		.members = 1,.hosts = 2,.locks = 1,
		.scripts = {
			{
				SCRIPT(LOCK(0,.at_most = 1500,.at_least = 500), WAIT(100), DO(DO_PROMISE, 0, 0), WAIT(100), COMMIT),
				SCRIPT(WAIT(250), LOCK(0), COMMIT)
			},
			{SCRIPT(WAIT(100), LOCK(0), WAIT(100), COMMIT)}
		},
		.mishaps = MAY(STOP) | MAY(BREAK) | MAY(STALL) | ALL_OF_A_SERVER
	},
	{
		.name = "stop",.about = "a server is stopped as planned with a promise in force",
		.members = 1,.hosts = 2,.locks = 1,
		.scripts = {
			{
				SCRIPT(LOCK(0), DO(DO_PROMISE, 0, 0), WAIT(100), DO(DO_KEEP, 0, 3000), COMMIT),
				SCRIPT(WAIT(50), DO(DO_STOP_SERVER, 0, 0))
			},
			{SCRIPT(WAIT(20), LOCK(0), WAIT(100), COMMIT)}
		},
		.mishaps = MAY(KILL_SESSION) | MAY(KILL_WORKER) | MAY(END_WORKER) | MAY(BREAK) | MAY(DELETE)
	},
	{
		.name = "told times",.about = "a told time, against a bound, a loss, and a cancel by another session",
		.members = 1,.hosts = 2,.locks = 1,
		.scripts = {
			{
				SCRIPT(LOCK(0,.at_least = 1000), DO(DO_PROMISE, 0, 0), COMMIT, LOCK(0), WAIT(3000), COMMIT),
				SCRIPT(WAIT(50), DO(DO_CANCEL, 0, 0), WAIT(50), DO(DO_END_WORKER, 0, 0))
			},
			{SCRIPT(WAIT(20), LOCK(0), WAIT(100), COMMIT)}
		},
		.mishaps = MAY(KILL_SESSION) | MAY(STALL) | MAY(STALL_LONG) | MAY(BREAK) | MAY(DELETE)
	},
	{
		.name = "told and gone",.about = "who was told a time is gone, and then its worker",
		.members = 1,.hosts = 2,.locks = 1,
		.scripts = {
			{
				SCRIPT(LOCK(0), WAIT(20), DO(DO_PROMISE, 0, 0), WAIT(30), DO(DO_DIE, 0, 0)),
				SCRIPT(WAIT(100), DO(DO_END_WORKER, 0, 0))
			},
			{SCRIPT(WAIT(10), LOCK(0), WAIT(100), COMMIT)}
		},
		.mishaps = MAY(BREAK) | MAY(DELETE) | MAY(EXPIRE) | MAY(CRASH) | MAY(STALL_LONG) | MAY(KILL_WORKER)
	},
	{
		.name = "nested",.about = "a session that keeps one of its holds, and asks again",
		.members = 1,.hosts = 2,.locks = 1,
		.scripts = {
			{
				SCRIPT(LOCK(0), LOCK(0,.at_least = 200), DO(DO_GIVE_BACK, 0, 0), DO(DO_GIVE_BACK, 0, 0), LOCK(0), COMMIT),
				SCRIPT(WAIT(50), LOCK(0,.at_least = 100), COMMIT, LOCK(0), COMMIT)
			},
			{SCRIPT(WAIT(20), LOCK(0), COMMIT)}
		},
		.mishaps = BREAKS | MAY(KILL_SESSION) | MAY(BREAK)
	},
	{
		.name = "worker",.about = "a worker ends with a holder, a waiter, and something to be written",
		.members = 1,.hosts = 2,.locks = 1,
		.scripts = {
			{
				SCRIPT(LOCK(0), WAIT(100), DO(DO_RELEASE_AND_WRITE, 50, 0)),
				SCRIPT(WAIT(50), LOCK(0), WAIT(100), COMMIT)
			},
			{SCRIPT(WAIT(60), LOCK(0), COMMIT)}
		},
		.mishaps = ALL_OF_A_SERVER | MAY(UNANSWERED)
	},
	{
		.name = "cold",.about = "a cold name, whose directory others make and remove",
		.members = 1,.hosts = 2,.locks = 1,.forgetful = true,.clients = 1,.reaps = true,
		.scripts = {
			{SCRIPT(LOCK(0), COMMIT, WAIT(3000), LOCK(0), COMMIT)},
			{SCRIPT(WAIT(2900), LOCK(0), COMMIT)}
		},
		.mishaps = BREAKS | MAY(REAP)
	},
	{
		.name = "kazoo",.about = "a cold name in the dialect of kazoo, whose directories stay",
		.members = 1,.hosts = 2,.locks = 1,.forgetful = true,.dialect = ZKL_DIALECT_KAZOO,
		.scripts = {
			{SCRIPT(LOCK(0), COMMIT, WAIT(3000), SHARE(0), COMMIT)},
			{SCRIPT(SHARE(0), COMMIT)}
		},
		.mishaps = BREAKS
	},
	{
		.name = "errors",.about = "ZooKeeper, or its client, answers with errors",
		.members = 1,.hosts = 2,.locks = 1,
		.scripts = {
			{SCRIPT(LOCK(0), WAIT(100), COMMIT, LOCK(0), COMMIT)},
			{SCRIPT(WAIT(50), LOCK(0), WAIT(100), COMMIT)}
		},
		.mishaps = MAY(REFUSE) | MAY(NOT_SENT) | MAY(UNANSWERED)
	},
	{
		.name = "questions",.about = "somebody asks for locks that are held, awaited, or cached",
		.members = 1,.hosts = 2,.locks = 1,.cache_time = 2000,
		.scripts = {
			{
				SCRIPT(LOCK(0), COMMIT, LOCK(0), COMMIT, LOCK(0), COMMIT, LOCK(0), COMMIT,
					   WAIT(200), LOCK(0), DO(DO_KEEP, 0, 50), COMMIT)
			},
			{SCRIPT(WAIT(206), LOCK(0), COMMIT)}
		},
		.mishaps = MAY(ASK) | MAY(UNANSWERED) | MAY(DELETE) | MAY(SILENCE)
	},
	{
		.name = "client",.about = "another client, that goes on as a reader, among readers and a writer",
		.members = 1,.hosts = 2,.locks = 1,.clients = 1,.client_downgrades = true,
		.scripts = {
			{SCRIPT(WAIT(50), LOCK(0), COMMIT)},
			{SCRIPT(WAIT(60), SHARE(0), COMMIT)}
		},
		.mishaps = BREAKS | MAY(BREAK)
	},
	{
		.name = "counter",.about = "a directory whose counter is at its end",
		.members = 1,.hosts = 2,.locks = 1,.counter = ZKL_SEQ_LIMIT - 1,
		.scripts = {
			{SCRIPT(LOCK(0), COMMIT, LOCK(0), COMMIT, LOCK(0), COMMIT)},
			{SCRIPT(LOCK(0), COMMIT, WAIT(100), LOCK(0), COMMIT)}
		},
		.mishaps = BREAKS
	},
	{
		.name = "tries",.about = "tries against a holder that comes and goes",
		.members = 3,.hosts = 2,.locks = 1,
		.scripts = {
			{SCRIPT(LOCK(0), WAIT(10), COMMIT), SCRIPT(WAIT(11), TRY(0, 0), COMMIT)},
			{SCRIPT(WAIT(5), TRY(0, 0), COMMIT, WAIT(6), TRY(0, 0), COMMIT, TRY(0, 20 * MS), COMMIT)}
		},
		.mishaps = BREAKS | MAY(ELECT) | MAY(LAG) | MAY(STALL)
	},
	{
		.name = "lost writes",.about = "ZooKeeper loses writes that it had acknowledged",
		.members = 3,.hosts = 2,.locks = 1,
		.scripts = {
			{SCRIPT(LOCK(0), WAIT(100), COMMIT, LOCK(0), COMMIT)},
			{SCRIPT(WAIT(50), LOCK(0), WAIT(100), COMMIT)}
		},
		.mishaps = MAY(LOSE_WRITE) | MAY(LOSE_WRITES) | MAY(WIPE) | MAY(UNANSWERED) | MAY(EXPIRE)
	},
	{
		.name = "frozen",.about = "a session takes a cached lock as its server stands still",
		.members = 1,.hosts = 2,.locks = 1,.cache_time = 10000,
		.scripts = {
			{
				SCRIPT(LOCK(0), COMMIT, LOCK(0), COMMIT, LOCK(0), COMMIT, LOCK(0), COMMIT,
					   WAIT(100), LOCK(0), COMMIT, WAIT(6000), LOCK(0), COMMIT)
			},
			{SCRIPT(WAIT(7000), LOCK(0), COMMIT)}
		},
		.mishaps = MAY(FREEZE) | MAY(BREAK) | MAY(DELETE) | MAY(EXPIRE)
	},
	{
		.name = "words and tries",.about = "tries behind a znode of which a word came",
		.members = 1,.hosts = 2,.locks = 1,.peers = true,
		.scripts = {
			{SCRIPT(LOCK(0), WAIT(100), COMMIT), SCRIPT(LOCK(0,.guard = true), COMMIT)},
			{
				SCRIPT(WAIT(50), LOCK(0), COMMIT),
				SCRIPT(WAIT(51), TRY(0, 51 * MS), COMMIT, TRY(0, 0), COMMIT)
			}
		},
		.mishaps = BREAKS | MAY(LOSE_MESSAGE)
	},
	{
		.name = "published",.about = "the holder of a lock waits for another one, and gives up",
		.members = 1,.hosts = 2,.locks = 2,.peers = true,.cycles = true,
		.scripts = {
			{SCRIPT(LOCK(0), WAIT(10), LOCK(1,.give_up = 500 * MS), COMMIT)},
			{
				SCRIPT(LOCK(1), WAIT(1000), COMMIT),
				SCRIPT(WAIT(10), LOCK(0), COMMIT)
			}
		},
		.mishaps = BREAKS | MAY(BREAK) | MAY(KILL_SESSION)
	},
	{
		.name = "guess",.about = "a directory that is made on a guess, while another server holds",
		.members = 1,.hosts = 2,.locks = 1,.forgetful = true,
		.scripts = {
			{SCRIPT(LOCK(0), COMMIT, WAIT(3000), LOCK(0), COMMIT)},
			{SCRIPT(WAIT(2900), LOCK(0), WAIT(300), COMMIT)}
		},
		.mishaps = BREAKS
	},
	{
		.name = "vandals",.about = "somebody with other tools, at a lock that is held and awaited",
		.members = 1,.hosts = 2,.locks = 1,
		.scripts = {
			{SCRIPT(LOCK(0), WAIT(100), COMMIT, LOCK(0), COMMIT)},
			{SCRIPT(WAIT(50), LOCK(0), WAIT(100), COMMIT)}
		},
		.mishaps = MAY(DELETE) | MAY(RECREATE) | MAY(ASK) | MAY(STRANGER)
	},
	{.name = NULL}
};
