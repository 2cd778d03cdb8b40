/*
 * release.c
 *	  Which releases of ZooKeeper are not to be relied on.
 *
 * Owns nothing.  Run by the worker and backends.  Takes no locks.  It must not know how
 * the version was found out.
 */
#include "postgres.h"

#include "shared/release.h"

/* Releases from 3.9.4 on are not known to lose writes. */
bool
zkl_release_loses_writes(const char *version)
{
	int			major,
				minor,
				patch;

	if (sscanf(version, "%d.%d.%d", &major, &minor, &patch) != 3)
		return false;
	return major < 3 || (major == 3 && (minor < 9 || (minor == 9 && patch < 4)));
}
