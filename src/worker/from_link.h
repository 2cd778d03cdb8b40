/*
 * from_link.h
 *	  From the link to the core and to operation.c.  Worker only.
 */
#ifndef ZKL_WORKER_FROM_LINK_H
#define ZKL_WORKER_FROM_LINK_H

/* Reads all frames that have arrived, and hands them on. */
extern void zkl_from_link_take(void);

#endif							/* ZKL_WORKER_FROM_LINK_H */
