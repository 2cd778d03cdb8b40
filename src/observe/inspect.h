/*
 * inspect.h
 *	  What a manager believes at this moment: for people, and its invariants for
 *	  tests.
 */
#ifndef ZKL_OBSERVE_INSPECT_H
#define ZKL_OBSERVE_INSPECT_H

#include "core/manager.h"
#include "observe/trace.h"

/* ---- dump ---- */

/* Writes everything that a manager believes at this moment, lock by lock. */

/* One line of a dump */
typedef struct ZklDumpItem
{
	const char *path;			/* of the lock, without the root; empty: the
								 * line is about the server */
	const char *item;			/* what it is about: a request, say */
	int64_t		request;		/* which one, if it is about one; else -1 */
	const char *state;
} ZklDumpItem;

typedef void (*ZklWriteDump) (void *context, const ZklDumpItem *item);

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

/* Puts into a line where a write is, if there is one. */
extern void zkl_dump_place(ZklLine *line, const ZklWrite *w);

extern void zkl_dump_write(const ZklManager *m, int64_t now,
						   ZklWriteDump write, void *context);

/* ---- check: the invariants of the core, as code: for tests and simulations ---- */

/* Names an invariant that does not hold, or NULL.  Walks everything. */
extern const char *zkl_check_all(const ZklManager *m);

#endif							/* ZKL_OBSERVE_INSPECT_H */
