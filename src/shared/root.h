/*
 * root.h
 *	  The settings of the root: what all servers of a root must agree on.
 *
 * They stand in one persistent znode, ZKL_ROOT_SETTINGS, as flat UTF-8 JSON.
 */
#ifndef ZKL_SHARED_ROOT_H
#define ZKL_SHARED_ROOT_H

#include "lib/stringinfo.h"
#include "shared/slot.h"
#include "znode/znode.h"

#define ZKL_ROOT_SETTINGS	"/.settings"

typedef struct ZklRoot
{
	char		dialects[ZKL_MAX_DIALECTS + 1]; /* normalized, as the next */
	bool		is_changing;
	char		changing[ZKL_MAX_DIALECTS + 1]; /* what they are about to
												 * become */
} ZklRoot;

/* What this server knows of them */
typedef enum ZklRootState
{
	ZKL_ROOT_UNKNOWN,			/* not read on this connection, or changed
								 * since */
	ZKL_ROOT_SAME,				/* "zklock.dialects" is the same */
	ZKL_ROOT_DIFFERS,			/* it is not, or the root's are changing */
	ZKL_ROOT_UNREADABLE
} ZklRootState;

/* Appends the data of the znode. */
extern void zkl_root_put(StringInfo out, const ZklRoot *root);

/* Reads such data, of unknown origin.  False: it is none that we understand. */
extern bool zkl_root_read(const char *data, Size length, ZklRoot *root);

/* "zklock.dialects" of this server, normalized */
extern const char *zkl_root_own_dialects(void);

/* ---- in shared memory ---- */

extern ZklRootState zkl_root_state(void);

/*
 * Copies what was last read, of whatever age; *rc is what ZooKeeper answered if
 * it is UNREADABLE, and OK if the data is none.  False: nothing was ever read.
 */
extern bool zkl_root_copy(ZklRoot *root, int32 *rc);

/*
 * For the worker: what was read, or NULL if it is UNREADABLE; and that it may no
 * longer be true.  The worker then wakes all sessions that wait.
 */
extern void zkl_root_publish(const ZklRoot *root, int32 rc);
extern void zkl_root_forget(void);

/*
 * Whether zklock takes a lock for itself, and reads ZooKeeper under it: the guard of a
 * semaphore, or the lock of a job
 */
extern bool zkl_root_is_internal(const char *path, bool guard);

/*
 * Whether the dialect of a request is by the list.  That of all others is fixed
 * by what they are for.
 */
extern bool zkl_root_concerns(ZklDialect dialect, const char *path, bool guard);

/*
 * Whether the worker's grant must not be taken yet, because the root's settings
 * are not known.
 */
extern bool zkl_root_is_awaited(const ZklSlot *slot);

#endif							/* ZKL_SHARED_ROOT_H */
