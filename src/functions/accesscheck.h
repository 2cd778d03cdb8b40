/*
 * accesscheck.h
 *	  The check of zk_healthcheck() that is about access control lists.
 */
#ifndef ZKL_FUNCTIONS_ACCESSCHECK_H
#define ZKL_FUNCTIONS_ACCESSCHECK_H

#include "backend/errand.h"
#include "nodes/pg_list.h"
#include "shared/status.h"

typedef struct ZklAccessCheck ZklAccessCheck;

extern ZklAccessCheck *zkl_accesscheck_make(void);

/* This server, or another one of the fleet */
extern void zkl_accesscheck_note(ZklAccessCheck *check, const ZklFleetServer *server,
								 bool is_own);

/*
 * Reads the access control lists of the servers that were noted, and of the lock that
 * was refused last.  Error 08006 if ZooKeeper does not answer.
 */
extern void zkl_accesscheck_read(ZklAccessCheck *check, const char *refused);

/*
 * Whether all is well, and the detail that says so or what is wrong and what to do.
 * "refusal": why the fleet may not be read, or NULL.
 */
extern const char *zkl_accesscheck_judge(const ZklAccessCheck *check, uint32 access,
										 const char *refusal, bool *ok);

#endif							/* ZKL_FUNCTIONS_ACCESSCHECK_H */
