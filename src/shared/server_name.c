/*
 * server_name.c
 *	  What this PostgreSQL server is called among others.
 *
 * Owns the name, which each process finds out for itself.  Run by backends and
 * the worker.  Takes no locks.  Must not know what the name is for.
 */
#include "postgres.h"

#include <unistd.h>

#include "postmaster/postmaster.h"
#include "shared/server_name.h"
#include "utils/guc.h"

const char *
zkl_server_name(void)
{
	static char name[64] = "";

	if (name[0] == '\0')
	{
		const char *cluster = GetConfigOption("cluster_name", true, false);
		char		host[48] = "localhost";

		if (cluster != NULL && cluster[0] != '\0')
			strlcpy(name, cluster, sizeof(name));
		else
		{
			gethostname(host, sizeof(host) - 1);
			snprintf(name, sizeof(name), "%s:%d", host, PostPortNumber);
		}
	}
	return name;
}
