/*
 * fleet.h
 *	  What the servers of a fleet share: the settings of the root, and what each
 *	  tells of itself.
 *
 * The name of the znode is <system identifier>.<session id>, in decimal and in 16
 * hexadecimal digits.  Its data is flat UTF-8 JSON.
 */
#ifndef ZKL_SHARED_FLEET_H
#define ZKL_SHARED_FLEET_H

#include "lib/stringinfo.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "znode/znode.h"

/* ---- root: the settings of the root: what all servers of a root must agree on ---- */

/*
 * They stand in one persistent znode, ZKL_ROOT_SETTINGS, as flat UTF-8 JSON.
 */

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

/* Whether the lock of a slot surely has the dialect of the root, and keeps it */
extern bool zkl_root_admits(const ZklSlot *slot);

/* ---- fleet ---- */

/*
 * What each PostgreSQL server tells the others of itself: its znode in the directory
 * of the fleet.
 */

#define ZKL_FLEET_DIRECTORY	"/.fleet"
#define ZKL_MAX_FLEET_ZNODE	(20 + 1 + 16)

typedef struct ZklFleetEntry
{
	char		server[ZKL_MAX_SERVER_NAME + 1];
	char		host[256];
	int32		port;
	bool		in_recovery;
	char		postgresql[64]; /* versions */
	char		zklock[32];
	int32		protocol;		/* of its znodes */
	int32		asked_ms;		/* the session timeout */
	int32		timeout_ms;		/* as ZooKeeper granted it */
	int64		since_ms;		/* of the session, since 1970 */
	int64		started_us;		/* of the postmaster, since 2000 */
	char		peer[ZKL_PEER_ADDRESS_TEXT];	/* where its worker hears from
												 * others; empty: nowhere */
} ZklFleetEntry;

/* Appends the data of a znode. */
extern void zkl_fleet_put(StringInfo out, const ZklFleetEntry *entry);

/* Reads such data, of unknown origin.  False: it is none; *entry is empty. */
extern bool zkl_fleet_read(const char *data, Size length,
						   ZklFleetEntry *entry);

/* The name of a znode, NUL terminated; buf has ZKL_MAX_FLEET_ZNODE + 1 bytes. */
extern void zkl_fleet_name(uint64 system, int64 session_id, char *buf);

/* Reads such a name.  False: it is none. */
extern bool zkl_fleet_read_name(const char *name, uint64 *system,
								int64 *session_id);

/* ---- peer_count ---- */

/*
 * Whether other servers answer what this one asks them, in messages.
 *
 * A word may come late, or never, for good reasons.  So once in a second, an ask to a
 * server is to be echoed at once: that shows whether datagrams arrive there, and come
 * back.
 */

/* So many servers are counted: those that were asked last. */
#define ZKL_MAX_PEER_COUNTS	256

typedef struct ZklPeerCount
{
	int64		session;		/* of the other server; 0: a free place */
	uint32		unanswered;		/* asks to be echoed, since it was last heard */
	int64		since_ms;		/* by boottime.h: the first of these */
	int64		asked_ms;		/* the last one, answered or not */
} ZklPeerCount;

/* Worker: a server is asked.  Whether it is to echo that, which is counted then. */
extern bool zkl_peer_count_ask(int64 session);

/* Worker: a server has answered, by an echo or a word. */
extern void zkl_peer_count_heard(int64 session);

/* Copies what is known of a server.  False: it was not asked lately. */
extern bool zkl_peer_count_copy(int64 session, ZklPeerCount *copy);

#endif							/* ZKL_SHARED_FLEET_H */
