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
 * Notes a process to be woken, and wakes all that were noted: what is to be
 * sent goes first, or who is woken takes the processor away from us.
 */
extern void zkl_wakeup_later(int procno);
extern void zkl_wakeup_noted(void);

#endif							/* ZKL_SHARED_WAKEUP_H */
