/*
 * program.h
 *	  The program of the session process: the file that this server uses from its
 *	  start to its end, whatever becomes of its path.
 */
#ifndef ZKL_WORKER_PROGRAM_H
#define ZKL_WORKER_PROGRAM_H

/*
 * The postmaster's, while it preloads: opens the program beside this library.
 * An error if it cannot be opened.
 */
extern void zkl_program_open(void);

/*
 * The worker's: starts the program.  Returns 0, our end of the link to it, and the
 * pid; or an errno.
 */
extern int	zkl_program_spawn(int *link, pid_t *pid);

/* The worker's: whether the process runs the program */
extern bool zkl_program_is_run_by(int pid);

#endif							/* ZKL_WORKER_PROGRAM_H */
