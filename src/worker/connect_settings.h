/*
 * connect_settings.h
 *	  The settings of the connection to ZooKeeper, as values.  Worker only.
 *
 * A reload changes the variables of the settings at once, but the connection that
 * works with the old values goes on until the new ones work, too.
 */
#ifndef ZKL_WORKER_CONNECT_SETTINGS_H
#define ZKL_WORKER_CONNECT_SETTINGS_H

#include "shared/settings.h"

typedef struct ZklConnectSettings
{
	const char *connect_string;
	const char *auth_file;
	ZklTlsSettings tls;
} ZklConnectSettings;

/* The present values of the variables, until the next reload */
extern ZklConnectSettings zkl_connect_settings_wanted(void);

/* A copy that lasts.  Only the last copy does. */
extern ZklConnectSettings zkl_connect_settings_keep(const ZklConnectSettings *settings);

extern bool zkl_connect_settings_equal(const ZklConnectSettings *a,
									   const ZklConnectSettings *b);

#endif							/* ZKL_WORKER_CONNECT_SETTINGS_H */
