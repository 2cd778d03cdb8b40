/*
 * cancel.h
 *	  The error with which a statement ends because a lock was lost.
 */
#ifndef ZKL_BACKEND_CANCEL_H
#define ZKL_BACKEND_CANCEL_H

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

#endif							/* ZKL_BACKEND_CANCEL_H */
