/*
 * operations.h
 *	  The operations that are under way.
 */
#ifndef ZKL_CORE_OPERATIONS_H
#define ZKL_CORE_OPERATIONS_H

#include "core/state.h"

/* For a manager with nothing but its config, and at its end. */
extern void zkl_operations_init(ZklManager *m);
extern void zkl_operations_free(ZklManager *m);

/*
 * Sends another operation.  Its lock, if any, is pinned: the lock stays until
 * the caller has taken the answer and unpins it.  A read counts in the window
 * of reads.
 */
extern ZklAction *zkl_operations_send(ZklManager *m, ZklOpKind kind,
									  ZklLock *lock, ZklRequest *request,
									  ZklSendKind send, const char *path);
extern void zkl_operations_read(ZklManager *m, ZklOpKind kind, ZklLock *lock,
								ZklRequest *request, ZklSendKind send,
								const char *path, bool watch);

/* The operation under way with this tag, or NULL */
extern ZklOp *zkl_operations_find(const ZklManager *m, uint64_t tag);

/* Whether the window has room for more reads */
extern bool zkl_operations_may_read(const ZklManager *m);

/* Ends the operation with this tag, and copies it. False: there is none. */
extern bool zkl_operations_end(ZklManager *m, uint64_t tag, ZklOp *op);

/*
 * No operation under way will be answered: ends the first one from number
 * *next on.  False: there is none.
 */
extern bool zkl_operations_abandon(ZklManager *m, uint32_t *next, ZklOp *op);

/* The work that an ended operation was for is done. */
extern void zkl_operations_unpin(ZklLock *lock);

/* A number that is larger than those of all operations so far */
extern uint64_t zkl_operations_next_order(ZklManager *m);

#endif							/* ZKL_CORE_OPERATIONS_H */
