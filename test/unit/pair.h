/*
 * pair.h
 *	  A deadlock with another server, for the tests of deadlocks.
 *
 * The other server's session holds /b, and waits for /a, which ours holds.
 */
#ifndef ZKL_PAIR_H
#define ZKL_PAIR_H

#include "world.h"
#include "znode/znode.h"

#define PAIR_PATIENCE	INT64_C(1000000)	/* of our sessions, in µs */
#define PAIR_EVERY		INT64_C(1500000)	/* between the other server's
											 * looks */
#define PAIR_OTHER		77		/* the session of other clients */

typedef struct Pair
{
	World	   *w;
	char		held[ZKL_MAX_PATH + 1]; /* the other's */
	char		waits[ZKL_MAX_PATH + 1];
	int32_t		every_ms;		/* the other's looks at PostgreSQL's locks */
	char		published[ZKL_MAX_PATH + 1];	/* the last one */
	uint32_t	a;				/* ours: held */
	uint32_t	b;				/* waits */
} Pair;

/* The other session has its hold; ours has nothing yet. */
extern Pair pair_begin(void);

/* Our session 1 holds /a, and our session "waiter" waits for /b; or session 1. */
extern Pair pair_make_of(uint64_t waiter);
extern Pair pair_make(void);
extern void pair_finish(Pair *p);

extern uint32_t pair_submit(Pair *p, const char *name, uint64_t owner,
							ZklLockMode mode);

/*
 * Says that the holder of "held" waits at "waits" for a lock; "behind": in
 * PostgreSQL, for the one that waits there.
 */
extern void pair_publish(Pair *p, const char *held, const char *waits,
						 const char *lock, bool behind);

/* The other session has a hold, and waits behind us. */
extern void pair_publish_other(Pair *p);

/* Until our waits are published */
extern void pair_wait_long(Pair *p);

/* ---- questions ---- */

/* Publications of ours */
extern uint32_t pair_publications(void);
extern uint64_t pair_checks(const Pair *p);

/* Whether our wait for /b has failed for a deadlock */
extern bool pair_is_victim(const Pair *p);

#endif							/* ZKL_PAIR_H */
