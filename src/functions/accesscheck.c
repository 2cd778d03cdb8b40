/*
 * accesscheck.c
 *	  The check of zk_healthcheck() that is about access control lists: which servers have
 *	  other credentials than this one, and which znode refuses it.
 *
 * Owns nothing.  Run by backends.  Takes no locks.
 *
 * Must not know credentials: the access control list of this server's own entry in the
 * fleet tells who it is, as ZooKeeper has put its identities there.  Each server makes the
 * directories of locks with the same ones.  So two servers can use each other's if there is
 * an identity that both entries let in; that "everybody" is one of them shows that a
 * server has none of its own.
 *
 * A directory that was made with other credentials stays behind when these are corrected.
 * ZooKeeper does not tell which of many directories those are; so the worker remembers
 * the last lock that was refused, and whether it still is, is looked at here.
 */
#include "postgres.h"

#include "backend/target.h"
#include "functions/accesscheck.h"
#include "functions/checkrow.h"
#include "lib/stringinfo.h"
#include "shared/settings.h"

#define USE_RIGHTS	13			/* to read, create and delete */
#define CREATE_RIGHT	4

#define ADVICE		"  Give all servers the same \"zklock.auth_file\"."

typedef struct
{
	const char *znode;			/* its name in the directory of the fleet */
	const char *name;			/* to be shown */
	bool		is_own;
} Server;

struct ZklAccessCheck
{
	List	   *servers;		/* whose entries can be read */
	List	   *unreadable;		/* sessions of others, as text */
	List	   *own;			/* identities that may use what this server
								 * makes; NIL: not known */
	List	   *different;		/* names of servers that may not, or whose
								 * znodes this one may not use */
	const char *refusing;		/* a znode; or NULL */
	MemoryContext context;
};

typedef struct
{
	ZklAccessCheck *check;
	const char *const *names;
	int			lowest;			/* the last name that is there; -1: none */
	int			permissions;	/* of this server, there */
} Reading;

ZklAccessCheck *
zkl_accesscheck_make(void)
{
	ZklAccessCheck *check = palloc0(sizeof(ZklAccessCheck));

	check->context = CurrentMemoryContext;
	return check;
}

void
zkl_accesscheck_note(ZklAccessCheck *check, const ZklFleetServer *server, bool is_own)
{
	char		znode[ZKL_MAX_FLEET_ZNODE + 1];
	Server	   *one;

	if (!server->readable)
	{
		check->unreadable = lappend(check->unreadable,
									psprintf("0x%llx",
											 (unsigned long long) server->session_id));
		return;
	}
	zkl_fleet_name(server->system, server->session_id, znode);
	one = palloc0(sizeof(Server));
	one->znode = pstrdup(znode);
	one->name = zkl_text_to_display(server->entry.server,
									(int) strlen(server->entry.server));
	one->is_own = is_own;
	check->servers = is_own ? lcons(one, check->servers) :
		lappend(check->servers, one);
}

/* ---- access control lists ---- */

/* Those that may use the znode; each right is permissions:scheme:id. */
static List *
find_identities(const ZklErrandAnswer *answer)
{
	List	   *found = NIL;
	const char *right = answer->bytes;

	for (; right < answer->bytes + answer->size; right += strlen(right) + 1)
	{
		const char *identity = strchr(right, ':');

		if (identity != NULL && (atoi(right) & USE_RIGHTS) == USE_RIGHTS)
			found = lappend(found, pstrdup(identity + 1));
	}
	return found;
}

static bool
have_common(List *a, List *b)
{
	ListCell   *x,
			   *y;

	foreach(x, a)
	{
		foreach(y, b)
		{
			if (strcmp(lfirst(x), lfirst(y)) == 0)
				return true;
		}
	}
	return false;
}

/* The own entry comes first. */
static void
take_rights_of_server(void *arg, int number, const ZklErrandAnswer *answer)
{
	ZklAccessCheck *check = arg;
	const Server *server = list_nth(check->servers, number);
	MemoryContext old = MemoryContextSwitchTo(check->context);

	if (answer->rc == ZKL_RC_OK && server->is_own)
		check->own = find_identities(answer);
	else if (answer->rc == ZKL_RC_OK && check->own != NIL &&
			 !have_common(check->own, find_identities(answer)))
		check->different = lappend(check->different, unconstify(char *, server->name));
	MemoryContextSwitchTo(old);
}

static void
read_rights_of_fleet(ZklAccessCheck *check)
{
	static const ZklTarget fleet = {ZKL_FLEET_DIRECTORY, ZKL_FLEET_DIRECTORY, ZKL_DIALECT_CURATOR_RW};
	const char **names = palloc((list_length(check->servers) + 1) * sizeof(char *));
	ListCell   *cell;
	int			n = 0;

	foreach(cell, check->servers)
		names[n++] = ((const Server *) lfirst(cell))->znode;
	zkl_errand_read_each(ZKL_ERRAND_RIGHTS, &fleet, names, n, take_rights_of_server, check);
}

/* What this server may do, by all rights that are its own or everybody's */
static int
find_permissions(const ZklAccessCheck *check, const ZklErrandAnswer *answer)
{
	const char *right = answer->bytes;
	int			permissions = 0;

	for (; right < answer->bytes + answer->size; right += strlen(right) + 1)
	{
		const char *identity = strchr(right, ':');

		if (identity != NULL &&
			(strcmp(identity + 1, "world:anyone") == 0 ||
			 have_common(list_make1(unconstify(char *, identity + 1)), check->own)))
			permissions |= atoi(right);
	}
	return permissions;
}

static void
note_refusal(const Reading *reading, int number)
{
	ZklAccessCheck *check = reading->check;
	const char *name = reading->names[number];

	check->refusing = MemoryContextStrdup(check->context,
										  psprintf("%s%s%s", zkl_root, name ? "/" : "",
												   name ? name : ""));
}

/* From the root downwards; the first one that refuses counts. */
static void
take_rights_of_directory(void *arg, int number, const ZklErrandAnswer *answer)
{
	Reading    *reading = arg;

	if (answer->rc == ZKL_RC_NOAUTH && reading->check->refusing == NULL)
		note_refusal(reading, number);
	if (answer->rc != ZKL_RC_OK)
		return;
	reading->lowest = number;
	reading->permissions = find_permissions(reading->check, answer);
}

/* The directory of a lock is missing or refuses, or one above it does. */
static void
read_rights_above(ZklAccessCheck *check, const char *refused)
{
	static const ZklTarget root = {"", "", ZKL_DIALECT_CURATOR_RW};
	const char *names[ZKL_MAX_NAME];
	Reading		reading = {check, names, -1, 0};
	const char *end = refused;
	int			needed;
	int			n = 0;

	names[n++] = NULL;
	while (*end != '\0')
	{
		end += 1 + strcspn(end + 1, "/");
		names[n++] = pnstrdup(refused + 1, end - refused - 1);
	}
	zkl_errand_read_each(ZKL_ERRAND_RIGHTS, &root, names, n, take_rights_of_directory, &reading);

	/*
	 * In the lock's directory there are znodes; the one above makes that
	 * directory.
	 */
	needed = reading.lowest == n - 1 ? USE_RIGHTS : CREATE_RIGHT;
	if (check->refusing == NULL && reading.lowest >= 0 &&
		(reading.permissions & needed) != needed)
		note_refusal(&reading, reading.lowest);
}

void
zkl_accesscheck_read(ZklAccessCheck *check, const char *refused)
{
	read_rights_of_fleet(check);
	if (refused[0] != '\0' && check->own != NIL)
		read_rights_above(check, refused);
}

/* ---- the check ---- */

static const char *
describe_own(uint32 access)
{
	if (access == ZKL_ACCESS_READ)
		return "has credentials";
	if (access == ZKL_ACCESS_PRIVATE)
		return "has credentials, and its znodes can be read only with them";
	return "has no credentials";
}

const char *
zkl_accesscheck_judge(const ZklAccessCheck *check, uint32 access, const char *refusal,
					  bool *ok)
{
	int			unreadable = list_length(check->unreadable);
	StringInfoData buf;

	*ok = refusal == NULL && unreadable == 0 && check->different == NIL &&
		check->refusing == NULL;
	initStringInfo(&buf);
	appendStringInfo(&buf, "This server %s.", describe_own(access));
	if (refusal != NULL)
	{
		appendStringInfo(&buf, "  It may not read the directory of the fleet: %s" ADVICE,
						 refusal);
		return buf.data;
	}
	appendStringInfo(&buf, "  Servers whose znodes it cannot read: %d%s%s.", unreadable,
					 unreadable > 0 ? ", with the sessions " : "",
					 zkl_checkrow_names(check->unreadable));
	if (check->different != NIL)
		appendStringInfo(&buf, "  Servers with other credentials, or without: %s.",
						 zkl_checkrow_names(check->different));
	if (unreadable > 0 || check->different != NIL)
		appendStringInfoString(&buf, ADVICE);
	if (check->refusing != NULL)
		appendStringInfo(&buf, "  Znode \"%s\" does not let this server in, and so refuses locks: change its access control list with setAcl, or delete it if it is the directory of a lock.",
						 zkl_text_to_display(check->refusing,
											 (int) strlen(check->refusing)));
	return buf.data;
}
