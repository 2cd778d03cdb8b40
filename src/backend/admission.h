/*
 * admission.h
 *	  Whether this server takes a request now: the script of the extension, the gate,
 *	  drains, and the dialects of the root.
 */
#ifndef ZKL_BACKEND_ADMISSION_H
#define ZKL_BACKEND_ADMISSION_H

#include "backend/target.h"
#include "shared/slot.h"

typedef enum ZklScriptAge
{
	ZKL_SCRIPT_NONE,			/* the database has no extension */
	ZKL_SCRIPT_TOO_OLD,
	ZKL_SCRIPT_OLDER,			/* served */
	ZKL_SCRIPT_OWN,
	ZKL_SCRIPT_NEWER
} ZklScriptAge;

/* Its version (palloc'd; NULL if there is none), and what that means */
extern char *zkl_admission_script_version(ZklScriptAge *age);

/* After DROP EXTENSION: a NOTICE if sessions still hold locks */
extern void zkl_admission_note_drop(void);

/* An error 55000 if the library does not serve the script */
extern void zkl_admission_check_script(void);

/*
 * Whether this server is being drained and this session holds nothing, and the
 * error 55000 if so.  A session that waits in a barrier does not hold that.
 */
extern bool zkl_admission_is_draining(void);
extern void zkl_admission_check_drain(void);

/*
 * At the end of a transaction: if this server is being drained, gives up the
 * leaderships of this session.  Takes spinlocks only, and cannot fail.
 */
extern void zkl_admission_drain_resign(void);

/*
 * For the session that drains: asks all holders to release what they hold, wakes
 * all waiters, so that they find the drain, and has leaders resign that are in no
 * transaction.  Returns how many requests are left.  Stops when that drain ends.
 */
extern int	zkl_admission_drain_ask_all(uint32 drain);

/* Whether a request keeps the server from being drained */
extern bool zkl_admission_drain_is_left(const ZklSlot *slot);

/*
 * The error with which this server refuses a new request for that lock now, if it does.
 * sibling: a slot of this backend that may hold the lock already, or -1.
 */
extern void zkl_admission_check(const ZklTarget *lock, bool guard, int sibling);

/*
 * Error 55000 if this server takes no new requests for locks; one that only asks
 * ZooKeeper is refused only if there is no session any more.
 */
extern void zkl_admission_check_gate(bool is_new_lock);

/*
 * Error 55000 if this server refuses the lock because it has another dialect than
 * the root, 42501 or another one if ZooKeeper does not show the settings of the root:
 * for a request of this backend that is under way; one whose grant was
 * taken is good.  "name" is the lock's, for messages.  False: that is not known now,
 * so its grant must not be taken yet.
 */
extern bool zkl_admission_check_slot(int slotno, const char *name);

/* Raises an error that ZooKeeper's answer about the settings of the root calls for. */
extern void zkl_admission_raise_unreadable(int32 rc);

#endif							/* ZKL_BACKEND_ADMISSION_H */
