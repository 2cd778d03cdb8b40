/*
 * tls_settings.h
 *	  The settings of TLS to ZooKeeper.
 */
#ifndef ZKL_SHARED_TLS_SETTINGS_H
#define ZKL_SHARED_TLS_SETTINGS_H

#include "znode/zookeeper.h"

typedef struct ZklTlsSettings
{
	ZklTls		mode;
	const char *ca_file;		/* the files: empty if not set */
	const char *cert_file;
	const char *key_file;
} ZklTlsSettings;

/* Defines all of them, as zkl_settings_define does. */
extern void zkl_tls_settings_define(void);

/* The present values, until the next reload */
extern ZklTlsSettings zkl_tls_settings_wanted(void);

/* What they lack together, or NULL */
extern const char *zkl_tls_settings_fault(const ZklTlsSettings *settings);

#endif							/* ZKL_SHARED_TLS_SETTINGS_H */
