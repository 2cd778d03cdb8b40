/*
 * diagnosis.c
 *	  Says in words what is wrong with ZooKeeper, or with a connection to it.
 *
 * Owns the memory of its own warnings.  Runs in the worker only; takes no locks.
 * It must not know how the worker finds that out.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "core/manager.h"
#include "shared/settings.h"
#include "worker/diagnosis.h"

#define MAX_TOLD			64	/* as many as there can be hosts */

const char *
zkl_diagnosis_of(int32 rc, const char *host)
{
	switch (rc)
	{
		case ZKL_RC_LAPSED:
			return "the lease has passed while the worker was held up";
		case ZKL_RC_WENT_BACK:
			return "transaction ids of ZooKeeper have gone back: the ensemble was wiped, restored from a backup, or is another one; see zk_accept_lower_tokens()";
		case ZKL_RC_ABSURD:
			return psprintf("ZooKeeper server \"%s\" answered with a transaction id that cannot be right",
							host);
		case ZKL_RC_NOAUTH:
			return psprintf("not allowed to create this server's node below \"%s\": check \"zklock.auth_file\"",
							zkl_root);
		case ZKL_RC_NONODE:
			return "the chroot that \"zklock.connect_string\" ends in does not exist";
		default:
			return psprintf("no usable answer from ZooKeeper server \"%s\" (code %d)",
							host, rc);
	}
}

const char *
zkl_diagnosis_of_gone(ZklWireGone reason, ZklWireReader *body)
{
	uint32_t	length;
	const char *text = zkl_wire_get_string(body, &length);

	return psprintf("%.*s%s", (int) length, text,
					reason == ZKL_WIRE_GONE_AUTH_FAILED ?
					": check \"zklock.auth_file\"" : "");
}

void
zkl_diagnosis_warn_of_lost_writes(void)
{
	ereport(WARNING,
			(errmsg("ZooKeeper has lost writes that it had acknowledged"),
			 errdetail("This server's node below \"%s/.servers\" is gone, or older than it was.  Locks that were released may not be free yet: the server looks through all directories for their znodes, and deletes them.",
					   zkl_root),
			 errhint("If nobody has deleted that node, check whether all ZooKeeper servers run version 3.9.4 or later, and whether one of them has lost its disk.")));
}

void
zkl_diagnosis_warn_of_other_holder(const char *path, int length, const char *other)
{
	ereport(WARNING,
			(errmsg("distributed lock \"%.*s\" of server \"%s\" may have another holder on %s%s%s",
					length, path, zkl_settings_server_name(),
					other[0] != '\0' ? "server \"" : "another client", other,
					other[0] != '\0' ? "\"" : ""),
			 errdetail("ZooKeeper shows its request ahead of the one that was granted here.  So ZooKeeper has lost writes that it had acknowledged: the end of a session, or a release."),
			 errhint("The lock belongs to this server, whose fencing token is higher.  Check the later changes of the other holder, and whether all ZooKeeper servers run version 3.9.4 or later.")));
}

void
zkl_diagnosis_check_timeout(uint32 timeout_ms, uint32 generation)
{
	static uint32 warned = 0;	/* the generation that was warned about */

	if (warned == generation ||
		timeout_ms >= (uint64) zkl_tick_time * ZKL_LEAST_TICKS)
		return;
	warned = generation;
	ereport(WARNING,
			(errmsg("the ZooKeeper session timeout of %u ms is less than %d ticks",
					timeout_ms, ZKL_LEAST_TICKS),
			 errdetail("\"zklock.tick_time\" is %d ms.  The lease then leaves little room for pauses of the ZooKeeper servers, and none for observers behind a follower.",
					   zkl_tick_time),
			 errhint("Increase \"zklock.session_timeout\" on all servers, or set \"zklock.tick_time\" to the tickTime in the ensemble's zoo.cfg.")));
}

/* Whether this was not told before, by this worker */
static bool
is_news(const char *text)
{
	static uint32 told[MAX_TOLD];
	static int	ntold = 0;
	uint32		hash = hash_bytes((const unsigned char *) text,
								  (int) strlen(text));
	int			i;

	for (i = 0; i < ntold; i++)
	{
		if (told[i] == hash)
			return false;
	}
	if (ntold == MAX_TOLD)
		return false;
	told[ntold++] = hash;
	return true;
}

/* Releases from 3.9.4 on are not known to lose writes. */
static bool
loses_writes(const char *version)
{
	int			major,
				minor,
				patch;

	if (sscanf(version, "%d.%d.%d", &major, &minor, &patch) != 3)
		return false;
	return major < 3 || (major == 3 && (minor < 9 || (minor == 9 && patch < 4)));
}

void
zkl_diagnosis_check_version(const char *version, const char *host)
{
	if (!loses_writes(version) || !is_news(psprintf("%s %s", host, version)))
		return;
	ereport(LOG,
			(errmsg("ZooKeeper server \"%s\" has version %s", host, version),
			 errdetail("Releases before 3.9.4 lose writes that they have acknowledged if members of the ensemble end and start in quick succession.  Then a lock can have two holders."),
			 errhint("Upgrade to ZooKeeper 3.9.4 or later, or rely on fencing tokens.")));
}
