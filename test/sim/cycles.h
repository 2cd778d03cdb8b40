/*
 * cycles.h
 *	  Sessions that wait for each other: the locks of PostgreSQL's own, and what
 *	  the oracle says of deadlocks.
 *
 * In some seeds backends take locks in any order, so that they get into cycles,
 * across servers and through the locks of one server.  There the core looks for
 * deadlocks.
 */
#ifndef SIM_CYCLES_H
#define SIM_CYCLES_H

#include "backend.h"

#define MAX_LOCAL	2			/* locks of each server */

typedef struct Cycles
{
	bool		on;
	bool		wing;			/* the cores can find deadlocks; if there can
								 * be none, they need not */
	bool		disturbed;		/* its searches are: see below */
	Time		patience;		/* of a wait, until it is published */
	int			nlocal;
	int			local;			/* of 100 demands of a holder */
	int			holder[MAX_HOSTS][MAX_LOCAL];	/* a backend; -1: none */
	Time		seen[MAX_HOSTS][MAX_BACKENDS][MAX_BACKENDS];	/* that the first waits
																 * for the second */
	Time		decided_at[MAX_HOSTS];	/* the last verdict */
} Cycles;

extern Cycles cycles;

extern void cycles_begin(void);

/* ---- PostgreSQL's own locks ---- */

/* Asks for one; false: there is none that it may ask for. */
extern bool local_ask(Backend *b);

/* Waits for none, and keeps what it has: lock_timeout, and a savepoint before that */
extern void local_give_up(Backend *b);

/* Releases all, and waits for none. */
extern void local_end(Backend *b);
extern void local_crash(int host);

/* Looks who waits for b, which waits for a lock, and tells the worker. */
extern void local_look(Backend *b);

/*
 * The worker lists all publications, mostly for a search.  In some seeds a session gives
 * up its wait in PostgreSQL before that comes to its end, and the host looks again.
 */
extern void cycles_searched(const Host *h);

/*
 * All is calm: nobody finds the deadlocks of a wait that is not published, so its
 * session gives up by itself.
 */
extern void cycles_calm(Backend *b);

/* ---- the oracle ---- */

extern void oracle_cycles(const Entry *entry);

/* An operation of a worker's that may publish a wait is about to be sent. */
extern void oracle_publishes(Host *h, const ZklMultiOp *op);

/* In the end all cycles are gone. */
extern void oracle_cycles_over(void);

#endif							/* SIM_CYCLES_H */
