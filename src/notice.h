/*
 * notice.h
 *	  Telling the client which of its locks somebody asks for.
 */
#ifndef ZKL_NOTICE_H
#define ZKL_NOTICE_H

/*
 * A NOTICE for each hold that somebody has asked to give up since the last
 * call, unless "zklock.on_revoke" was "ignore" when it was acquired.  Cheap
 * when there is none.  With "aborted" it looks nothing up in a catalog and
 * converts nothing, as in a transaction that is being aborted.
 */
extern void zkl_notice_tell(bool aborted);

#endif							/* ZKL_NOTICE_H */
