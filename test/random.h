/*
 * random.h
 *	  Random numbers that a seed repeats (splitmix64), for all tests in C.
 */
#ifndef TEST_RANDOM_H
#define TEST_RANDOM_H

#include <stdint.h>

/* The state is any number at first. */
static inline uint64_t
splitmix64(uint64_t *state)
{
	uint64_t	z = *state += 0x9E3779B97F4A7C15;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
	z = (z ^ z >> 27) * 0x94D049BB133111EB;
	return z ^ z >> 31;
}

#endif							/* TEST_RANDOM_H */
