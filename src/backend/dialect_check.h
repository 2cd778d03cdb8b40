/*
 * dialect_check.h
 *	  Refuses requests for locks whose dialect differs on this server from that
 *	  of the root.
 */
#ifndef ZKL_BACKEND_DIALECT_CHECK_H
#define ZKL_BACKEND_DIALECT_CHECK_H

#include "backend/target.h"

/*
 * Error 55000 if a new request for that lock is to be refused; 42501 or another
 * one if ZooKeeper does not show the settings of the root.  sibling: a slot of
 * this backend that may hold the lock already, or -1.
 */
extern void zkl_dialect_check_request(const ZklTarget *lock, bool guard, int sibling);

/*
 * The same for a request of this backend that is under way; one whose grant was
 * taken is good.  "name" is the lock's, for messages.  False: that is not known now,
 * so its grant must not be taken yet.
 */
extern bool zkl_dialect_check_slot(int slotno, const char *name);

/* Raises an error that ZooKeeper's answer about the settings of the root calls for. */
extern void zkl_dialect_check_unreadable(int32 rc);

#endif							/* ZKL_BACKEND_DIALECT_CHECK_H */
