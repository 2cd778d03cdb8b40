/*
 * end.h
 *	  How a request ends: its backend has finished with it, or its time is over.
 */
#ifndef ZKL_CORE_END_H
#define ZKL_CORE_END_H

#include "core/state.h"

/* The steps of RELEASE and OVERDUE */
extern void zkl_end_release(ZklManager *m, uint32_t request,
							const ZklEnd *end);
extern void zkl_end_overdue(ZklManager *m, uint32_t request);

/* Releases the kept holds whose time is over. */
extern void zkl_end_due(ZklManager *m);

#endif							/* ZKL_CORE_END_H */
