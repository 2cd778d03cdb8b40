/*
 * quota.h
 *	  How many requests for locks a session may have.
 */
#ifndef ZKL_BACKEND_QUOTA_H
#define ZKL_BACKEND_QUOTA_H

/*
 * Error 53400 if one call needs more requests at a time than a session could
 * ever have, whatever other sessions do.
 */
extern void zkl_quota_check_number(int64 wanted);

/* Error 53400 if one call needs more than this server could ever have. */
extern void zkl_quota_check_total(int n);

/*
 * Error 53400 if this session, which has slots for "held" locks, may not have
 * "wanted" more.  Locks that are kept after their release count, too.
 */
extern void zkl_quota_check_room(int held, int wanted);

#endif							/* ZKL_BACKEND_QUOTA_H */
