/*
 * from_link.h
 *	  What the session process says.  Worker only.
 */
#ifndef ZKL_WORKER_FROM_LINK_H
#define ZKL_WORKER_FROM_LINK_H

#include "core/manager.h"

/* Reads what is there, and hands it on. */
extern void zkl_from_link_take(ZklManager *manager);

#endif							/* ZKL_WORKER_FROM_LINK_H */
