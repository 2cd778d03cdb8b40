/*
 * clockrate.h
 *	  How much the system corrects the rate of its clock.
 */
#ifndef ZKL_FUNCTIONS_CLOCKRATE_H
#define ZKL_FUNCTIONS_CLOCKRATE_H

/* In millionths; false, with errno: the system does not tell. */
extern bool zkl_clockrate_read(double *ppm);

#endif							/* ZKL_FUNCTIONS_CLOCKRATE_H */
