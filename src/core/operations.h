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
 * Sends another operation.  Its lock, if any, is pinned until the one that has
 * taken the answer unpins it.  A read counts in the window of reads.
 */
extern ZklAction *zkl_operations_send(ZklManager *m, ZklOpKind kind,
									  ZklLock *lock, ZklRequest *request,
									  ZklSendKind send, const char *path);
extern void zkl_operations_read(ZklManager *m, ZklOpKind kind, ZklLock *lock,
								ZklRequest *request, ZklSendKind send,
								const char *path, bool watch);

/* The operation under way with this tag, or NULL */
extern ZklOp *zkl_operations_find(const ZklManager *m, uint64_t tag);

/* The operation with this tag ends; a copy of it.  False: there is none. */
extern bool zkl_operations_end(ZklManager *m, uint64_t tag, ZklOp *op);

/* None of the operations under way will be answered. */
extern void zkl_operations_forget(ZklManager *m);

#endif							/* ZKL_CORE_OPERATIONS_H */
