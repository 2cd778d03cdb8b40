/*
 * snapshot.h
 *	  A procedure that waits without a snapshot.
 */
#ifndef ZKL_BACKEND_SNAPSHOT_H
#define ZKL_BACKEND_SNAPSHOT_H

#include "fmgr.h"

/*
 * Gives up what holds VACUUM back: the snapshot of the portal that runs this call.
 * NULL: it is given up, and the caller looks at no row until
 * zkl_snapshot_regain().  Else nothing has changed, and a sentence for an errdetail
 * says what keeps the snapshot.
 */
extern const char *zkl_snapshot_give_up(FunctionCallInfo fcinfo);

/* Behind the wait, whether there was anything to give up or not. */
extern void zkl_snapshot_regain(void);

#endif							/* ZKL_BACKEND_SNAPSHOT_H */
