/*
 * claim.h
 *	  A slot for a new request: which one, and who asks.
 */
#ifndef ZKL_CLAIM_H
#define ZKL_CLAIM_H

#include "shmem.h"
#include "target.h"

/*
 * Claims a slot and fills in what all kinds of requests have.  Error 53400 if
 * there is none.
 */
extern int	zkl_claim_slot(const ZklTarget *target, ZklSlotKind kind,
						   uint64 owner);

#endif							/* ZKL_CLAIM_H */
