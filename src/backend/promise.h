/*
 * promise.h
 *	  Times that are told: until then nobody else gets the lock.  Backends only.
 */
#ifndef ZKL_BACKEND_PROMISE_H
#define ZKL_BACKEND_PROMISE_H

/*
 * Writes down that somebody is about to be told that nobody else gets the lock before
 * *until, in ms of boottime.h; *until is less if the hold or the reservation ends
 * before.  False, and nothing is promised: it is over, lost, or another one's.
 */
extern bool zkl_promise_make(int slotno, uint32 generation, int64 token, int64 *until);

/* Somebody is about to be told that a reservation is lost: its slot may go. */
extern void zkl_promise_tell_loss(int slotno, int64 token);

/* A transaction aborts; the process ends, with this code.  Both are cheap. */
extern void zkl_promise_note_abort(void);
extern void zkl_promise_note_exit(int code);

/* Whether a release of this slot now is the client's own doing */
extern bool zkl_promise_ends_by_holder(int slotno);

#endif							/* ZKL_BACKEND_PROMISE_H */
