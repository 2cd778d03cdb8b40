/*
 * postgres.h
 *	  In place of PostgreSQL's, for the test of a file that needs its types only.
 */
#ifndef TEST_UNIT_STUB_POSTGRES_H
#define TEST_UNIT_STUB_POSTGRES_H

#include <stdint.h>

typedef int64_t int64;

#endif							/* TEST_UNIT_STUB_POSTGRES_H */
