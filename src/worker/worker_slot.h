/*
 * worker_slot.h
 *	  The steps that the worker makes with slots; shared/slot.h has the rest.
 */
#ifndef ZKL_WORKER_WORKER_SLOT_H
#define ZKL_WORKER_WORKER_SLOT_H

#include "shared/slot.h"

/*
 * WAITING -> GRANTED, DENIED or FAILED and GRANTED -> LOST, filling in what
 * goes with it; a CACHED slot has no holder to tell, so it becomes RELEASED, and
 * dirty, instead of LOST; the owner is woken, of a lost lock at once, else by
 * zkl_control_wake_noted.  False: the backend was faster and the slot is
 * RELEASED.  LOST acts by s_request.lost_action: it signals the owner, unless it is
 * quiet.  If the lock is kept, the slot stays RELEASED, is kept only as long as it was
 * promised, and becomes dirty; that is true, too.
 */
extern bool zkl_worker_slot_grant(int slotno, int64 token, bool solitary);
extern bool zkl_worker_slot_deny(int slotno);
extern bool zkl_worker_slot_fail(int slotno, ZklError error, int32 zkrc);
extern bool zkl_worker_slot_lose(int slotno, ZklError error);

/*
 * A ticket's grant makes it RELEASED, kept and dirty; so does its failure, which its role
 * is still to be told.
 */

/* A granted ticket becomes a reservation until then, in ms.  False: it is none any more. */
extern bool zkl_worker_slot_claim(int slotno, int64 ticket, int64 until);

/*
 * A question will be answered with that token: from here on, so that it is known if its
 * session does not wait for that.
 */
extern void zkl_worker_slot_note_claimed(int slotno, int64 token);

/*
 * Whoever claimed it never learnt of it: it is to be claimed once more.  The result is
 * until when, in ms; 0: it is no reservation any more, or stays one, as somebody was
 * told a time with its token, which zk_tickets shows.
 */
extern int64 zkl_worker_slot_unclaim(int slotno, int64 token);

/*
 * The core has done with a slot, and it has no znode any more: whether it stays for its
 * role to be told; *lapsed: of a ticket that nobody claimed in time.
 */
extern bool zkl_worker_slot_leave(int slotno, bool *lapsed);

/* Somebody waits for a hold's end: its release wakes the worker at once. */
extern void zkl_worker_slot_set_asked(int slotno);

/*
 * The offer: the next release of a slot that is GRANTED, or that is about to be, may
 * make it CACHED.
 */
extern void zkl_worker_slot_offer(int slotno);

/*
 * The recall: the slot cannot become CACHED any more, and CACHED -> RELEASED.  It
 * is copied as it was before that step: its state tells whether it has a holder,
 * its owner and token whose it was last.  If "idle_since" is not 0, nothing is
 * done, and the result is false, while it has a holder or was released later than
 * that, in us of boottime.h.
 */
extern bool zkl_worker_slot_recall(int slotno, int64 idle_since, ZklSlot *before);

/*
 * GRANTED -> LOST if its time is over, as zkl_worker_slot_lose does it.  True: it
 * is LOST for this reason, *just_now or before, or for another of
 * zkl_slot_error_ends_znode, and its backend is past no commit check that would let it
 * commit: the znode may go.
 */
extern bool zkl_worker_slot_overdue(int slotno, bool *just_now);

/*
 * When a GRANTED slot's time is over, or the znode of a LOST one may go, in ms; 0: never,
 * or at once
 */
extern int64 zkl_worker_slot_until(int slotno);

/* Its request has to wait for others; its owner is told if it is "together". */
extern void zkl_worker_slot_block(int slotno);

/*
 * A try that timed out waits for a server that may have the lock cached; NULL: no
 * longer.
 */
extern void zkl_worker_slot_set_behind_cached(int slotno, const char *server);

/*
 * Notes that somebody asks for a GRANTED lock, which stays granted, and acts by
 * s_request.on_release_request: it signals the owner, unless it is quiet.  False: it is not
 * granted any more.
 */
extern bool zkl_worker_slot_request_release(int slotno, int64 zxid,
											const char *asker);

/* zk_dump(): its answer takes that many bytes; fails it with TOO_LARGE. */
extern void zkl_worker_slot_too_large(int slotno, uint64 size);

/*
 * After another worker: no session takes its lock without asking, and one that waits has
 * no znode.
 */
extern void zkl_worker_slot_take_over(int slotno);

/* Sets s_record. */
extern void zkl_worker_slot_record(int slotno, const ZklRecord *record);

/*
 * A reservation is to end then, in ms, 0: now; by another one's hand not before the time
 * that was promised.  The result is when; it is never kept longer from here on, until
 * zkl_worker_slot_keep says so.
 */
extern int64 zkl_worker_slot_renew(int slotno, int64 until, bool by_other);

/* A RELEASED slot is kept until then, in ms; 0: no longer. */
extern void zkl_worker_slot_keep(int slotno, int64 until);

/* The epilogue of a released slot is written, or needs not be. */
extern void zkl_worker_slot_forget_epilogue(int slotno);

/* Takes s_late, so that it is logged once. */
extern ZklLate zkl_worker_slot_take_late(int slotno);

/* Takes s_uncounted, so that it is counted once. */
extern ZklLockstatsCounts zkl_worker_slot_take_uncounted(int slotno);

/*
 * Copies s_dependents and clears s_dependents_due, so that no look that comes
 * meanwhile is taken for one that the worker has seen.
 */
extern ZklSlotDependents zkl_worker_slot_take_dependents(int slotno);

/* RELEASED -> FREE. */
extern void zkl_worker_slot_free(int slotno);

/* Wakes all who hold a lock: a lease that had passed is renewed. */
extern void zkl_worker_slot_wake_holders(void);

/* Wakes all backends that wait for an answer: the gate is closed. */
extern void zkl_worker_slot_wake_waiters(void);

#endif							/* ZKL_WORKER_WORKER_SLOT_H */
