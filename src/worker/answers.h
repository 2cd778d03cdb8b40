/*
 * answers.h
 *	  Questions that the core answers: zk_dump(), and what is ahead of a waiting
 *	  request.  Worker only.
 */
#ifndef ZKL_WORKER_ANSWERS_H
#define ZKL_WORKER_ANSWERS_H

#include "worker/operation.h"

/* Answers slots of kind DUMP at once. */
extern const ZklTaskOwner zkl_answers_of_dumps;

extern const ZklTaskOwner zkl_answers_of_ahead;

#endif							/* ZKL_WORKER_ANSWERS_H */
