/*
 * checkrow.h
 *	  A row of zk_healthcheck().
 */
#ifndef ZKL_FUNCTIONS_CHECKROW_H
#define ZKL_FUNCTIONS_CHECKROW_H

#include "fmgr.h"
#include "nodes/pg_list.h"

/* "known": whether it can be told now; else "ok" does not count. */
extern void zkl_checkrow_put(FunctionCallInfo fcinfo, const char *check, bool known,
							 bool ok, const char *detail);

/* Some of these strings, each in quotes, and how many more there are; palloc'd */
extern char *zkl_checkrow_names(List *names);

#endif							/* ZKL_FUNCTIONS_CHECKROW_H */
