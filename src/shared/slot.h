/*
 * slot.h
 *	  The slots: where requests of backends and answers of the worker meet.
 *
 * One slot is one request of one backend.  Its life cycle, with the process
 * that makes each step (B the backend, W the worker):
 *
 *	  FREE -B-> CLAIMED -B-> WAITING -W-> GRANTED -B-> RELEASED -W-> FREE
 *	                            |  |          |            ^
 *	                            |  |          W-> LOST -B--+
 *	                            |  W-> DENIED or FAILED -B-+
 *	                            B (cancel) ----------------+
 *
 * Nothing can throw between CLAIMED and WAITING.  A slot returns to FREE only
 * in the worker, once its znode is known to be gone, so that a znode never
 * outlives its slot.
 *
 * Field groups, who writes them, and how they are protected:
 *	  s_state			 whoever makes the step above; s_mutex
 *	  s_kind .. s_requested_at, s_at_*	 backend while CLAIMED; constant until
 *						 FREE, but for s_owner, which the worker changes if it
 *						 keeps the lock after the release (s_claimer stays);
 *						 s_mutex
 *	  s_dsm, s_epilogue	 of a LOCK: see epilogue.h; s_mutex
 *	  s_timed_out .. s_holds	the backend; s_mutex
 *	  s_late			 the backend sets, the worker clears; s_mutex
 *	  s_until, s_keep_until	the worker when it grants, then the backend while
 *						 the slot is GRANTED; s_mutex
 *	  s_blocked .. s_retired, s_znode_*	the worker; s_mutex
 *
 * s_state alone may be read without s_mutex, by the slot's own backend to see
 * whether a wait may be over; it looks again under s_mutex before it acts.
 * Nothing that can throw or block runs while s_mutex is held.  A slot's mutex
 * and the control block's locks are never held together.
 *
 * There are two sorts of slots.  The first ctl_nrequests ("zklock.max_requests")
 * are for requests of kind LOCK, and free ones are on a list: when they run
 * out, nobody gets another lock.  Behind them each backend has
 * ZKL_OWN_SLOTS of its own for the other kinds, found by its number among the
 * processes, which the list knows nothing of.  So nobody can keep others from
 * looking at queues, breaking locks or ending a transaction by taking many
 * locks.  A backend has one such request under way at a time; the second slot
 * is for the next one, while the worker has not yet freed the first.
 */
#ifndef ZKL_SHARED_SLOT_H
#define ZKL_SHARED_SLOT_H

#include "datatype/timestamp.h"
#include "storage/dsm.h"
#include "storage/spin.h"
#include "znode/znode.h"

typedef enum ZklSlotState
{
	ZKL_SLOT_FREE = 0,
	ZKL_SLOT_CLAIMED,
	ZKL_SLOT_WAITING,
	ZKL_SLOT_GRANTED,
	ZKL_SLOT_DENIED,			/* a try: another owner is ahead */
	ZKL_SLOT_FAILED,			/* s_error says why */
	ZKL_SLOT_LOST,				/* was granted; s_error says why it is not */
	ZKL_SLOT_RELEASED
} ZklSlotState;

typedef enum ZklSlotKind
{
	ZKL_KIND_LOCK,
	ZKL_KIND_QUEUE,				/* zk_queue(): s_dsm says where to answer */
	ZKL_KIND_BREAK,				/* zk_break_lock(): s_token is 1 if a znode
								 * was removed, else 0 */
	ZKL_KIND_DUMP,				/* zk_dump(): likewise */
	ZKL_KIND_ERRAND				/* s_dsm says what to do; see errand.h */
} ZklSlotKind;

typedef enum ZklLifetime
{
	ZKL_LIFETIME_SESSION,
	ZKL_LIFETIME_TRANSACTION
} ZklLifetime;

/* Why a request failed or a lock was lost; the backend words the error. */
typedef enum ZklError
{
	ZKL_ERROR_NONE = 0,
	ZKL_ERROR_DEADLOCK,			/* shared -> exclusive with another between */
	ZKL_ERROR_ZOOKEEPER,		/* s_zkrc says what ZooKeeper answered */
	ZKL_ERROR_PARENTS,			/* the lock's directory could not be made */
	ZKL_ERROR_SESSION_EXPIRED,	/* lost: the ZooKeeper session is gone */
	ZKL_ERROR_NODE_DELETED,		/* lost: somebody deleted the znode */
	ZKL_ERROR_BROKEN,			/* lost: an operator broke the lock */
	ZKL_ERROR_UNREADABLE,		/* lost: the znode's ACL shuts us out */
	ZKL_ERROR_OVERDUE,			/* lost: it was held longer than allowed */
	ZKL_ERROR_HALF_DONE,		/* zk_break_lock(): the worker was restarted,
								 * or s_zkrc says what ZooKeeper answered */
	ZKL_ERROR_RESTLESS,			/* zk_break_lock(): the head of the queue kept
								 * changing */
	ZKL_ERROR_TOO_LARGE,		/* QUEUE, DUMP: s_dsm_size says what it takes */
	ZKL_ERROR_SEGMENT,			/* the worker cannot map the backend's segment */
	ZKL_ERROR_LAPSED			/* its lease has ended; not known to be lost */
} ZklError;

/* What a holder found when its transaction had committed or was prepared: late.c */
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
zkl_error_ends_znode(ZklError error)
{
	return error == ZKL_ERROR_OVERDUE || error == ZKL_ERROR_UNREADABLE;
}

#define ZKL_MAX_LEADER_ID	127
#define ZKL_MAX_ASKER		160

typedef struct ZklSlot
{
	slock_t		s_mutex;
	uint32		s_state;		/* ZklSlotState */
	uint32		s_serial;		/* grows each time the slot is claimed */
	uint8		s_kind;			/* ZklSlotKind */
	uint8		s_mode;			/* ZklLockMode */
	uint8		s_lifetime;		/* ZklLifetime */
	uint8		s_dialect;		/* ZklDialect */
	bool		s_try;			/* may be denied once s_timed_out */
	bool		s_together;		/* one of several asked for at once */
	bool		s_guard;		/* of a semaphore, for a moment: see
								 * semaphore.h */
	uint32		s_max;			/* dialect LEASE: see core/permits.h */
	int			s_procno;		/* the owner's PGPROC, for its latch */
	int			s_pid;
	Oid			s_roleid;		/* who asked, for what others may see */
	uint64		s_owner;		/* unique per backend that ever asked */
	uint64		s_claimer;		/* s_owner as it was at first */
	int			s_sibling;		/* a live hold of this owner on this path, or
								 * -1 */
	uint8		s_lost_action;	/* ZklLostLockAction */
	uint8		s_on_revoke;	/* ZklRevokeAction */
	char		s_leader_id[ZKL_MAX_LEADER_ID + 1]; /* UTF-8; LATCH: the
													 * znode's data */
	char		s_path[ZKL_MAX_NAME + 1];	/* UTF-8 */
	char		s_database[64]; /* these three in UTF-8, cut to fit */
	char		s_usename[64];
	char		s_application[64];
	TimestampTz s_requested_at;
	int64		s_at_most;		/* ms from the grant, or 0: see s_until */
	int64		s_at_least;		/* likewise: see s_keep_until */
	dsm_handle	s_dsm;			/* QUEUE, DUMP, ERRAND: where the answer goes;
								 * LOCK: its epilogue, see epilogue.h */
	bool		s_epilogue;		/* which is wanted when it is released */

	bool		s_timed_out;	/* a try's time is over: deny if not at hand */
	bool		s_signal_due;	/* asked for while quiet: see s_on_revoke; the
								 * worker sets, either clears */
	bool		s_quiet;		/* never signal its owner: the grant is not
								 * picked up, or past its commit check */
	bool		s_taken;		/* the grant was picked up */
	uint32		s_holds;		/* counted re-entry, for zk_locks */
	uint8		s_late;			/* ZklLate: to be logged */

	/*
	 * In ms of CLOCK_BOOTTIME, 0: no such time.  From s_until on a hold is
	 * LOST, which its backend sees by itself; after its release it is kept
	 * until s_keep_until, in the state RELEASED.
	 */
	int64		s_until;
	int64		s_keep_until;

	bool		s_blocked;		/* it waits for others; told if s_together */
	bool		s_solitary;		/* nobody seemed to wait for the release */
	int64		s_token;		/* fencing token of the grant */
	uint32		s_generation;	/* session generation of the grant or node */
	uint8		s_error;		/* ZklError */
	int32		s_zkrc;
	uint64		s_dsm_size;
	TimestampTz s_granted_at;	/* 0: not yet */
	int64		s_asked_zxid;	/* of the last demand to give it up; 0: none */
	char		s_asker[ZKL_MAX_ASKER]; /* whose it was; UTF-8, may be empty */
	bool		s_retired;		/* LOST, and without a znode: it is another
								 * hold's, gone, or to be deleted */

	/*
	 * The znode, recorded before its create is sent, so that a restarted
	 * worker can find out whether it was.
	 */
	bool		s_znode_sent;	/* a create with this id may have been sent */
	ZklUuid		s_znode_uuid;
	uint32		s_znode_index;	/* in its batch: part of the token */
	uint8		s_znode_mode;	/* of the znode: wider than s_mode if shared */
	int64		s_znode_seq;	/* -1: not known */
	bool		s_znode_going;	/* to be deleted; another one follows */
} ZklSlot;

/* How many slots each backend has for what is no lock */
#define ZKL_OWN_SLOTS		2

/*
 * How much of s_path is to be shown, for a format's precision: of a lease or
 * the guard, the semaphore's name
 */
static inline int
zkl_slot_shown_length(const ZklSlot *slot)
{
	return (int) zkl_znode_shown_length((ZklDialect) slot->s_dialect,
										slot->s_guard, slot->s_path);
}

extern ZklSlot *zkl_slots;		/* ctl_nslots of them */

/* ---- backends ---- */

/*
 * Takes a free slot for a lock into CLAIMED, with a new serial and all other
 * fields zero, s_sibling -1 and s_znode_seq -1.  Returns its number, or -1 when
 * the table is full.
 */
extern int	zkl_slot_claim(void);

/*
 * The same with a slot of this process's own, for the other kinds.  -1: the
 * worker has yet to free them.
 */
extern int	zkl_slot_claim_own(int procno);

/*
 * CLAIMED -> WAITING; sets the slot dirty, and wakes the worker unless it awaits
 * more demands.  "more": another slot follows at once, and the worker is to
 * look at both together.
 */
extern void zkl_slot_submit(int slotno, bool more);

/*
 * Any state but FREE and CLAIMED -> RELEASED; sets the slot dirty and wakes the
 * worker, at leisure if no other session seemed to wait when the lock was
 * granted.  Returns the state that the slot left, so that a cancel learns
 * whether the grant came first.  Only flags and SetLatch: safe in a transaction
 * callback and on exit.
 */
extern ZklSlotState zkl_slot_release(int slotno);

/* Sets s_timed_out of a WAITING try, and has the worker look at the slot. */
extern void zkl_slot_time_out(int slotno);

/*
 * The state, read without the mutex: for the slot's own backend, which acts on
 * a copy, and for those who only want to skip free slots.
 */
extern ZklSlotState zkl_slot_peek(int slotno);

/* A consistent copy of a slot. */
extern void zkl_slot_copy(int slotno, ZklSlot *copy);

/*
 * Whether a slot is still granted by the given session generation, and its time
 * is not over.  If not,
 * *error says why, as far as the worker does.
 */
extern bool zkl_slot_is_held(int slotno, uint32 generation, ZklError *error);

extern void zkl_slot_set_holds(int slotno, uint32 holds);

/*
 * How many locks are kept now that this process, the claimer of their slots,
 * has released; perhaps fewer than the result if that is "harmless" or less,
 * which saves looking at all slots.
 */
extern int	zkl_slot_count_kept(uint64 claimer, int harmless);

/*
 * Another acquisition of a held lock, with bounds of its own in ms, 0 being
 * none: the later times count.  One that is not bounded stays so.
 */
extern void zkl_slot_rebound(int slotno, int64 at_most, int64 at_least);

/*
 * The time for which a hold may last begins anew, with as many ms from now, or
 * without an end if that is 0.  Only for a slot that is held, as by
 * zkl_slot_is_held; otherwise false, and nothing changes.
 */
extern bool zkl_slot_extend(int slotno, uint32 generation, int64 at_most);

/*
 * Sets or clears s_quiet: see the commit check in commit.c.  If the slot became
 * LOST meanwhile, clearing it has the worker look at the slot: its znode may go.
 */
extern void zkl_slot_set_quiet(int slotno, bool quiet);

/*
 * A transaction has committed or was prepared, and its lock was lost before.
 * Only a flag, which the worker logs: safe in a transaction callback.
 */
extern void zkl_slot_set_late(int slotno, ZklLate late);

/*
 * Names the pinned segment of a hold's epilogue: see epilogue.h.  From then on
 * the worker sees to it that it is unpinned.
 */
extern void zkl_slot_set_epilogue(int slotno, dsm_handle segment);

/* Whether it is wanted.  Only a flag: safe in a transaction callback. */
extern void zkl_slot_want_epilogue(int slotno, bool wanted);

/*
 * A consistent copy of a slot whose wait is over; a grant counts as picked up
 * from then on, so that its loss is acted upon.
 */
extern void zkl_slot_take(int slotno, ZklSlot *copy);

/* ---- worker ---- */

/*
 * WAITING -> GRANTED, DENIED or FAILED and GRANTED -> LOST, filling in what
 * goes with it; the owner is woken, of a lost lock at once, else by
 * zkl_wakeup_noted.  False: the backend was faster and the slot is
 * RELEASED.  LOST acts by s_lost_action: it signals the owner, unless it is
 * quiet.
 */
extern bool zkl_slot_grant(int slotno, int64 token, uint32 generation,
						   bool solitary);
extern bool zkl_slot_deny(int slotno);
extern bool zkl_slot_fail(int slotno, ZklError error, int32 zkrc);
extern bool zkl_slot_lose(int slotno, ZklError error);

/*
 * GRANTED -> LOST if its time is over, as zkl_slot_lose does it.  True: it is
 * LOST for this reason, *just_now or before, or for another of
 * zkl_error_ends_znode, and its backend is past no commit check that would let
 * it commit: the znode may go.
 */
extern bool zkl_slot_overdue(int slotno, bool *just_now);

/* When a GRANTED slot's time is over, in ms; 0: never */
extern int64 zkl_slot_until(int slotno);

/* Its request has to wait for others; its owner is told. */
extern void zkl_slot_block(int slotno);

/*
 * Notes that somebody asks for a GRANTED lock, which stays granted, and acts by
 * s_on_revoke: it signals the owner, unless it is quiet.  False: it is not
 * granted any more.
 */
extern bool zkl_slot_revoke(int slotno, int64 zxid, const char *asker);

/* QUEUE, DUMP: its answer takes that many bytes; fails it with TOO_LARGE. */
extern void zkl_slot_too_large(int slotno, uint64 size);

/*
 * Records the znode of a slot; seq -1: not known yet.  "going": it is to be
 * deleted, and another one follows.
 */
extern void zkl_slot_set_znode(int slotno, const ZklUuid *uuid, uint32 index,
							   ZklLockMode mode, int64 seq, bool going,
							   uint32 generation);

/* The epilogue of a released slot is written, or needs not be. */
extern void zkl_slot_forget_epilogue(int slotno);

/* Takes s_late, so that it is logged once. */
extern ZklLate zkl_slot_take_late(int slotno);

/* Sets s_retired.  Its znode may be another hold's by now. */
extern void zkl_slot_retire(int slotno, bool has_znode);

/* A RELEASED slot is kept, and is not its backend's any more. */
extern void zkl_slot_set_owner(int slotno, uint64 owner);

/* It is kept no longer: its release is all that is left. */
extern void zkl_slot_stop_keeping(int slotno);

/* RELEASED -> FREE. */
extern void zkl_slot_free(int slotno);

/* Wakes all who hold a lock: a lease that had passed is renewed. */
extern void zkl_slot_wake_holders(void);

#endif							/* ZKL_SHARED_SLOT_H */
