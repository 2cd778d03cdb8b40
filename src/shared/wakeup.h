/*
 * wakeup.h
 *	  Waking processes by their latches.
 */
#ifndef ZKL_SHARED_WAKEUP_H
#define ZKL_SHARED_WAKEUP_H

/* Sets the worker's latch. */
extern void zkl_wakeup_worker(void);

/* Sets the latch of a process; ZKL_PROCNO_NONE: of none. */
extern void zkl_wakeup_process(int procno);

/*
 * Notes a process, and wakes all that were noted.  The worker first sends its
 * pending operations, because a process that is woken may take the processor
 * away from it.
 */
extern void zkl_wakeup_later(int procno);
extern void zkl_wakeup_noted(void);

#endif							/* ZKL_SHARED_WAKEUP_H */
