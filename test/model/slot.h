/*
 * slot.h
 *	  What a server keeps of a request, whatever becomes of its worker.
 *
 * The backend's half says what is asked for, the worker's half what the core
 * has had recorded: a restarted worker finds both.
 */
#ifndef ZKL_MODEL_SLOT_H
#define ZKL_MODEL_SLOT_H

#include "core/manager.h"

typedef enum SlotState
{
	SLOT_FREE = 0,
	SLOT_WAITING,
	SLOT_GRANTED,
	SLOT_DENIED,
	SLOT_FAILED,
	SLOT_LOST,
	SLOT_RELEASED
} SlotState;

typedef struct Slot
{
	SlotState	state;

	/* the backend's */
	const char *name;			/* of the lock */
	ZklDialect	dialect;
	uint32_t	max;			/* of a semaphore */
	ZklLockMode mode;
	uint64_t	owner;
	int			sibling;
	bool		timed_out;
	bool		together;		/* to be told once it waits for others */
	int64_t		keep_until;
	int64_t		since;			/* it was asked for: a time, or an order */

	/* the worker's */
	int64_t		token;			/* 0: never granted */
	uint32_t	generation;		/* of the session of the grant or the node */
	ZklFailure	failure;
	int32_t		rc;
	bool		sent;			/* the znode */
	bool		going;
	ZklUuid		uuid;
	ZklLockMode znode_mode;
	ZklSeq		seq;
	uint32_t	index;
	int64_t		asked_zxid;
	bool		overdue;		/* LOST for that reason */
	bool		retired;

	/* the unit tests' */
	bool		blocked;
	bool		left;			/* its holder is gone, its release is to come */
	uint32_t	znodes;			/* how many unique ids it has had */
	uint32_t	asked;			/* how often to give it up */

	/* the simulation's */
	uint32_t	serial;
	bool		marked;			/* changed since the worker looked */
	int			lock;
	int			backend;
	bool		is_try;
	int64_t		at_most;		/* bounds, in ms; 0: none */
	int64_t		at_least;
	int64_t		until;			/* by the host's clock */
	bool		taken;
	bool		quiet;			/* its backend looks at it for its commit, or
								 * is past that */

	/* its oracle's */
	uint64_t	asker;			/* owner, before it was nobody's */
	int64_t		nobodys_since;	/* its asker had nothing else of that lock */
	int64_t		released_at;
	bool		node_gone;		/* somebody deleted its node */
	bool		tampered;		/* somebody took its node or its session away */
	bool		breaking;		/* an operator breaks its node */
	bool		counted;		/* its grant, among the tokens */
	bool		writer_between; /* another owner's, that and an earlier node
								 * of its own, when its node was created */
} Slot;

/* What the core is told of a request; strings are the slot's. */
extern ZklDemand slot_demand(const Slot *s);

/*
 * What a restarted core is told; current, over and the end are the host's to
 * fill in.
 */
extern void slot_restore(const Slot *s, ZklRestored *restored);

/*
 * Records what an action says of its request, in a session of this generation.
 * An answer that comes after the backend has gone on changes nothing.  True: the
 * state is another one now.
 */
extern bool slot_record(Slot *s, const ZklAction *action, uint32_t generation);

#endif							/* ZKL_MODEL_SLOT_H */
