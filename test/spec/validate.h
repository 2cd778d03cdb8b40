/*
 * validate.h
 *	  Whether what servers tell obeys the specification.
 *
 * For a program that reads traces, and for the simulation, which hands lines over as
 * they come.
 */
#ifndef SPEC_VALIDATE_H
#define SPEC_VALIDATE_H

#include <stdint.h>

/* Begins anew, and forgets all servers. */
extern void spec_begin(void);

/*
 * Reads a line of a server's trace, or of ZooKeeper's log (server -1), at a time of all
 * servers in us.  Returns what is wrong; NULL: the rules allow it.
 */
extern const char *spec_line(int server, int64_t at, const char *text);

/* How many lines since spec_begin() */
typedef enum SpecCount
{
	SPEC_WORKERS,				/* a worker begins: what follows is checked */
	SPEC_UNKNOWN,				/* nothing was known of their worker */
	SPEC_GRANTS
} SpecCount;

extern long spec_count(SpecCount what);

/* Prints the table of rules. */
extern void spec_print(void);

#endif							/* SPEC_VALIDATE_H */
