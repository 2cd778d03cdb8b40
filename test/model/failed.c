/*
 * failed.c
 *	  A failed assertion of the core, in programs that nothing can save.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/assert.h"

void
zkl_assert_failed(const char *condition, const char *file, int line)
{
	fflush(stdout);
	fprintf(stderr, "# the core failed an assertion: %s, at %s:%d\n", condition, file, line);
	abort();
}
