/*
 * loss.h
 *	  A hold is lost, with all that share its node.
 */
#ifndef ZKL_CORE_LOSS_H
#define ZKL_CORE_LOSS_H

#include "core/state.h"

/* A hold is lost, with all that share its node; the node is gone. */
extern void zkl_loss_begin(ZklManager *m, ZklRequest *r, ZklFailure failure);

/*
 * An operator breaks the lock, or its node cannot be read: its holder loses
 * it at once, but the node stays in the queue until the holder has released
 * it.
 */
extern void zkl_loss_break(ZklManager *m, ZklRequest *r,
						   ZklFailure failure);

#endif							/* ZKL_CORE_LOSS_H */
