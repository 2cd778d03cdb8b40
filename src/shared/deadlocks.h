/*
 * deadlocks.h
 *	  What the worker tells a session about the deadlock that its request is in,
 *	  and when sessions look at PostgreSQL's own locks.
 */
#ifndef ZKL_SHARED_DEADLOCKS_H
#define ZKL_SHARED_DEADLOCKS_H

#define ZKL_MAX_DEADLOCK_TEXT	2048

/* For control.c, which lays out the shared memory */
extern Size zkl_deadlocks_size(void);
extern void zkl_deadlocks_attach(void *memory);
extern void zkl_deadlocks_init(void);

/*
 * Worker: keeps a text in UTF-8 for the request that has this slot, which is
 * about to fail.  It lasts until as many later ones have replaced it as there
 * is room for.
 */
extern void zkl_deadlocks_tell(int slotno, uint32 serial, const char *text);

/* Backend: copies that text.  False: it was replaced. */
extern bool zkl_deadlocks_hear(int slotno, uint32 serial, char *text);

/*
 * Whether the caller is to look now which sessions wait for which; *next says
 * when to ask again.  All sessions share their looks: one of them looks in each
 * "patience" ms, and earlier only for those that have just become patient.
 * *since is when the caller became patient; it changes with each look that is
 * made, or left to others.  Times in µs of boottime.h.
 */
extern bool zkl_deadlocks_may_look(int64 now, int64 *since, int patience,
								   int64 *next);

/* The look that began at that time is done. */
extern void zkl_deadlocks_looked(int64 began, int64 now, bool found);

/* Whether the last look found any session behind another. */
extern bool zkl_deadlocks_found(void);

#endif							/* ZKL_SHARED_DEADLOCKS_H */
