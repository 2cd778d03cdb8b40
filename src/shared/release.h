/*
 * release.h
 *	  Which releases of ZooKeeper are not to be relied on, and what is said of them.
 */
#ifndef ZKL_SHARED_RELEASE_H
#define ZKL_SHARED_RELEASE_H

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

#endif							/* ZKL_SHARED_RELEASE_H */
