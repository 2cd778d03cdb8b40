/*
 * errand_segment.h
 *	  Reads an errand from its segment, and writes the answers there.  Worker
 *	  only.
 */
#ifndef ZKL_WORKER_ERRAND_SEGMENT_H
#define ZKL_WORKER_ERRAND_SEGMENT_H

#include "core/manager.h"
#include "shared/errand_layout.h"
#include "wire/wire.h"

/*
 * Copies the backend's part of an errand.  Returns its paths, in
 * TopMemoryContext, or NULL if the segment is gone or cannot be attached.
 */
extern char *zkl_errand_segment_take(dsm_handle handle, ZklErrand *what);

/* Writes the answer about one of the paths of "what"; stat may be NULL. */
extern void zkl_errand_segment_put(ZklErrand *errand, const ZklErrand *what,
								   uint32 number, const ZklReply *reply,
								   const ZklWireStat *stat, uint64 fingerprint);

/* A fingerprint of the children in a listing, in whatever order */
extern uint64 zkl_errand_segment_fingerprint(const ZklReply *reply);

#endif							/* ZKL_WORKER_ERRAND_SEGMENT_H */
