/*
 * circles.h
 *	  Which of the waits that a search is for are on a circle.
 */
#ifndef ZKL_CORE_CIRCLES_H
#define ZKL_CORE_CIRCLES_H

#include "core/state.h"

/* All that the search wanted is read: what follows for the waits */
extern void zkl_circles_judge(ZklManager *m);

#endif							/* ZKL_CORE_CIRCLES_H */
