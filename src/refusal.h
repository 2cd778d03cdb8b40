/*
 * refusal.h
 *	  The errors by which a request fails, in PostgreSQL's words.
 */
#ifndef ZKL_REFUSAL_H
#define ZKL_REFUSAL_H

#include "shmem.h"

/* Raises what the worker answered by ZKL_SLOT_FAILED. */
extern void zkl_raise_failed(const char *name, ZklError error,
							 int32 zkrc) pg_attribute_noreturn();

/* Raises error 08006: nobody answered in time. */
extern void zkl_raise_unreachable(void) pg_attribute_noreturn();

/* Raises error 40001: the lock that was held is lost. */
extern void zkl_raise_lost(const char *name, ZklLifetime lifetime,
						   ZklError error) pg_attribute_noreturn();

/* Why a lock was lost, as a full sentence for errdetail */
extern const char *zkl_lost_detail(ZklError error);

/* The name of a state as zk_status shows it */
extern const char *zkl_worker_state_name(uint32 state);

/* Whether the current role may see what settings and errors tell of hosts */
extern bool zkl_may_see_hosts(void);

#endif							/* ZKL_REFUSAL_H */
