/*
 * segment.h
 *	  The DSM segments of backends, as the worker uses them.  Worker only.
 */
#ifndef ZKL_WORKER_SEGMENT_H
#define ZKL_WORKER_SEGMENT_H

#include "storage/dsm.h"

/*
 * Attaches a segment, for the caller to detach.  NULL: it is gone with its backend,
 * or cannot be attached, which is logged.
 */
extern dsm_segment *zkl_segment_attach(dsm_handle handle);

/*
 * Attaches a segment, calls fn, which must not throw, and detaches the segment.
 * False: it cannot be attached.
 */
extern bool zkl_segment_use(dsm_handle handle,
							void (*fn) (void *address, Size size, void *arg),
							void *arg);

/*
 * Answers a slot: "write" puts the answer into the backend's segment, or as much
 * of it as fits, and returns the bytes that it takes.
 */
extern void zkl_segment_answer(int slotno, dsm_handle handle,
							   Size (*write) (void *address, Size size,
											  void *arg),
							   void *arg);

/*
 * Unpins a segment.  A missing segment was already unpinned by an earlier
 * worker.
 */
extern void zkl_segment_unpin(dsm_handle handle);

#endif							/* ZKL_WORKER_SEGMENT_H */
