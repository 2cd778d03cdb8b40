/*
 * errand_segment.h
 *	  What stands in the segment of an errand: read and answered.  Worker only.
 */
#ifndef ZKL_WORKER_ERRAND_SEGMENT_H
#define ZKL_WORKER_ERRAND_SEGMENT_H

#include "core/manager.h"
#include "shared/errand.h"
#include "wire/wire.h"

/*
 * Copies the backend's part of an errand.  Returns its path, in
 * TopMemoryContext, or NULL if the segment is gone or cannot be attached.
 */
extern char *zkl_errand_segment_take(dsm_handle handle, ZklErrand *what);

/* Writes the answer; stat may be NULL. */
extern void zkl_errand_segment_put(dsm_handle handle, const ZklReply *reply,
								   const ZklWireStat *stat, uint64 fingerprint);

/* Of the children that a listing shows, in whatever order */
extern uint64 zkl_errand_segment_fingerprint(const ZklReply *reply);

#endif							/* ZKL_WORKER_ERRAND_SEGMENT_H */
