/*
 * server_name.c
 *	  What this PostgreSQL server is called among others.
 *
 * Owns the name, which each process finds out for itself.  Run by backends and
 * the worker; the postmaster checks the setting.  Takes no locks.  Must not know
 * what the name is for.
 *
 * The name is never cut, since two names might differ at their ends only.  So it
 * has to fit everywhere, also when it is escaped for JSON: "cluster_name" and
 * the host have at most 63 and 64 bytes of ASCII, and the setting has no
 * characters that need an escape.
 */
#include "postgres.h"

#include <unistd.h>

#include "postmaster/postmaster.h"
#include "shared/server_name.h"
#include "shared/settings.h"
#include "utils/guc.h"
#include "znode/json.h"
#include "znode/znode.h"

#define MAX_HOST	64

const char *
zkl_server_name_host(void)
{
	static char host[MAX_HOST + 1] = "";

	if (host[0] == '\0' && gethostname(host, MAX_HOST) != 0)
		strlcpy(host, "localhost", sizeof(host));
	return host;
}

const char *
zkl_server_name(void)
{
	static char name[ZKL_MAX_SERVER_NAME + 1] = "";
	const char *cluster;

	if (zkl_server_name_setting != NULL && zkl_server_name_setting[0] != '\0')
		return zkl_server_name_setting;
	if (name[0] != '\0')
		return name;
	cluster = GetConfigOption("cluster_name", true, false);
	snprintf(name, sizeof(name), "%s%s%s:%d",
			 cluster != NULL ? cluster : "",
			 cluster != NULL && cluster[0] != '\0' ? "@" : "",
			 zkl_server_name_host(), PostPortNumber);
	return name;
}

const char *
zkl_server_name_check(const char *value)
{
	size_t		length = strlen(value);
	size_t		at = 0;

	if (length > ZKL_MAX_SERVER_NAME)
		return "A server name must have at most 200 bytes in UTF-8.";
	while (at < length)
	{
		uint32_t	code;
		size_t		bytes = zkl_json_character(value + at, length - at, &code);

		if (bytes == 0)
			return "A server name must be valid UTF-8.";
		if (code < 0x20 || (code >= 0x7F && code < 0xA0) || code == '"' ||
			code == '\\')
			return "A server name must not contain control characters, double quotes or backslashes.";
		at += bytes;
	}
	return NULL;
}
