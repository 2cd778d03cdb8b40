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
 * Sends another operation.  Its lock, if any, is pinned: it stays until its
 * answer was taken and it is unpinned.  A read counts in the window of reads.
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

/* The operation with this tag ends; a copy of it.  False: there is none. */
extern bool zkl_operations_end(ZklManager *m, uint64_t tag, ZklOp *op);

/*
 * None of the operations under way will be answered: the first one from number
 * *next on ends.  False: there is none.
 */
extern bool zkl_operations_abandon(ZklManager *m, uint32_t *next, ZklOp *op);

/* What an operation that has ended was for is done. */
extern void zkl_operations_unpin(ZklLock *lock);

/* A number that is larger than those of all operations so far */
extern uint64_t zkl_operations_next_order(ZklManager *m);

#endif							/* ZKL_CORE_OPERATIONS_H */
