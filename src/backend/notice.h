/*
 * notice.h
 *	  Telling the client that the release of a lock of its was requested.
 */
#ifndef ZKL_BACKEND_NOTICE_H
#define ZKL_BACKEND_NOTICE_H

/*
 * A NOTICE for each hold whose release was requested since the last call, unless
 * "zklock.on_release_request" was "ignore" when it was acquired.  Cheap when there is
 * none.
 */
extern void zkl_notice_tell(void);

#endif							/* ZKL_BACKEND_NOTICE_H */
