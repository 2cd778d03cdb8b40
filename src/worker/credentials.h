/*
 * credentials.h
 *	  As whom to connect to ZooKeeper: what "zklock.auth_file" holds.  Worker only.
 */
#ifndef ZKL_WORKER_CREDENTIALS_H
#define ZKL_WORKER_CREDENTIALS_H

#include "lib/stringinfo.h"
#include "nodes/pg_list.h"
#include "wire/wire.h"

typedef struct ZklCredentials
{
	StringInfoData content;		/* of the file; lines points into it */
	List	   *lines;			/* char *, each scheme:secret */
	bool		is_private;
} ZklCredentials;

/* Reads the file, if there is one.  Returns NULL, or what is wrong with it. */
extern const char *zkl_credentials_read(ZklCredentials *credentials,
										const char *auth_file);

/* Their part of a START frame */
extern void zkl_credentials_put(const ZklCredentials *credentials,
								ZklWireBuffer *out);

/* To be called in the end, also if something is wrong. */
extern void zkl_credentials_wipe(ZklCredentials *credentials);

#endif							/* ZKL_WORKER_CREDENTIALS_H */
