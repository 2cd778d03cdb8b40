/*
 * credentials.h
 *	  Reads the files that settings name: "zklock.auth_file" and those of TLS.  Worker
 *	  only.
 */
#ifndef ZKL_WORKER_CREDENTIALS_H
#define ZKL_WORKER_CREDENTIALS_H

#include "lib/stringinfo.h"
#include "nodes/pg_list.h"

typedef struct ZklCredentials
{
	StringInfoData content;		/* of the file; lines points into it */
	List	   *lines;			/* char *, each scheme:secret */
	bool		is_private;
} ZklCredentials;

/*
 * Appends a file's content to "content".  A secret is read only if its owner and
 * its permissions keep it one.  Returns NULL, or what is wrong, which names the
 * setting and the file.
 */
extern const char *zkl_credentials_read_file(const char *setting, const char *path,
											 bool secret, StringInfo content);

/*
 * Reads "zklock.auth_file"; an empty path gives no lines.  Returns NULL, or what is
 * wrong: then a connection without credentials would be wrong, too.  The caller wipes
 * them in the end, also if something is wrong.
 */
extern const char *zkl_credentials_read(ZklCredentials *credentials,
										const char *auth_file);
extern void zkl_credentials_wipe(ZklCredentials *credentials);

#endif							/* ZKL_WORKER_CREDENTIALS_H */
