/*
 * connect_settings.c
 *	  The settings of the connection to ZooKeeper, as values.
 *
 * Owns the values that were kept.  Runs in the worker only; takes no locks.  It must
 * not know what the settings are for.
 */
#include "postgres.h"

#include "shared/settings.h"
#include "utils/memutils.h"
#include "worker/connect_settings.h"

ZklConnectSettings
zkl_connect_settings_wanted(void)
{
	ZklConnectSettings settings;

	settings.connect_string = zkl_connect_string;
	settings.auth_file = zkl_auth_file != NULL ? zkl_auth_file : "";
	settings.tls = zkl_settings_tls();
	return settings;
}

ZklConnectSettings
zkl_connect_settings_keep(const ZklConnectSettings *settings)
{
	static MemoryContext values = NULL;
	MemoryContext before = values;
	MemoryContext old;
	ZklConnectSettings copy = *settings;

	values = AllocSetContextCreate(TopMemoryContext, "zklock connection settings",
								   ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(values);
	copy.connect_string = pstrdup(settings->connect_string);
	copy.auth_file = pstrdup(settings->auth_file);
	copy.tls.ca_file = pstrdup(settings->tls.ca_file);
	copy.tls.cert_file = pstrdup(settings->tls.cert_file);
	copy.tls.key_file = pstrdup(settings->tls.key_file);
	MemoryContextSwitchTo(old);
	if (before != NULL)
		MemoryContextDelete(before);
	return copy;
}

bool
zkl_connect_settings_equal(const ZklConnectSettings *a,
						   const ZklConnectSettings *b)
{
	return strcmp(a->connect_string, b->connect_string) == 0 &&
		strcmp(a->auth_file, b->auth_file) == 0 &&
		a->tls.mode == b->tls.mode &&
		strcmp(a->tls.ca_file, b->tls.ca_file) == 0 &&
		strcmp(a->tls.cert_file, b->tls.cert_file) == 0 &&
		strcmp(a->tls.key_file, b->tls.key_file) == 0;
}
