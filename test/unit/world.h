/*
 * world.h
 *	  A worker with its core, and a ZooKeeper beside it.
 *
 * The worker flushes after each event.  On the way the world checks, by looking
 * at the whole tree, that nothing is granted that conflicts with anybody, that
 * answers come once and in an order that makes sense, and that what has to be
 * recorded is recorded before it is sent.
 */
#ifndef ZKL_WORLD_H
#define ZKL_WORLD_H

#include "../model/model.h"
#include "../model/worker.h"

#define WORLD_ROOT			"/zklock"
#define WORLD_REQUESTS		2048
#define WORLD_TIMEOUT_MS	6000
#define WORLD_LEASE			(WORLD_TIMEOUT_MS * 1000LL * 2 / 3)
#define WORLD_BEAT			(WORLD_TIMEOUT_MS * 1000LL / 6)

/* What an operator writes to break a lock */
#define WORLD_BREAK			"{\"breaking\":true,\"zklock\":1}"

typedef struct World
{
	bool		together;		/* what is asked for is one of several */
	bool		plain;			/* it may be cached */
	ZklDialect	dialect;		/* of all names */
	uint32_t	max;			/* how many may hold a name; not 0: a
								 * semaphore */
	int64_t		patience;		/* of what is asked for; 0: endless */
	Worker		worker;
	Model		zk;
	ModelConnection conn;
	int64_t		last_session;
	uint32_t	timeout_ms;		/* of the next connection's session */
	bool		connected;
	bool		gave_up;		/* RECONNECT came */
	bool		was_ready;		/* before the last flush */
	uint64_t	submissions;
	Slot		requests[WORLD_REQUESTS];
	char		asker[256];		/* the last to ask a holder to give it up */
	bool		tampered;		/* somebody deletes our nodes: no exclusion */
	uint32_t	grants;
	uint32_t	losses;
	uint32_t	frees;
	uint32_t	lost_writes;	/* said that ZooKeeper has lost some */
	uint32_t	revived;		/* said that somebody is ahead of a hold */
	uint32_t	asks;			/* to other servers */
	uint32_t	words;
	uint32_t	asked;			/* a grant is solitary no longer */
	ZklPeerMessage sent;		/* the last one of these two */
	ZklUuid		departed;		/* in nobody's way */
	ZklConfig	config;			/* at most WORLD_REQUESTS requests */
} World;

/* A fresh world, not yet connected; change its knobs and then begin. */
extern World *world_make(void);
extern void world_begin(World *w);
extern void world_end(World *w);

/* The usual: made, begun, connected, proved. */
extern World *world_ready(void);

/* ---- the host's events ---- */

extern void world_connect(World *w);
extern void world_disconnect(World *w);
extern void world_expire_session(World *w);

/*
 * A new manager for the same requests, as after a crash of the worker, once the session of
 * the one before is over.
 */
extern void world_restart(World *w);

/* Submits a request of the lowest free number, which is returned. */
extern uint32_t world_submit(World *w, const char *name, uint64_t owner,
							 ZklLockMode mode);
extern uint32_t world_try(World *w, const char *name, uint64_t owner,
						  ZklLockMode mode);

/* What a backend writes into a free slot */
extern Slot *world_fill(World *w, uint32_t request, const char *name,
						uint64_t owner, ZklLockMode mode);

/* The same without the flush, for several at a time. */
extern uint32_t world_enter(World *w, const char *name, uint64_t owner,
							ZklLockMode mode, bool expired);
extern void world_release(World *w, uint32_t request);
extern void world_leave(World *w, uint32_t request);
extern void world_expire(World *w, uint32_t request);

/* Releases a hold that is kept for so many µs. */
extern void world_keep(World *w, uint32_t request, int64_t us);

/* The time of a hold is over, and its backend is past no commit check. */
extern void world_overdue(World *w, uint32_t request);
extern void world_flush(World *w);

/* Lets time go by, with the timer's flushes. */
extern void world_sleep(World *w, int64_t us);

/* An id of ours, of no request */
extern ZklUuid world_leftover(const World *w);

/* ---- the connection ---- */

/* The server executes up to n; up to n answers and events are delivered. */
extern void world_serve(World *w, int n);
extern void world_deliver(World *w, int n);

/*
 * Both until nothing is under way or due soon; reconnects when the manager
 * asks.
 */
extern void world_run(World *w);

/* ---- steps that scenarios have in common ---- */

/* Counts of the model begin at 0 again. */
extern void world_count_anew(World *w);

/*
 * Holds and lets go a lock, so that its directory is known.  Three times: the
 * first time there may be no directory yet, the second one has it watched.
 */
extern void world_warm_up(World *w, const char *name);

/* Somebody writes to the znode of a request. */
extern void world_write(World *w, uint32_t request, const char *data);

/* Lets everybody go, checks that nothing stays, and ends the world. */
extern void world_wind_up(World *w);

/* ---- questions ---- */

extern bool world_holds(const World *w, uint32_t request);
extern bool world_waits(const World *w, uint32_t request);
extern bool world_keeps(const World *w, uint32_t request);

/* The path of a request's znode; there is room for ZKL_MAX_PATH + 1. */
extern void world_path(const World *w, uint32_t request, char *path);

/* The number of our last heartbeat node; the path of one, by its number; the same room */
extern uint32_t world_chain(const World *w);
extern void world_heartbeat(const World *w, uint32_t chain, char *path);

/* ZooKeeper loses the last beat: on the next connection, the janitor looks at all. */
extern void world_lose_a_beat(World *w);

/* Contenders of ours that exist in the directory of a lock */
extern uint32_t world_nodes(const World *w, const char *name);

/* Every check at rest: invariants, and no node that nobody asked for. */
extern void world_check(const World *w);

/* ---- between world.c and world_oracle.c ---- */

/* A grant, before it is recorded */
extern void world_check_grant(const World *w, const Slot *r);

/* A multi that goes out: what it names must have been recorded before. */
extern void world_check_recorded(const World *w, const ZklAction *action);

/* ---- other clients ---- */

/* Creates a Curator-like contender; the path goes to created. */
extern void foreign_enter(World *w, const char *name, ZklLockMode mode,
						  char *created);

/* The same as another zklock server would, with this data */
extern void foreign_zklock(World *w, const char *name, ZklLockMode mode,
						   const char *data, char *created);

/* Curator's (5.5) downgrade: a reader of the writer's own number stays. */
extern void foreign_downgrade(World *w, const char *writer, char *reader);

/* A contender that was there before is there again. */
extern void foreign_restore(World *w, const char *path);

/* All foreign contenders of a lock vanish. */
extern void foreign_leave_all(World *w, const char *name);

#endif							/* ZKL_WORLD_H */
