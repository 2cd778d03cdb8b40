/*
 * carry_out.h
 *	  From the core to the slots and the link.  Worker only.
 */
#ifndef ZKL_WORKER_CARRY_OUT_H
#define ZKL_WORKER_CARRY_OUT_H

#include "core/manager.h"

extern void zkl_carry_out_begin(void);

/*
 * For a worker that follows another one: all holds of that one's session are lost, and
 * what waits in slots is to be taken anew.
 */
extern void zkl_carry_out_take_over(void);

/* Carries out what the core decided, and publishes the lease before it. */
extern void zkl_carry_out_actions(void);

/*
 * On the link, the upper bits of a tag say what kind of operation it was, so
 * that events.c can read the answer without knowing the operation.
 */
#define ZKL_TAG_BITS	56
#define ZKL_TAG_MASK	((UINT64CONST(1) << ZKL_TAG_BITS) - 1)

static inline uint64
zkl_carry_out_tag(ZklSendKind send, uint64 tag)
{
	return tag | (uint64) send << ZKL_TAG_BITS;
}

#endif							/* ZKL_WORKER_CARRY_OUT_H */
