/*
 * stuck.c
 *	  When to try refused work again.
 *
 * Owns m->stuck_until.  Each list of refused work belongs to the file that
 * fills it: write.c, reads.c; session.c has a flag.  batch.c starts the retries.  Runs in the worker (and in tests), takes no locks.
 */
#include "core/stuck.h"

bool
zkl_stuck_any(const ZklManager *m)
{
	return !zkl_list_empty(&m->writes.stuck) || !zkl_list_empty(&m->reads.stuck) || m->chain.sweep_refused;
}

void
zkl_stuck_begin(ZklManager *m)
{
	if (!zkl_stuck_any(m))
		m->stuck_until = m->now + ZKL_RETRY_DELAY;
}
