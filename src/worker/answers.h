/*
 * answers.h
 *	  Questions that the core answers: zk_dump(), and what is ahead of a waiting
 *	  request.  Worker only.
 */
#ifndef ZKL_WORKER_ANSWERS_H
#define ZKL_WORKER_ANSWERS_H

#include "worker/operation.h"

/* Slots of kind DUMP are answered at once. */
extern const ZklTaskOwner zkl_answers_of_dumps;

/* Slots of kind AHEAD, too, unless znodes have to be read. */
extern const ZklTaskOwner zkl_answers_of_ahead;

#endif							/* ZKL_WORKER_ANSWERS_H */
