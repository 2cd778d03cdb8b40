/*
 * long_answer.h
 *	  An answer of the worker that is as long as it is.
 */
#ifndef ZKL_BACKEND_LONG_ANSWER_H
#define ZKL_BACKEND_LONG_ANSWER_H

#include "backend/target.h"
#include "shared/entries.h"
#include "shared/slot.h"
#include "storage/dsm.h"

/*
 * Asks for an answer of that kind and opens it as *list.  Returns the segment
 * that it is in, for the caller to detach.  If the answer takes more than
 * ZKL_LONG_ANSWER_MAX bytes, returns NULL, and *needed tells how many.  "where"
 * adds to the errors, such as 08006 if the worker does not answer.
 */
extern dsm_segment *zkl_long_answer_read(const ZklTarget *target,
										 ZklSlotKind kind,
										 void (*where) (void *name),
										 ZklEntries *list, Size *needed);

#define ZKL_LONG_ANSWER_MAX	((Size) 16 * 1024 * 1024)

#endif							/* ZKL_BACKEND_LONG_ANSWER_H */
