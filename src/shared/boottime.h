/*
 * boottime.h
 *	  The clock that all leases, limits and pauses are measured by: it goes on
 *	  while the machine sleeps, and can be neither set nor slewed.  No other clock
 *	  decides what this server may rely on.
 */
#ifndef ZKL_SHARED_BOOTTIME_H
#define ZKL_SHARED_BOOTTIME_H

extern int64 zkl_boottime_ms(void);
extern int64 zkl_boottime_us(void);

#endif							/* ZKL_SHARED_BOOTTIME_H */
