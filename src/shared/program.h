/*
 * program.h
 *	  zklock_session, the program that speaks to ZooKeeper servers, and which of
 *	  their releases are not to be relied on.
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

/* ---- release ---- */

/*
 * Which releases of ZooKeeper are not to be relied on, and what is said of them.
 */

/*
 * Whether it loses writes; so does not what is no number, such as the empty string of
 * a server that does not tell.
 */
extern bool zkl_release_loses_writes(const char *version);

/* Full sentences */
#define ZKL_RELEASE_FAULT \
	"Releases before 3.9.4 lose writes that they have acknowledged if members of the ensemble end and start in quick succession.  Then a lock can have two holders."
#define ZKL_RELEASE_ADVICE \
	"Upgrade to ZooKeeper 3.9.4 or later, or rely on fencing tokens."

#endif							/* ZKL_SHARED_PROGRAM_H */
