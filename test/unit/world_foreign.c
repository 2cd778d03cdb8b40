/*
 * world_foreign.c
 *	  Other clients' requests for locks: Curator's, and other zklock servers'.
 *
 * Owns nothing; acts on the model's tree.  Knows names of znodes only.
 */
#include "unit.h"
#include "world.h"

#define FOREIGN_SESSION 77

static void
foreign_create(World *w, const char *name, ZklLockMode mode,
			   const ZklUuid *uuid, const char *data, char *created)
{
	char		prefix[ZKL_MAX_ZNODE_NAME + 1];
	char		path[ZKL_MAX_PATH + 1];

	snprintf(path, sizeof(path), WORLD_ROOT "%s", name);
	model_mkdir(&w->zk, path);
	zkl_znode_prefix(w->dialect, uuid, mode, prefix);
	snprintf(path, sizeof(path), WORLD_ROOT "%s/%s", name, prefix);
	CHECK_INT(model_create(&w->zk, path, true, FOREIGN_SESSION, data, created),
			  ZKL_RC_OK);
}

void
foreign_enter(World *w, const char *name, ZklLockMode mode, char *created)
{
	ZklUuid		uuid = zkl_uuid_make((int64_t) unit_random(), 0, unit_random());

	uuid.bytes[6] = (uint8_t) (0x40 | (uuid.bytes[6] & 15));
	foreign_create(w, name, mode, &uuid, "10.0.0.1", created);
}

void
foreign_zklock(World *w, const char *name, ZklLockMode mode, const char *data,
			   char *created)
{
	ZklUuid		uuid = zkl_uuid_make((int64_t) unit_random(), 0, unit_random());

	foreign_create(w, name, mode, &uuid, data, created);
}

void
foreign_downgrade(World *w, const char *writer, char *reader)
{
	strcpy(reader, writer);
	memcpy(strstr(reader, "__WRIT__"), "__READ__", 8);
	CHECK_INT(model_create(&w->zk, reader, false, FOREIGN_SESSION, "10.0.0.1",
						   NULL), ZKL_RC_OK);
	CHECK_INT(model_delete(&w->zk, writer), ZKL_RC_OK);
}

void
foreign_restore(World *w, const char *path)
{
	CHECK_INT(model_create(&w->zk, path, false, FOREIGN_SESSION, "10.0.0.1", NULL),
			  ZKL_RC_OK);
}

void
foreign_leave_all(World *w, const char *name)
{
	char		path[ZKL_MAX_PATH + 1];
	const Path *node;

	snprintf(path, sizeof(path), WORLD_ROOT "%s", name);
	for (node = tree_children(path); node != NULL;)
	{
		const char *text = node->text;
		bool		foreign =
		node->node[HEAD].stat.ephemeral_owner != w->worker.session.id;

		node = node->sibling;
		if (foreign)
			(void) model_delete(&w->zk, text);
	}
}
