/*
 * slot.h
 *	  The slots: where requests of backends and answers of the worker meet.
 *
 * One slot is one request of one backend.  Its life cycle, with the process
 * that makes each step (B the backend, W the worker):
 *
 *	  FREE -B-> CLAIMED -B-> WAITING -W-> GRANTED -B-> RELEASED -W-> FREE
 *	                            |  |       |    |          ^
 *	                            |  |       B    W-> LOST -B+
 *	                            |  |       |               |
 *	                            |  |      CACHED -W--------+
 *	                            |  W-> DENIED or FAILED -B-+
 *	                            B (cancel) ----------------+
 *
 * A lock that is released while s_cacheable is set becomes CACHED: its znode
 * stays at the head of its queue, and the next session that wants the lock takes
 * it, CACHED -> GRANTED, without the worker.  The worker ends that by a recall,
 * one step that clears s_cacheable and makes a CACHED slot RELEASED.
 *
 * A ticket is a request that nobody waits for: see recipes/ticket.h.  Its grant and
 * its release are one step, WAITING -W-> RELEASED, so it is kept as a reservation is,
 * first until it has to be claimed.  The backend that withdraws it makes the same step.
 *
 * Nothing can throw between CLAIMED and WAITING.  A slot returns to FREE only
 * in the worker, once its znode is known to be gone, so that a znode never
 * outlives its slot.
 *
 * Who writes which fields (test/check-writers.pl checks it).  All writes are
 * under s_mutex, except those of the backend to a CLAIMED slot, which no other
 * process uses:
 *	  s_state			 the process that makes the step above
 *	  s_request			 the backend while CLAIMED or as it takes a CACHED slot;
 *						 constant until FREE or the next take
 *	  s_holder			 the backend until it has released the slot
 *	  s_answer			 the worker; the claim clears it, and a take fills it in
 *						 as a grant does; whoever sees first that a ticket
 *						 has lapsed notes that
 *	  s_record			 the worker; the claim clears it
 *	  s_cacheable		 the worker; the claim clears it
 *	  s_dependents			 the backend that looks for all: wait.c
 *	  the others		 both: the comment on each field tells when
 *
 * s_state alone may be read without s_mutex, by the slot's own backend to see
 * whether a wait may be over; it looks again under s_mutex before it acts.
 * Nothing that can throw or block runs while s_mutex is held.  A slot's mutex
 * and the control block's locks are never held together.
 *
 * There are two sorts of slots.  The first ctl_nrequests ("zklock.max_requests")
 * are for requests of kind LOCK, and free ones are on a list: when they run
 * out, no session gets another lock.  Behind them each backend has
 * ZKL_OWN_SLOTS of its own for the other kinds, found by its number among the
 * processes, which the list knows nothing of.  So no session can keep others from
 * looking at queues, breaking locks or ending a transaction by taking many
 * locks.  A backend has one such request under way at a time; the second slot
 * is for the next one, while the worker has not yet freed the first.
 */
#ifndef ZKL_SHARED_SLOT_H
#define ZKL_SHARED_SLOT_H

#include "datatype/timestamp.h"
#include "shared/lockstats.h"
#include "storage/dsm.h"
#include "storage/spin.h"
#include "znode/znode.h"

typedef enum ZklSlotState
{
	ZKL_SLOT_FREE = 0,
	ZKL_SLOT_CLAIMED,
	ZKL_SLOT_WAITING,
	ZKL_SLOT_GRANTED,
	ZKL_SLOT_CACHED,			/* released, and can be taken again */
	ZKL_SLOT_DENIED,			/* a try: another owner is ahead */
	ZKL_SLOT_FAILED,			/* the answer's error says why */
	ZKL_SLOT_LOST,				/* was granted; the error says why it is not */
	ZKL_SLOT_RELEASED
} ZklSlotState;

typedef enum ZklSlotKind
{
	ZKL_KIND_LOCK,
	ZKL_KIND_ERRAND,			/* s_dsm says what to read or to do; see
								 * errand_layout.h */
	ZKL_KIND_DUMP,				/* zk_dump(): s_dsm says where to answer */
	ZKL_KIND_AHEAD,				/* as DUMP, of what is ahead of the request
								 * "about": see worker/answers.c */
	ZKL_KIND_RENEWAL,			/* of the reservation in the slot "about": see
								 * worker/answers.c */
	ZKL_KIND_CLAIM,				/* of the ticket in the slot "about", or, -1,
								 * of the next one that is granted: see
								 * worker/answers.c */
	ZKL_KIND_RECONNECT			/* zk_reconnect(): s_dsm says where to answer */
} ZklSlotKind;

typedef enum ZklLifetime
{
	ZKL_LIFETIME_SESSION,
	ZKL_LIFETIME_TRANSACTION,
	ZKL_LIFETIME_RESERVATION,	/* released at once, and kept */
	ZKL_LIFETIME_TICKET			/* likewise, by the worker; a reservation once
								 * it is claimed */
} ZklLifetime;

#define ZKL_HELD_LIFETIMES	2	/* those of holds */

/* Why a request failed or a lock was lost; the backend words the error. */
typedef enum ZklError
{
	ZKL_ERROR_NONE = 0,
	ZKL_ERROR_UPGRADE,			/* shared -> exclusive with another between */
	ZKL_ERROR_DEADLOCK,			/* across servers; see deadlocks.h */
	ZKL_ERROR_ZOOKEEPER,		/* zkrc says what ZooKeeper answered */
	ZKL_ERROR_PARENTS,			/* the lock's directory could not be made */
	ZKL_ERROR_NO_NUMBER,		/* the counter of that directory is at its end */
	ZKL_ERROR_SESSION_EXPIRED,	/* lost: the ZooKeeper session is gone */
	ZKL_ERROR_WORKER_ENDED,		/* lost: a worker ended, and its session is
								 * left to expire */
	ZKL_ERROR_NODE_DELETED,		/* lost: somebody deleted the znode */
	ZKL_ERROR_BROKEN,			/* lost: an operator broke the lock */
	ZKL_ERROR_UNREADABLE,		/* lost: the znode's ACL shuts us out */
	ZKL_ERROR_OVERTAKEN,		/* lost: ZooKeeper may have ended the session,
								 * and lost that */
	ZKL_ERROR_OVERDUE,			/* lost: it was held longer than its at_most */
	ZKL_ERROR_RESIGNED,			/* lost: a leader, and the server is drained */
	ZKL_ERROR_CANCELLED,		/* lost: a reservation that a superuser
								 * cancelled */
	ZKL_ERROR_UNCLAIMED,		/* lost: a ticket that nobody claimed in time */
	ZKL_ERROR_TOO_LARGE,		/* DUMP, AHEAD: dsm_size says what it takes */
	ZKL_ERROR_SEGMENT,			/* the worker cannot map the backend's segment */
	ZKL_ERROR_LAPSED			/* its lease has ended; not known to be lost */
} ZklError;

/* What a holder found when its transaction had committed or was prepared: tell.c */
typedef enum ZklLate
{
	ZKL_LATE_NOT,
	ZKL_LATE_LOST,
	ZKL_LATE_LAPSED,
	ZKL_LATE_PREPARED_LOST,
	ZKL_LATE_PREPARED_LAPSED
} ZklLate;

/*
 * Whether a lock that is lost for this reason still has its znode, which is to
 * be deleted as soon as the backend can commit no more.
 */
static inline bool
zkl_slot_error_ends_znode(ZklError error)
{
	return error == ZKL_ERROR_OVERDUE || error == ZKL_ERROR_RESIGNED ||
		error == ZKL_ERROR_UNREADABLE || error == ZKL_ERROR_OVERTAKEN;
}

#define ZKL_MAX_LEADER_ID	255 /* a server's name and a process id fit */
#define ZKL_MAX_ASKER_TEXT		256

/* What a backend wants */
typedef struct ZklSlotRequest
{
	uint8		kind;			/* ZklSlotKind */
	uint8		mode;			/* ZklLockMode */
	uint8		lifetime;		/* ZklLifetime */
	uint8		dialect;		/* ZklDialect */
	bool		is_try;			/* may be denied once it has timed out */
	bool		together;		/* one of several requested at once */
	bool		guard;			/* of a semaphore, for a moment: see
								 * recipes/semaphore.c */
	bool		waited;			/* dialect PERMIT: the guard had to wait */
	int64		asked_us;		/* when the call began; boottime.h */
	uint32		max;			/* dialect PERMIT: see core/decide.h */
	int			procno;			/* the backend's PGPROC, for its latch */
	int			pid;
	Oid			roleid;			/* for what other roles may see */
	uint64		claimer;		/* s_owner as it was at first */
	int			sibling;		/* a live hold of this owner on this path, or
								 * -1 */
	int			about;			/* AHEAD: the slot of a request of this owner;
								 * RENEWAL: that of the reservation */
	int64		token;			/* RENEWAL: of the reservation; CLAIM: the
								 * ticket */
	int64		renewed_for;	/* RENEWAL: for how many ms; 0: it ends */
	bool		by_other;		/* RENEWAL: not by the role that made it */
	bool		reads;			/* AHEAD: what is not known is to be read */
	bool		awaits;			/* ERRAND: it waits for what others do */
	int			patience;		/* in ms: a longer wait takes part in
								 * deadlocks across servers; 0: never */
	uint8		lost_action;	/* ZklLostLockAction */
	uint8		on_release_request; /* ZklOnReleaseRequest */
	char		leader_id[ZKL_MAX_LEADER_ID + 1];	/* UTF-8; LATCH: the
													 * znode's data */
	char		path[ZKL_MAX_NAME + 1]; /* UTF-8 */
	char		database[64];	/* these three in UTF-8, cut to fit */
	char		usename[64];
	char		application[64];
	char		client[ZKL_MAX_CLIENT + 1]; /* address; empty: a local socket */
	TimestampTz backend_start;
	TimestampTz requested_at;
	int64		at_most;		/* ms from the grant, or 0: see s_until */
	int64		at_least;		/* likewise: see s_keep_until; of a ticket,
								 * until when it has to be claimed */
	int64		ticket;			/* its number; 0: this is none */
	int64		duration;		/* of a ticket: ms from the claim */
} ZklSlotRequest;

/* What a backend tells of a request or hold as it goes on */
typedef struct ZklSlotHolder
{
	bool		timed_out;		/* a try: deny it unless it can be granted */
	bool		quiet;			/* never signal the backend: it has not taken
								 * the grant, or is past its commit check */
	bool		taken;			/* it has taken the grant */
	bool		gave_up;		/* its wait timed out, with an error */
	bool		patient;		/* it has waited for as long as its patience */
	uint32		holds;			/* counted re-entry, for zk_locks */
	int64		released_us;	/* when a GRANTED slot was released;
								 * boottime.h */
} ZklSlotHolder;

/* What the worker answers, and tells of a hold as it goes on */
typedef struct ZklSlotAnswer
{
	bool		blocked;		/* it had to wait for others: the core has
								 * said so; of a permit only if together */
	bool		behind_cached;	/* the try has timed out, and waits for a
								 * server that may have the lock cached: */
	char		caching_server[ZKL_MAX_SERVER_NAME + 1];	/* UTF-8, may be empty */
	bool		denied;
	bool		solitary;		/* no other session seemed to wait */
	bool		claimed;		/* a ticket: it is a reservation now */
	int64		token;			/* fencing token of the grant */
	uint8		error;			/* ZklError */
	int32		zkrc;
	uint64		dsm_size;
	TimestampTz granted_at;		/* 0: not yet */
	int64		granted_us;		/* the same, and when it became LOST, by
								 * boottime.h; 0: not yet */
	int64		lost_us;
	int			cancelled_by;	/* LOST: the worker's pid if it has cancelled
								 * the holder's statement, else 0 */
	int64		asked_zxid;		/* of the last request to release it; 0: none */
	char		asker[ZKL_MAX_ASKER_TEXT];	/* whose it was; UTF-8, may be
											 * empty */
} ZklSlotAnswer;

#define ZKL_MAX_DEPENDENTS_SLOT	16	/* as the core's ZKL_MAX_DEPENDENTS */

/*
 * Which owners wait for the owner of a WAITING slot in PostgreSQL's own locks:
 * see backend/wait.c
 */
typedef struct ZklSlotDependents
{
	int			n;
	int64		looked_us;		/* when the look began; boottime.h */
	uint64		owners[ZKL_MAX_DEPENDENTS_SLOT];
} ZklSlotDependents;

typedef struct ZklSlot
{
	slock_t		s_mutex;
	uint32		s_state;		/* ZklSlotState */
	uint32		s_serial;		/* grows each time the slot is claimed */
	ZklSlotRequest s_request;
	ZklSlotHolder s_holder;
	ZklSlotAnswer s_answer;
	ZklRecord	s_record;		/* of a grant and the znode, as the core says */

	/* Any backend writes the first while WAITING; the worker takes note. */
	ZklSlotDependents s_dependents;
	bool		s_dependents_due;	/* the worker has yet to see it */

	/*
	 * Unique per backend that ever made a request; a take changes it.  A slot
	 * that is disowned (s_record) belongs to none.
	 */
	uint64		s_owner;

	/*
	 * All but LOCK: where the answer goes, set while CLAIMED. LOCK: the
	 * epilogue, which the backend sets while GRANTED and the worker clears,
	 * and whether it is wanted at the release; see errand_layout.h.
	 */
	dsm_handle	s_dsm;
	bool		s_epilogue;

	bool		s_cacheable;	/* its release may make it CACHED ... */

	/*
	 * ... but not while somebody wants the lock of whom the worker has yet to
	 * hear: the backend that makes a ticket sets it, a recall clears it.
	 */
	bool		s_wanted;

	/*
	 * In ms of boottime.h, 0: no such time.  From s_until on a hold is LOST,
	 * which its backend sees by itself; after its release it is kept until
	 * s_keep_until, in the state RELEASED.  The worker sets both when it
	 * grants, the backend changes them while GRANTED, and the worker changes
	 * s_keep_until with a RENEWAL, and when the server stops; when it is
	 * lost, it is kept only as long as it was promised.
	 */
	int64		s_until;
	int64		s_keep_until;

	/*
	 * In ms of boottime.h, 0: none.  What zk_assert_lock() has told, which is
	 * a promise: until then nobody else gets the lock, by whatever hand its
	 * holder's process ends.  The backend that tells it sets it, before it
	 * does so; the hand of those who were told shortens it.
	 */
	int64		s_promised_until;

	/*
	 * In ms of boottime.h, 0: none.  A reservation that is lost stays in its
	 * slot until its time would have been over, or somebody was told, and so
	 * does a ticket that has ended: the worker sets it, or the backend that
	 * drains or sees first that the ticket has lapsed; the backend that tells
	 * it clears it.
	 */
	int64		s_lost_until;

	/*
	 * A request to release came while the holder was quiet: see
	 * on_release_request.  The worker or zk_drain() sets it; whichever
	 * process sends the signal clears it.
	 */
	bool		s_signal_due;

	/*
	 * The drain that asked the holder to release the lock, or 0; and whether
	 * a drain is why s_until has come.  The backend that drains sets both,
	 * and the holder the second one: see backend/admission.c.
	 */
	uint32		s_drain;
	bool		s_resigned;

	/*
	 * What sessions had of the lock without the worker, and that it has yet
	 * to count: tries that were denied because of a hold, and holds that a
	 * take has followed.  The session that tries or takes adds to it, and the
	 * worker clears it.
	 */
	ZklLockstatsCounts s_uncounted;

	bool		s_withdrawn;	/* a ticket has ended before it was claimed:
								 * zkl_slot_withdraw */

	uint8		s_late;			/* ZklLate, to be logged: the backend sets it,
								 * the worker clears it */
} ZklSlot;

/* How many slots each backend has for what is no lock */
#define ZKL_OWN_SLOTS		2

/*
 * How much of the path is to be shown, for a format's precision: of a permit or
 * the guard, the semaphore's name
 */
static inline int
zkl_slot_shown_length(const ZklSlot *slot)
{
	return (int) zkl_znode_shown_length((ZklDialect) slot->s_request.dialect,
										slot->s_request.guard,
										slot->s_request.path);
}

extern ZklSlot *zkl_slots;		/* ctl_nslots of them */

/*
 * The state, read without the mutex: for the slot's own backend, which acts on
 * a copy, and for callers that only skip free slots.
 */
extern ZklSlotState zkl_slot_peek(int slotno);

/* A consistent copy of a slot. */
extern void zkl_slot_copy(int slotno, ZklSlot *copy);

/* "session", "transaction", "reservation" or "ticket" */
extern const char *zkl_slot_lifetime_name(const ZklSlot *slot);

/* Whether no session has it, but a token, by a copy of the slot: a claimed ticket, too */
static inline bool
zkl_slot_is_reservation(const ZklSlot *slot)
{
	return slot->s_request.lifetime == ZKL_LIFETIME_RESERVATION || slot->s_answer.claimed;
}

/* Whether it has a ticket that waits, or that is granted and was not claimed yet */
extern bool zkl_slot_is_ticket(const ZklSlot *slot);

/*
 * Ends a ticket that waits, or is granted and was not claimed.  "tell": it is not its role
 * who does that, and which is to be told.  False: the slot has no such ticket any more.
 */
extern bool zkl_slot_withdraw(int slotno, int64 ticket, bool tell);

/*
 * Notes that a ticket was not claimed in time, if that is so: whoever looks first does, as
 * the worker hears of it only when its znode is gone.
 */
extern void zkl_slot_lapse(int slotno);

/* Whether it has a reservation whose time is not over, by a copy of the slot */
extern bool zkl_slot_is_reserved(const ZklSlot *slot);

/* Whether somebody relies on its lease: a session that holds it, or a reservation */
extern bool zkl_slot_is_relied_on(int slotno);

/* Whether a reservation, or any lock that is kept, was lost before its time was over */
static inline bool
zkl_slot_is_lost_kept(const ZklSlot *slot)
{
	return slot->s_state == ZKL_SLOT_RELEASED && slot->s_answer.error != ZKL_ERROR_NONE;
}

/* Whether it was a reservation or a ticket, has ended, and nobody was told so yet */
extern bool zkl_slot_is_untold(const ZklSlot *slot);

/* Why a lock was lost, as a full sentence for errdetail */
extern const char *zkl_slot_lost_detail(ZklError error);

/*
 * Adds the hold of a slot, which is over, to the statistics: it was lost, or
 * released.
 */
extern void zkl_slot_tally(const ZklSlot *slot, ZklLockstatsCounts *counts);

/* ---- for the steps, under s_mutex ---- */

/* Whether a hold has lasted for as long as it may */
static inline bool
zkl_slot_is_over(const ZklSlot *slot, int64 now_ms)
{
	return slot->s_until != 0 && now_ms >= slot->s_until;
}

/* Why a hold that is over was lost */
static inline ZklError
zkl_slot_why_over(const ZklSlot *slot)
{
	return slot->s_resigned ? ZKL_ERROR_RESIGNED : ZKL_ERROR_OVERDUE;
}

/* Signals the holder if a release was requested and it was not told of that yet. */
extern void zkl_slot_signal_if_due(ZklSlot *slot);

/*
 * There is a release request: signals the holder now, or once its transaction is no
 * longer behind its commit check.
 */
extern void zkl_slot_signal(ZklSlot *slot);

#endif							/* ZKL_SHARED_SLOT_H */
