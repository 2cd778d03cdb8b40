/*
 * boottime.h
 *	  The clock that all leases, waits and pauses are measured by: it goes on
 *	  while the machine sleeps, and cannot be set.
 */
#ifndef ZKL_SHARED_BOOTTIME_H
#define ZKL_SHARED_BOOTTIME_H

extern int64 zkl_boottime_ms(void);
extern int64 zkl_boottime_us(void);

#endif							/* ZKL_SHARED_BOOTTIME_H */
