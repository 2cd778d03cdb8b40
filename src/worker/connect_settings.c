/*
 * connect_settings.c
 *	  The settings of a connection, with what the files that they name contain.
 *
 * Owns no state.  Runs in the worker only; takes no locks.  It must not know what a
 * connection is, nor when settings are taken over.  No message shows a line of a file.
 */
#include "postgres.h"

#include "utils/memutils.h"
#include "worker/connect_settings.h"

static const char *
read_if_set(const char *setting, const char *path, bool secret,
			StringInfo content)
{
	return path[0] == '\0' ? NULL :
		zkl_credentials_read_file(setting, path, secret, content);
}

/* Returns NULL, or what is wrong. */
static const char *
read_tls_files(ZklConnectSettings *settings)
{
	const ZklTlsSettings *tls = &settings->tls;
	const char *wrong = zkl_settings_tls_fault(tls);

	if (tls->mode == ZKL_TLS_OFF)
		return NULL;
	if (wrong == NULL)
		wrong = read_if_set("zklock.tls_ca_file", tls->ca_file, false,
							&settings->ca);
	if (wrong == NULL)
		wrong = read_if_set("zklock.tls_cert_file", tls->cert_file, false,
							&settings->certificate);
	if (wrong == NULL)
		wrong = read_if_set("zklock.tls_key_file", tls->key_file, true,
							&settings->key);
	return wrong;
}

static void
copy_values(ZklConnectSettings *settings)
{
	ZklTlsSettings tls = zkl_settings_tls();

	settings->connect_string = pstrdup(zkl_connect_string);
	settings->auth_file = pstrdup(zkl_auth_file != NULL ? zkl_auth_file : "");
	settings->tls.mode = tls.mode;
	settings->tls.ca_file = pstrdup(tls.ca_file);
	settings->tls.cert_file = pstrdup(tls.cert_file);
	settings->tls.key_file = pstrdup(tls.key_file);
}

ZklConnectSettings *
zkl_connect_settings_read(void)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext,
												  "zklock connection settings",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	ZklConnectSettings *settings = palloc0(sizeof(ZklConnectSettings));

	settings->context = context;
	copy_values(settings);
	initStringInfo(&settings->ca);
	initStringInfo(&settings->certificate);
	initStringInfo(&settings->key);
	settings->fault = zkl_credentials_read(&settings->credentials,
										   settings->auth_file);
	if (settings->fault == NULL)
		settings->fault = read_tls_files(settings);
	MemoryContextSwitchTo(old);
	return settings;
}

void
zkl_connect_settings_free(ZklConnectSettings *settings)
{
	zkl_credentials_wipe(&settings->credentials);
	explicit_bzero(settings->key.data, (size_t) settings->key.len);
	MemoryContextDelete(settings->context);
}

static bool
same_text(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool
same_content(const StringInfoData *a, const StringInfoData *b)
{
	return a->len == b->len && memcmp(a->data, b->data, (size_t) a->len) == 0;
}

bool
zkl_connect_settings_equal(const ZklConnectSettings *a,
						   const ZklConnectSettings *b)
{
	return same_text(a->connect_string, b->connect_string) &&
		same_text(a->auth_file, b->auth_file) &&
		a->tls.mode == b->tls.mode &&
		same_text(a->tls.ca_file, b->tls.ca_file) &&
		same_text(a->tls.cert_file, b->tls.cert_file) &&
		same_text(a->tls.key_file, b->tls.key_file) &&
		same_text(a->fault, b->fault) &&
		same_content(&a->credentials.content, &b->credentials.content) &&
		same_content(&a->ca, &b->ca) &&
		same_content(&a->certificate, &b->certificate) &&
		same_content(&a->key, &b->key);
}
