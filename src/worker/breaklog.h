/*
 * breaklog.h
 *	  What the server log tells of locks that are broken.  Worker only.
 */
#ifndef ZKL_WORKER_BREAKLOG_H
#define ZKL_WORKER_BREAKLOG_H

/* A znode of a lock, in this directory, is marked; it is gone. */
extern void zkl_breaklog_marked(int slotno, const char *lock,
								const char *directory, const char *znode);
extern void zkl_breaklog_gone(int slotno, const char *lock,
							  const char *directory, const char *znode);

/* A znode that was left beside the one that was broken ("head") is deleted. */
extern void zkl_breaklog_left(const char *lock, const char *directory,
							  const char *znode, const char *head);

#endif							/* ZKL_WORKER_BREAKLOG_H */
