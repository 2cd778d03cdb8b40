/*
 * program.h
 *	  zklock_session, the program that speaks to ZooKeeper servers.
 *
 * This server uses the program that it had at its start to its end, whatever becomes
 * of the path.
 */
#ifndef ZKL_SHARED_PROGRAM_H
#define ZKL_SHARED_PROGRAM_H

#define ZKL_PROGRAM_FD		4	/* its own file, in the process */

/*
 * The postmaster's, while it preloads: opens the program beside this library.
 * An error if it cannot be opened.
 */
extern void zkl_program_open(void);

/*
 * Starts it, with these arguments (NULL at their end, or none at all), and with our
 * descriptor "fd" as its descriptor "as".  Returns 0 and the pid, or an errno.
 */
extern int	zkl_program_spawn(char *const *arguments, int fd, int as, pid_t *pid);

/* Whether a process runs it */
extern bool zkl_program_is_of(int pid);

#endif							/* ZKL_SHARED_PROGRAM_H */
