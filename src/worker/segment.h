/*
 * segment.h
 *	  The DSM segments of backends, as the worker uses them.  Worker only.
 */
#ifndef ZKL_WORKER_SEGMENT_H
#define ZKL_WORKER_SEGMENT_H

#include "storage/dsm.h"

/*
 * Has fn work on a segment, which is attached for that long.  False: it is
 * gone, with its backend, or cannot be attached, which is logged; fn was not
 * called.  fn must not throw.
 */
extern bool zkl_segment_use(dsm_handle handle,
							void (*fn) (void *address, Size size, void *arg),
							void *arg);

/* Gives a pinned segment back.  One that is gone was given back before. */
extern void zkl_segment_unpin(dsm_handle handle);

#endif							/* ZKL_WORKER_SEGMENT_H */
