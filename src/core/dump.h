/*
 * dump.h
 *	  Writes everything that a manager believes at this moment.
 */
#ifndef ZKL_CORE_DUMP_H
#define ZKL_CORE_DUMP_H

#include "core/state.h"

extern void zkl_dump_write(const ZklManager *m, int64_t now,
						   ZklWriteDump write, void *context);

#endif							/* ZKL_CORE_DUMP_H */
