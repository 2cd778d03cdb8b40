/*
 * fleet.h
 *	  What each PostgreSQL server tells the others of itself: its znode in the
 *	  directory of the fleet.
 *
 * The name of the znode is <system identifier>.<session id>, in decimal and in 16
 * hexadecimal digits.  Its data is flat UTF-8 JSON.
 */
#ifndef ZKL_SHARED_FLEET_H
#define ZKL_SHARED_FLEET_H

#include "lib/stringinfo.h"
#include "shared/peer_address.h"
#include "znode/znode.h"

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

#endif							/* ZKL_SHARED_FLEET_H */
