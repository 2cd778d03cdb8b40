/*
 * tell.h
 *	  What the client is told of its holds: losses, as an error or between calls,
 *	  and requests to release a lock.
 */
#ifndef ZKL_BACKEND_TELL_H
#define ZKL_BACKEND_TELL_H

/*
 * After a commit or a PREPARE TRANSACTION, before holds end: looks whether all are still
 * good, and notes in its slot each that is not.  Allocates nothing and cannot
 * fail.
 */
extern void zkl_tell_note_late(bool prepared);

/*
 * Tells the client what was noted, if it was not told yet: where an error may
 * be raised, though none is.
 */
extern void zkl_tell_late(void);

/* A WARNING for each loss that the client was not told of yet */
extern void zkl_tell_lost(void);

/*
 * A NOTICE for each hold whose release was requested since the last call, unless
 * "zklock.on_release_request" was "ignore" when it was acquired.  Cheap when there is
 * none.
 */
extern void zkl_tell_release_requests(void);

/* ---- cancel: the error with which a statement ends because a lock was lost ---- */

/* A statement that runs, perhaps within another one; on the stack */
typedef struct ZklCancelScope
{
	int			depth;			/* 0: no other one runs around it */
	ErrorContextCallback context;
} ZklCancelScope;

/* From the first acquisition of a session on, it can tell whose a cancel is. */
extern void zkl_cancel_watch(void);

/* A statement begins, and ends without an error. */
extern void zkl_cancel_enter(ZklCancelScope *scope);
extern void zkl_cancel_leave(ZklCancelScope *scope);

/*
 * In PG_CATCH: an error leaves the statement.  If no other one runs around it,
 * and the error is a cancel because of a lost lock, it becomes error 40001.
 */
extern void zkl_cancel_fail(ZklCancelScope *scope);

/*
 * No statement runs any more, or a transaction is over: what comes next may be
 * parsing, which can wait for locks as well.
 */
extern void zkl_cancel_stand_by(void);

#endif							/* ZKL_BACKEND_TELL_H */
