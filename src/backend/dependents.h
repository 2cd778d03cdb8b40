/*
 * dependents.h
 *	  Which sessions that hold distributed locks wait, in PostgreSQL's own locks,
 *	  for a session that waits for a distributed lock.
 */
#ifndef ZKL_BACKEND_DEPENDENTS_H
#define ZKL_BACKEND_DEPENDENTS_H

/*
 * Looks for all sessions of this server whose patience is over, and has the
 * worker see what it found.  May throw.
 */
extern void zkl_dependents_look(void);

#endif							/* ZKL_BACKEND_DEPENDENTS_H */
