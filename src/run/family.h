/*
 * family.h
 *	  The processes that descend from one.
 */
#ifndef ZKL_RUN_FAMILY_H
#define ZKL_RUN_FAMILY_H

#include <sys/types.h>

#define ZKL_FAMILY_SPARED	4

typedef struct ZklFamily
{
	pid_t		root;			/* 0: the family is empty */
	pid_t		spared[ZKL_FAMILY_SPARED];	/* no members, but their children
											 * are; 0: none */
} ZklFamily;

/*
 * The children that this process has now, and theirs, are no members of its family:
 * the shell that became zklock-run has started them.
 */
extern void zkl_family_begin(void);

/*
 * Sends a signal to all that descend from the root, but not to those in "but_group",
 * which is 0 or a process group.  Returns how many there are; with 0 as the signal it
 * only counts them.
 */
extern int	zkl_family_signal(const ZklFamily *family, int signo, pid_t but_group);

/* One of those to whom the last call could not send its signal, or 0 */
extern pid_t zkl_family_denied(void);

#endif							/* ZKL_RUN_FAMILY_H */
