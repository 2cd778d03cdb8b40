/*
 * dump.h
 *	  Writes everything that a manager believes at this moment.
 */
#ifndef ZKL_CORE_DUMP_H
#define ZKL_CORE_DUMP_H

#include "core/line.h"
#include "core/state.h"

/* A dump under way */
typedef struct ZklDump
{
	const ZklManager *m;
	int64_t		now;
	ZklWriteDump write;
	void	   *context;
} ZklDump;

/* Writes a line about a lock (NULL: the server) and a request (-1: none). */
extern void zkl_dump_item(const ZklDump *d, const ZklLock *lock,
						  const char *item, int64_t request,
						  const ZklLine *line);

/* Puts into a line how many there are, if there are any. */
extern void zkl_dump_count(ZklLine *line, const char *key, int64_t n);
extern void zkl_dump_list(ZklLine *line, const char *key, const ZklList *list);

/* Puts into a line where a write is, if there is one. */
extern void zkl_dump_place(ZklLine *line, const ZklWrite *w);

extern void zkl_dump_write(const ZklManager *m, int64_t now,
						   ZklWriteDump write, void *context);

#endif							/* ZKL_CORE_DUMP_H */
