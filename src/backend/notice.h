/*
 * notice.h
 *	  Telling the client which of its locks somebody asks for.
 */
#ifndef ZKL_BACKEND_NOTICE_H
#define ZKL_BACKEND_NOTICE_H

/*
 * A NOTICE for each hold that somebody has asked to give up since the last
 * call, unless "zklock.on_revoke" was "ignore" when it was acquired.  Cheap
 * when there is none.
 */
extern void zkl_notice_tell(void);

#endif							/* ZKL_BACKEND_NOTICE_H */
