/*
 * backend.h
 *	  The backends of the simulated servers: they ask for locks, hold them,
 *	  commit, give up and die.
 */
#ifndef SIM_BACKEND_H
#define SIM_BACKEND_H

#include "host.h"

#define MAX_BACKENDS	6
#define MAX_HOLDS		4

typedef struct Hold
{
	int			slot;
	uint32_t	generation;
	Time		since;
} Hold;

typedef struct Backend
{
	int			host;
	int			id;
	uint64_t	owner;
	Time		at;
	Time		stopped_until;
	int			waiting;		/* slot, or -1 */
	int			wanted;			/* when all is calm: a lock, asked for until
								 * it has a number again; -1: none */
	Time		give_up_at;
	Time		try_until;
	int			taking;			/* a slot: it has yet to look at the lease; -1 */
	uint32_t	taking_generation;
	bool		checking;		/* has looked at its slots, not yet at the
								 * lease */
	bool		committing;		/* past its commit check */
	bool		to_downgrade;	/* gives back what it holds shared, too */
	int			local_wait;		/* for a lock of PostgreSQL's own; -1: none */
	Time		local_since;
	Time		look_at;		/* who waits for it; NEVER: not at all */
	Hold		holds[MAX_HOLDS];
	int			nholds;
} Backend;

/* What a session asks for, if not by chance; times in us */
typedef struct Want
{
	int			lock;
	bool		shared;
	bool		guard;
	Time		try_for;		/* -1: it waits for as long as it takes */
	Time		give_up;		/* after so long; 0: it does not */
	int64_t		at_most;		/* in ms; 0: no bound */
	int64_t		at_least;
} Want;

typedef struct Backends
{
	void		(*script) (Backend *b); /* what they do next, if not by chance */
	int			per_host;
	Backend		backend[MAX_HOSTS][MAX_BACKENDS];
	Time		think;			/* usual times */
	Time		hold;
	Time		patience;		/* until a wait is cancelled, if it is */
	int			shared;			/* of 100 demands */
	int			tries;
	int			cancels;
	int			nested;			/* of 100 holders, that ask for more */
	int			at_home;		/* of 100 demands, for the host's own lock */
	int			bounded;		/* of 100 demands */
	int			tickets;		/* likewise: nobody waits for them */
	int			asserts;		/* of 100 holders: they ask for how long they
								 * have it */
	Time		at_most;		/* usual bounds */
	Time		at_least;
} Backends;

extern Backends backends;

extern void backends_start(Host *h);
extern void backends_crash(Host *h);
extern void backends_stop(Host *h); /* they are terminated */
extern bool backends_are_gone(const Host *h);
extern void backend_wake(Host *h, int backend);
extern void backend_die(Backend *b);
extern void backend_step(Backend *b);
extern Time backend_due(const Backend *b);

/* From now on: no new demands, and no giving up. */
extern void backends_calm(void);
extern bool backends_idle(void);

/* ---- between backend.c and transaction.c ---- */

extern Host *backend_host(const Backend *b);
extern void backend_end_holds(Backend *b);

/* Whether it may ask for another lock; asks for one. */
extern bool backend_may_ask(const Backend *b);
extern void backend_ask(Backend *b);
extern void backend_want(Backend *b, const Want *want);

/* A holder goes on; is past its look at its slots; has committed. */
extern void transaction_go_on(Backend *b);
extern void transaction_check(Backend *b);
extern void transaction_give_back(Backend *b, int i);
extern void transaction_commit(Backend *b);
extern void transaction_end(Backend *b);

#endif							/* SIM_BACKEND_H */
