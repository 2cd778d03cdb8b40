/*
 * clock_rate.h
 *	  How much the system corrects the rate of its clock.
 */
#ifndef ZKL_FUNCTIONS_CLOCK_RATE_H
#define ZKL_FUNCTIONS_CLOCK_RATE_H

/* In millionths; false, with errno: the system does not tell. */
extern bool zkl_clock_rate_read(double *ppm);

#endif							/* ZKL_FUNCTIONS_CLOCK_RATE_H */
