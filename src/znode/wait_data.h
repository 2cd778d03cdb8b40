/*
 * wait_data.h
 *	  What a server publishes of a long wait, for others to find deadlocks.
 *
 * A publication is an ephemeral znode in ZKL_WAITS_DIRECTORY below the root.
 * Its name is the unique id of a znode that holds a lock: whoever is behind that
 * one looks here for what its holder waits for.
 */
#ifndef ZKL_ZNODE_WAIT_DATA_H
#define ZKL_ZNODE_WAIT_DATA_H

#include "znode/znode.h"

#define ZKL_WAITS_DIRECTORY	"/.waits"

#define ZKL_MAX_WAIT_DATA	2048	/* bytes of the data of a publication */

typedef struct ZklWaitData
{
	ZklUuid		wait;			/* the id of the znode that waits */
	char		lock[ZKL_MAX_NAME + 1]; /* whose queue it stands in */
	ZklDialect	dialect;
	ZklLockMode mode;
	bool		behind;			/* the holder waits for the waiter, in
								 * PostgreSQL's own locks; else they are one */
	char		server[ZKL_MAX_SERVER_NAME + 1];	/* of both */
	int32_t		holder_pid;
	int32_t		waiter_pid;
	int32_t		every_ms;		/* how often "behind" is looked at */
} ZklWaitData;

/* Writes JSON into ZKL_MAX_WAIT_DATA bytes; returns its length. */
extern size_t zkl_wait_data_format(const ZklWaitData *data, char *buf);

/* Reads it back.  False: it is none that we can use. */
extern bool zkl_wait_data_parse(const char *text, size_t length,
								ZklWaitData *data);

#endif							/* ZKL_ZNODE_WAIT_DATA_H */
