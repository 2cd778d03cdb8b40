/*
 * tls_settings.c
 *	  The settings of TLS to ZooKeeper.
 *
 * Owns their variables.  The postmaster defines them, the worker reads them.
 * Takes no locks.
 *
 * Must not know how TLS works.
 */
#include "postgres.h"

#include "shared/settings.h"
#include "shared/tls_settings.h"
#include "utils/guc.h"

static int	tls = ZKL_TLS_OFF;
static char *tls_ca_file = NULL;
static char *tls_cert_file = NULL;
static char *tls_key_file = NULL;

static const struct config_enum_entry tls_modes[] = {
	{"off", ZKL_TLS_OFF, false},
	{"verify-ca", ZKL_TLS_VERIFY_CA, false},
	{"verify-full", ZKL_TLS_VERIFY_FULL, false},
	{NULL, 0, false}
};

#ifdef ZKLOCK_OPENSSL
#define check_tls	NULL
#else
static bool
check_tls(int *newval, void **extra, GucSource source)
{
	return zkl_settings_accept("zklock.tls", tls_modes[*newval].name,
							   *newval == ZKL_TLS_OFF ? NULL :
							   "This build of zklock has no support for TLS.");
}
#endif

/*
 * PostgreSQL would only warn of a word that is none of the modes, and go on
 * without TLS.
 */
static void
check_tls_word(void)
{
	const char *given = GetConfigOption("zklock.tls", true, false);
	const struct config_enum_entry *mode = tls_modes;

	while (given != NULL && mode->name != NULL &&
		   pg_strcasecmp(given, mode->name) != 0)
		mode++;
	if (given != NULL && mode->name == NULL)
		(void) zkl_settings_accept("zklock.tls", given,
								   "The modes are off, verify-ca and verify-full.");
}

ZklTlsSettings
zkl_tls_settings_wanted(void)
{
	ZklTlsSettings settings = {(ZklTls) tls, tls_ca_file, tls_cert_file,
	tls_key_file};

	return settings;
}

const char *
zkl_tls_settings_fault(const ZklTlsSettings *settings)
{
	if (settings->mode == ZKL_TLS_OFF)
		return NULL;
	if (settings->ca_file[0] == '\0')
		return "\"zklock.tls\" requires \"zklock.tls_ca_file\"";
	if ((settings->cert_file[0] == '\0') != (settings->key_file[0] == '\0'))
		return "\"zklock.tls_cert_file\" and \"zklock.tls_key_file\" require each other";
	return NULL;
}

void
zkl_tls_settings_define(void)
{
	ZklTlsSettings wanted;

	check_tls_word();
	DefineCustomEnumVariable("zklock.tls",
							 "Sets whether connections to ZooKeeper use TLS, and how its servers are verified.",
							 NULL,
							 &tls,
							 ZKL_TLS_OFF, tls_modes,
							 PGC_SIGHUP,
							 GUC_SUPERUSER_ONLY,
							 check_tls, NULL, NULL);
	DefineCustomStringVariable("zklock.tls_ca_file",
							   "Sets the file with the certificates that verify the ZooKeeper servers.",
							   NULL,
							   &tls_ca_file,
							   "",
							   PGC_SIGHUP,
							   GUC_SUPERUSER_ONLY,
							   NULL, NULL, NULL);
	DefineCustomStringVariable("zklock.tls_cert_file",
							   "Sets the file with this server's certificate for ZooKeeper.",
							   "An empty string means no certificate.",
							   &tls_cert_file,
							   "",
							   PGC_SIGHUP,
							   GUC_SUPERUSER_ONLY,
							   NULL, NULL, NULL);
	DefineCustomStringVariable("zklock.tls_key_file",
							   "Sets the file with the private key of \"zklock.tls_cert_file\".",
							   NULL,
							   &tls_key_file,
							   "",
							   PGC_SIGHUP,
							   GUC_SUPERUSER_ONLY,
							   NULL, NULL, NULL);
	wanted = zkl_tls_settings_wanted();
	if (zkl_tls_settings_fault(&wanted) != NULL)
		ereport(FATAL,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s", zkl_tls_settings_fault(&wanted))));
}
