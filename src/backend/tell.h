/*
 * tell.h
 *	  What the client is told of its holds between the answers to its calls: losses,
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

#endif							/* ZKL_BACKEND_TELL_H */
