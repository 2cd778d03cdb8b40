/*
 * world.h
 *	  A small world: so many servers and locks, what each session does in order,
 *	  and what may go wrong.
 */
#ifndef WORLDS_WORLD_H
#define WORLDS_WORLD_H

#include "../sim/backend.h"
#include "mishaps.h"

#define MOST_SESSIONS	2		/* of a server */

typedef enum Deed
{
	DO_NOTHING,					/* the end of a script */
	DO_WAIT,					/* n ms */
	DO_ASK,						/* for what is wanted; until that is answered */
	DO_COMMIT,					/* and release all */
	DO_GIVE_BACK,				/* hold number n */
	DO_RELEASE_AND_WRITE,		/* all; n ms are for what is to be written
								 * first */
	DO_PROMISE,					/* tell how long hold number n lasts */
	DO_KEEP,					/* hold number n, for "ms" behind its release */
	DO_RENEW,					/* what was kept last, for n ms; 0: it ends */
	DO_CANCEL,					/* what another session keeps */
	DO_DIE,						/* its process ends */
	DO_STOP_SERVER,				/* as planned */
	DO_END_WORKER				/* by a signal */
} Deed;

typedef struct Command
{
	Deed		deed;
	int64_t		n;
	int64_t		ms;
	Want		want;
} Command;

#define LOCK(number, ...) {.deed = DO_ASK, .want = {.lock = number, .try_for = -1, __VA_ARGS__}}
#define SHARE(number, ...) LOCK(number, .shared = true, __VA_ARGS__)
#define TRY(number, us) {.deed = DO_ASK, .want = {.lock = number, .try_for = us}}
#define WAIT(number) {.deed = DO_WAIT, .n = number}
#define COMMIT {.deed = DO_COMMIT}

typedef const Command *Script;

typedef struct World
{
	const char *name;
	const char *about;
	int			members;		/* of the ensemble */
	int			hosts;
	int			locks;
	Script		scripts[MAX_HOSTS][MOST_SESSIONS];
	uint64_t	mishaps;		/* bits */
	ZklDialect	dialect;
	uint32_t	permits;		/* the last lock is a semaphore; 0: it is not */
	int			clients;		/* others, that lock once */
	bool		client_downgrades;	/* it goes on as a reader */
	int64_t		cache_time;		/* ms */
	bool		peers;
	bool		cycles;			/* deadlocks are looked for */
	bool		forgetful;		/* directories that nobody uses are deleted */
	bool		reaps;			/* ZooKeeper deletes empty ones */
	int32_t		counter;		/* of the directory of the first lock; 0:
								 * there is no directory */
	bool		lags;			/* the first server is connected to a follower */
} World;

extern const World worlds[];	/* the last one has no name */
extern const World *world;		/* that is there */

/* Everybody starts; what they do begins when all servers are connected. */
extern void world_begin(void);

/* All sessions are through with their scripts. */
extern bool world_is_over(void);

#endif							/* WORLDS_WORLD_H */
