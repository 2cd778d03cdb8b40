/*
 * census.c
 *	  Finds all contenders for locks of certain names, on any server or client.
 *
 * Owns nothing.  Run by backends.  Takes no locks; waits as wait.c does.
 *
 * Must not know what the answer is for.
 *
 * The znodes of leaders, permits and members of barriers do not depend on the
 * dialects, and do not count.  The guard of a semaphore does, because it looks
 * like a mutex.
 */
#include "postgres.h"

#include "backend/errand.h"
#include "backend/refusal.h"
#include "backend/text.h"
#include "miscadmin.h"
#include "recipes/census.h"
#include "znode/dialect.h"

#define MOST_FOUND		10

typedef struct Census
{
	const char *a;				/* the lists */
	const char *b;
	StringInfo	who;
	int			found;
} Census;

static ZklTarget
directory_target(const char *name)
{
	ZklTarget	target = {name, zkl_text_to_display(name, (int) strlen(name)), ZKL_DIALECT_CURATOR_RW};

	if (strcmp(name, "/") == 0)
		target.path = "";		/* the root itself */
	return target;
}

static bool
is_contender(const char *child)
{
	int			dialect;

	for (dialect = 0; dialect < ZKL_LOCK_DIALECTS; dialect++)
	{
		ZklLockMode mode;
		ZklSeq		seq;
		bool		has_uuid;
		ZklUuid		uuid;

		if (zkl_znode_parse((ZklDialect) dialect, child, &mode, &seq,
							&has_uuid, &uuid))
			return true;
	}
	return false;
}

/* False: it is gone by now. */
static bool
note_contender(Census *census, const char *name, const char *child)
{
	ZklTarget	target = directory_target(name);
	ZklErrand  *errand = zkl_errand_make(ZKL_ERRAND_GET, &target, child,
										 ZKL_MAX_NODE_DATA);
	int32		rc = zkl_errand_run(errand, &target);
	ZklNodeData data = {0};

	if (rc != ZKL_RC_OK && rc != ZKL_RC_NONODE && rc != ZKL_RC_NOAUTH)
		zkl_refusal_raise_failed(target.name, ZKL_ERROR_ZOOKEEPER, rc);
	if (rc != ZKL_RC_NONODE)
	{
		census->found++;
		if (census->who->len > 0)
			appendStringInfoChar(census->who, '\n');
		if (rc == ZKL_RC_OK && errand->answer.size <= errand->room &&
			zkl_node_data_parse(errand->answer.bytes, errand->answer.size, &data))
			appendStringInfo(census->who, "Server \"%s\", process %d: lock \"%s\".",
							 zkl_text_to_display(data.server, (int) strlen(data.server)),
							 data.pid, target.name);
		else
			appendStringInfo(census->who, "Another client, session 0x%016llx: lock \"%s\", znode \"%s\".",
							 (unsigned long long) errand->answer.stat.session_id, target.name,
							 zkl_text_to_display(child, (int) strlen(child)));
	}
	zkl_errand_free(errand);
	return rc != ZKL_RC_NONODE;
}

static void visit(Census *census, const char *name);

/* False: contenders have gone since the directory was listed. */
static bool
visit_once(Census *census, const char *name)
{
	ZklTarget	directory = directory_target(name);
	ZklErrand  *children = zkl_errand_list(&directory, true);
	const char *child = NULL;
	bool		all_there = true;

	while (census->found < MOST_FOUND &&
		   (child = zkl_errand_next(children, child)) != NULL)
	{
		char	   *below = psprintf("%s/%s", strcmp(name, "/") == 0 ? "" : name, child);

		CHECK_FOR_INTERRUPTS();
		if (is_contender(child))
			all_there &= note_contender(census, name, child);
		else if (child[0] != '.' && !zkl_znode_is_like(child, strlen(child)) &&
				 !zkl_dialect_has_entry(census->a, below) &&
				 !zkl_dialect_has_entry(census->b, below))
			visit(census, below);
		pfree(below);
	}
	zkl_errand_free(children);
	return all_there;
}

/*
 * A contender that has gone may have left another one: a session that gives up its
 * exclusive lock, and still holds it shared, replaces its znode in one step, and
 * one that goes from shared to exclusive has two for a while.  While the dialects
 * are being changed, no other contenders of our servers come.  So the directory is
 * looked at again until all that it lists is there, or some contender is found.
 */
static void
visit(Census *census, const char *name)
{
	int			found = census->found;

	check_stack_depth();
	while (!visit_once(census, name) && census->found == found)
		CHECK_FOR_INTERRUPTS();
}

int
zkl_census_take(const char *a, const char *b, StringInfo who)
{
	Census		census = {a, b, who, 0};
	char		path[ZKL_MAX_NAME + 1] = "";

	while (census.found < MOST_FOUND && zkl_dialect_next_change(a, b, path))
		visit(&census, path);
	return census.found;
}
