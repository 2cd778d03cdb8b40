/*
 * worker.h
 *	  The slots of a server, and the worker between them and the core: it tells
 *	  the core what the slots say, and carries out what the core decides.
 *
 * The program that owns a worker sets its clock, and says when it looks at a slot,
 * flushes and carries out.  It is the one that sends.
 */
#ifndef ZKL_MODEL_WORKER_H
#define ZKL_MODEL_WORKER_H

#include "deadlock/deadlock.h"
#include "message.h"
#include "observe/trace.h"

typedef enum SlotState
{
	SLOT_FREE = 0,
	SLOT_WAITING,
	SLOT_GRANTED,
	SLOT_CACHED,
	SLOT_DENIED,
	SLOT_FAILED,
	SLOT_LOST,
	SLOT_RELEASED
} SlotState;

/*
 * The backend's half says what is asked for, the worker's half what the core has
 * had shown.
 */
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
	int32_t		pid;
	int64_t		patience;		/* 0: nothing is published */
	uint64_t	dependents[ZKL_MAX_DEPENDENTS]; /* owners that wait for this
												 * one */
	uint32_t	ndependents;
	int64_t		seen_at;		/* on the host's clock */
	bool		dependents_news;	/* to be told to the core */
	const char *data;			/* for the znode; NULL: a usual one */
	bool		plain;			/* it may be cached */
	bool		guard;			/* its holder reads ZooKeeper */
	bool		guarded;		/* a hold by its znode was a guard */
	int64_t		left_at;		/* CACHED: since when, on the host's clock */
	int64_t		keep_until;		/* bounds, in µs of the host's clock; 0: none */
	int64_t		renewal;		/* another keep_until, for the worker to carry
								 * out; -1: the lock is to be kept no longer */
	int64_t		promised_until; /* likewise: what was told to whoever relies
								 * on it; 0: nothing was */
	int64_t		epilogue_until; /* RELEASED: something is to be written until
								 * then; 0: nothing is */
	int64_t		until;
	bool		quiet;			/* its backend looks at it for its commit, or
								 * is past that */
	int64_t		since;			/* it was asked for: a time, or an order */
	int64_t		asked_at;		/* likewise, on the host's clock */

	/* the worker's */
	int64_t		token;			/* 0: never granted */
	int64_t		granted_at;		/* on the host's clock */
	int64_t		waited;			/* in ms until then; 0: not worth telling */
	ZklFailure	failure;
	int32_t		rc;
	ZklRecord	record;
	uint32_t	znodes;			/* how many unique ids it has had */
	int64_t		asked_zxid;
	bool		overdue;		/* LOST for that reason */
	bool		kept_lost;		/* RELEASED and kept, but lost */
	bool		known;			/* to the core */
	bool		cacheable;

	/* the unit tests' */
	bool		blocked;
	char		behind_cached[16];	/* a server, if it is a short name */
	bool		left;			/* its holder is gone, its release is to come */
	uint32_t	asked;			/* how often to give it up */

	/* the simulation's */
	bool		marked;			/* changed since the worker looked */
	struct
	{
		SlotState	state;
		uint64_t	owner;
		int64_t		token;
	}			earlier;		/* when its worker last slept */
	int			lock;
	int			backend;
	bool		is_try;
	int64_t		at_most;		/* what it asks for, in ms; 0: nothing */
	int64_t		at_least;
	bool		taken;
	bool		resigned;
	bool		ticket;			/* it waits for nobody: released as it is
								 * granted */
	bool		claimed;		/* such a one: it is a reservation now */

	/* its oracle's */
	int64_t		nobodys_since;	/* its owner had nothing else of that lock */
	bool		was_granted;	/* as its worker knows, whatever its backend
								 * did */
	bool		met;			/* a try: others have been ahead of it */
	bool		judged;			/* it is to end for a deadlock */
	bool		node_gone;		/* somebody deleted its node */
	bool		tampered;		/* somebody took its node or its session away */
	bool		revived;		/* the end of the session of its node is lost */
	bool		breaking;		/* an operator breaks its node */
	int64_t		overwritten;	/* zxid of what somebody else wrote to it,
								 * until its server has read that; 0: none */
	int64_t		overwritten_until;	/* when it had */
	bool		counted;		/* its grant, among the tokens */
	bool		writer_between; /* another owner's, that and an earlier node
								 * of its own, when its node was created */
} Slot;

typedef struct Worker
{
	int64_t		now;			/* µs of its clock, which never goes back */

	/*
	 * The program is told of each action: before, if it is to be carried out,
	 * and false stops the worker there; and after it is recorded, when
	 * "changed" says that its slot has another state.  And when a hold
	 * becomes LOST because its time is over.  Only "after" must be there.
	 */
	bool		(*before) (struct Worker *w, const ZklAction *action);
	void		(*after) (struct Worker *w, const ZklAction *action,
						  bool changed);
	void		(*overdue) (struct Worker *w, int slot);
	void	   *owner;			/* the program's */

	/* what outlives it */
	Slot	   *slots;
	uint32_t	nslots;
	ZklSession	session;		/* id 0: none */

	ZklManager *m;				/* NULL: it does not run */
	ZklTrace	trace;			/* at first off */
	bool		halted;			/* it was stopped amid its actions */
	size_t		carried;		/* so many of them */
	int64_t		decided_at;		/* when the core decided them, or some before */
	int64_t		zxid;			/* as the manager last told */
	int64_t		cache_time;		/* us; for the next event */
	int64_t		memory;			/* bytes that the core has */
	int64_t		most_memory;
} Worker;

/* The wings of a worker, for a config */
extern const ZklWing *const worker_wings[];

/*
 * Makes a core that knows of nothing; its memory is the worker's.  There are as
 * many slots as it may have requests.
 */
extern void worker_create(Worker *w, ZklConfig config);
extern void worker_destroy(Worker *w);

/*
 * After a restart: its session is over, and with it all holds.  Those who wait are to be
 * looked at, as are all slots.
 */
extern void worker_take_over(Worker *w);

/* ---- events ---- */

/* The lowest free slot, or -1 */
extern int	worker_find_free(const Worker *w);

/* A session releases the lock: whether it stays CACHED. */
extern bool slot_stays(const Slot *s);

/* For how many ms a slot has waited for a node of its own; 0: that is not to be told */
extern int64_t slot_wait(const Slot *s, int64_t now);

/* Whether something is still to be written; whether the time of a hold is over */
extern bool slot_has_epilogue(const Slot *s, int64_t now);
extern bool slot_is_over(const Slot *s, int64_t now);

/* An event that happens now */
extern void worker_tell(Worker *w, const ZklEvent *event);

/* A backend has changed a slot. */
extern void worker_look(Worker *w, int slot);

/* The time of a hold may be over: it is LOST then, and its node may go. */
extern void worker_look_bounds(Worker *w, int slot);

/* For how long unused locks stay cached from now on, in us; 0: not at all */
extern void worker_cache(Worker *w, int64_t time);

/* A connection stands.  True: its session is a new one. */
extern bool worker_connected(Worker *w, int64_t session, uint32_t timeout_ms,
							 int64_t begun_at);
extern void worker_session_lost(Worker *w);
extern void worker_deliver(Worker *w, const Frame *frame);

/* ---- from other servers: see ZKL_EVENT_PEERS, ASK and WORD ---- */

extern void worker_peers(Worker *w, bool peers);
extern void worker_hear(Worker *w, ZklEventKind kind, const ZklPeerMessage *message);

/* ---- actions ---- */

/*
 * Carries out all actions in order, also those that come meanwhile.  False: it
 * was stopped, and goes on at the next call.
 */
extern bool worker_carry_out(Worker *w);

/* The same after a flush */
extern bool worker_flush(Worker *w);

#endif							/* ZKL_MODEL_WORKER_H */
