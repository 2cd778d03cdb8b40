/*
 * control.h
 *	  The shared memory: its layout, which slots and processes there are, and
 *	  which slots have changed.
 */
#ifndef ZKL_SHARED_CONTROL_H
#define ZKL_SHARED_CONTROL_H

#include "port/atomics.h"
#include "shared/fleet.h"
#include "shared/status.h"
#include "storage/shmem.h"
#include "storage/spin.h"

/* ---- dirty: which slots changed since the worker looked at them ---- */

/* How soon the worker has to look at a slot that was set dirty */
typedef enum ZklWake
{
	ZKL_WAKE_NOW,
	ZKL_WAKE_FOR_REQUEST,		/* for a new request: the worker sleeps on
								 * while it awaits more of them */
	ZKL_WAKE_AT_LEISURE,		/* for a release that no other session waits
								 * for: the worker sleeps on while it awaits
								 * requests, and this one does not count */
	ZKL_WAKE_LATER				/* the caller sets another slot dirty next, or
								 * there is time until the worker wakes */
} ZklWake;

/* ---- postmaster; processes that attach ---- */

/* ---- backends and the worker ---- */

/* Sets the dirty bit of a slot, and wakes the worker if necessary. */
extern void zkl_dirty_set(int slotno, ZklWake wake);

/* Whether the worker has yet to look at a slot that was set dirty. */
extern bool zkl_dirty_is_set(int slotno);

/* ---- worker ---- */

/*
 * The worker is about to sleep for a moment, and need not be woken before so
 * many requests have come.  0: it looks at everything from now on.
 */
extern void zkl_dirty_await(uint32 requests);

/*
 * Clears the dirty bits.  Puts the numbers of the slots that had one, in
 * ascending order, into an array with room for all slots, and returns how many
 * there are.
 */
extern int	zkl_dirty_take(int *slots);

/* ---- control ---- */

/* The control block: what is in shared memory once, beside the slots. */

/* No worker: its latch cannot be set */
#define ZKL_PROCNO_NONE		(-1)

typedef struct ZklControl
{
	ZklChanges	ctl_changes;	/* of ctl_status, and of the next four */
	ZklStatus	ctl_status;
	ZklRoot		ctl_root;		/* as it was last read */
	bool		ctl_root_known; /* it was */
	int32		ctl_root_rc;	/* if ctl_root_state is UNREADABLE */
	ZklPeerCount ctl_peer_counts[ZKL_MAX_PEER_COUNTS];

	/*
	 * {session generation, deadline}: the generation in the upper 24 bits,
	 * the deadline in ms of boottime.h in the lower 40.  The worker writes,
	 * all read.
	 */
	pg_atomic_uint64 ctl_lease;
	uint32		ctl_starts_from;	/* in the ids of znodes the starts of
									 * workers are counted from it */
	pg_atomic_uint64 ctl_next_owner;	/* unique numbers for backends */
	pg_atomic_uint64 ctl_next_ticket;	/* their numbers; the upper 31 bits
										 * tell this shared memory from others */
	pg_atomic_uint64 ctl_losses;	/* how often zkl_worker_slot_lose found a
									 * holder, or a backend saw a loss by
									 * itself */
	pg_atomic_uint64 ctl_release_requests;	/* likewise */

	pg_atomic_uint64 ctl_cache_takes;	/* how often a cached lock was taken */

	/*
	 * From when on, in ms of boottime.h, the next one who adds to a slot's
	 * s_uncounted wakes the worker; all others only set the slot dirty.
	 */
	pg_atomic_uint64 ctl_count_due;

	/*
	 * The greatest transaction id of ZooKeeper's that the worker has seen. It
	 * alone writes, but zk_accept_lower_tokens() sets 0.
	 */
	pg_atomic_uint64 ctl_zxid_seen;

	/*
	 * How many requests the worker awaits before it needs to be woken; it
	 * sets this while it sleeps for a moment only, and 0 when it wakes or
	 * ends. Each backend that submits one counts down, in a race also below
	 * 0.
	 */
	pg_atomic_uint32 ctl_awaited;
	pg_atomic_uint32 ctl_gate;	/* ZklGate; the worker writes, all read */
	pg_atomic_uint32 ctl_root_state;	/* ZklRootState, likewise */

	pg_atomic_uint32 ctl_drain; /* see gate.c */
	pg_atomic_uint32 ctl_breaks;	/* calls of zk_break_lock under way, which
									 * need the session; backends count */

	slock_t		ctl_free_mutex; /* protects the list of free slots */
	int			ctl_free_head;	/* -1: none; linked in control */
	int			ctl_nfree;		/* how many these are */
	int			ctl_nslots;		/* all of them */
	int			ctl_nrequests;	/* the first ones, for locks */

	/*
	 * A copy of ctl_status.worker_procno, kept by zkl_status_end, so that the
	 * worker can be woken on exit paths without a copy.  A stale one wakes
	 * somebody else for nothing.
	 */
	pg_atomic_uint32 ctl_worker_procno;

	/*
	 * Behind this struct follow the bits of dirty, the slots, the table of
	 * lockstats.c, the links of the list of free slots, deadlocks.c's, and
	 * the table of slots by name.
	 */
} ZklControl;

extern ZklControl *zkl_control; /* NULL: not preloaded */

/* Asks for shared memory, and sets the hooks that initialise it. */
extern void zkl_control_request(void);

/*
 * How many slots for locks are kept for superusers, as PostgreSQL keeps some
 * connections ("superuser_reserved_connections")
 */
#define ZKL_RESERVED_SLOTS	(zkl_control->ctl_nrequests / 8)

/* The list of free slots; -1: no more than "spare" are free. */
extern int	zkl_control_pop_free(int spare);
extern void zkl_control_push_free(int slotno);
extern int	zkl_control_count_free(void);

/*
 * Which slot to look at for a lock, by its name and dialect: a hint.  A session that
 * has got a lock exclusively notes its slot.  Nothing clears a note, and another lock
 * may take its place.  So a reader believes the slot only, under its mutex, and may
 * find nothing although there is a slot.  -1: none is noted.
 */
extern void zkl_control_note_slot(const char *path, ZklDialect dialect,
								  int slotno);
extern int	zkl_control_find_slot(const char *path, ZklDialect dialect);

/* Sets the latch of the worker, or of a process; ZKL_PROCNO_NONE: of none. */
extern void zkl_control_wake_worker(void);
extern void zkl_control_wake(int procno);

/*
 * Notes a process, and wakes all that were noted.  The worker first sends its
 * pending operations, because a process that is woken may take the processor
 * away from it.
 */
extern void zkl_control_wake_later(int procno);
extern void zkl_control_wake_noted(void);

#endif							/* ZKL_SHARED_CONTROL_H */
