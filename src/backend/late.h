/*
 * late.h
 *	  Reporting that a transaction committed, or was prepared, although a lock
 *	  was lost after its commit check.
 */
#ifndef ZKL_BACKEND_LATE_H
#define ZKL_BACKEND_LATE_H

/*
 * After a commit or a PREPARE TRANSACTION, before holds end: looks whether all are still
 * good, and notes in its slot each that is not.  Allocates nothing and cannot
 * fail.
 */
extern void zkl_late_look(bool prepared);

/*
 * Tells the client what was noted, if it was not told yet: where an error may
 * be raised, though none is.
 */
extern void zkl_late_tell(void);

#endif							/* ZKL_BACKEND_LATE_H */
