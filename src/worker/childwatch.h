/*
 * childwatch.h
 *	  Taking back the watches on children that errands have set.  Worker only.
 */
#ifndef ZKL_WORKER_CHILDWATCH_H
#define ZKL_WORKER_CHILDWATCH_H


/*
 * "awaited": whether an errand wants to hear of the children of a znode;
 * "unwatch": takes the watch on them back.
 */
extern void zkl_childwatch_begin(bool (*awaited) (const char *path),
								 void (*unwatch) (const char *path));

/* An errand that had set a watch has ended. */
extern void zkl_childwatch_end(const char *path);

/* It has ended while its listing, of this attempt, was under way. */
extern void zkl_childwatch_give_up(uint32 attempt, const char *path);

/* The answer to a listing of no errand: perhaps that one's. */
extern void zkl_childwatch_answered(uint32 attempt);

extern void zkl_childwatch_disconnected(void);

#endif							/* ZKL_WORKER_CHILDWATCH_H */
