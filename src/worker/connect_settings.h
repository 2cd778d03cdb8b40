/*
 * connect_settings.h
 *	  The settings of a connection, with what the files that they name contain.
 *	  Worker only.
 *
 * A reload changes the variables of the settings at once, and anybody can write to a
 * file.  But the connection that works with what was read before goes on with that, and
 * so do the next ones, until the new settings work, too.
 */
#ifndef ZKL_WORKER_CONNECT_SETTINGS_H
#define ZKL_WORKER_CONNECT_SETTINGS_H

#include "shared/settings.h"
#include "worker/credentials.h"

typedef struct ZklConnectSettings
{
	MemoryContext context;		/* of all that is here */
	const char *connect_string;
	const char *auth_file;
	ZklTlsSettings tls;
	const char *fault;			/* why they cannot be used, or NULL; these
								 * four are not complete then */
	ZklCredentials credentials;
	StringInfoData ca;			/* the others, too: PEM, empty without TLS */
	StringInfoData certificate;
	StringInfoData key;
} ZklConnectSettings;

/* The present values of the variables, and reads the files.  To be freed. */
extern ZklConnectSettings *zkl_connect_settings_read(void);

/* Wipes the secrets, too. */
extern void zkl_connect_settings_free(ZklConnectSettings *settings);

/* Whether all is the same: values, contents, and faults */
extern bool zkl_connect_settings_equal(const ZklConnectSettings *a,
									   const ZklConnectSettings *b);

#endif							/* ZKL_WORKER_CONNECT_SETTINGS_H */
