/*
 * vandals.c
 *	  People at the ensemble with other tools: vandals and strangers.
 *
 * Owns the strangers' nodes.  Must not know what zklock servers make of it.
 */
#include <stdio.h>
#include <string.h>

#include "agenda.h"
#include "faults.h"
#include "foreign.h"
#include "sight.h"

#define MAX_STRANGERS	8

static struct
{
	char		strangers[MAX_STRANGERS][64];
	int			nstrangers;		/* ever */
	bool		deleted_heartbeat;
	bool		asks;			/* who holds, or waits */
	const Path *newcomer;		/* is asked at once; NULL: none */
	Time		ask_at;
}			vandals;

void
vandals_begin(void)
{
	memset(&vandals, 0, sizeof(vandals));
	operators_begin();
}

/* ---- vandals ---- */

/* A node of a zklock server: a heartbeat, or a contender */
static Path *
some_own_node(bool heartbeat)
{
	Path	   *path;
	Path	   *found = NULL;
	int			n = 0;

	for (path = tree_newest(); path != NULL; path = path->all)
	{
		const Node *node = &path->node[HEAD];
		const Session *session = session_find(node->stat.ephemeral_owner);

		if (node->exists && session != NULL && session->host >= 0 &&
			strcmp(path->parent->name, ".waits") != 0 &&
			heartbeat == (strcmp(path->parent->name, ".servers") == 0) &&
			once_in(++n))
			found = path;
	}
	return found;
}

static void
vandalize(OpKind kind, const Path *path, const char *data)
{
	Op			op = {.kind = kind,.version = -1,.data = data,
	.length = strlen(data)};

	if (path == NULL)
		return;
	op.path = path->text;
	trace(kind == OP_DELETE ? "vandal: deletes @" : "vandal: sets @", 0, 0, 0,
		  0, path->text);
	(void) ensemble_write(&op, true);
}

void
do_delete_own(void)
{
	vandalize(OP_DELETE, some_own_node(false), "");
}

/*
 * As Curator asks a holder to give its lock up, or one that waits; or as
 * zk_request_release() does, which adds the question to the data.
 */
static void
put_question(const Path *path)
{
	char		data[ZKL_MAX_NODE_DATA + 1] = ZKL_REVOKE_MESSAGE;

	if (once_in(8))
		strcpy(data, "{}");		/* that is none */
	else if (once_in(2))
	{
		const Node *node = &path->node[HEAD];

		data[zkl_node_data_revoke(node->data, node->length, "v", data)] = '\0';
	}
	vandalize(OP_SET, path, data);
}

/* The node of a lock that is cached, or NULL */
static const Path *
some_cached_node(void)
{
	const Host *h = some_host();
	Path	   *path;
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
	{
		const Slot *s = &h->slots[i];

		for (path = s->state == SLOT_CACHED ? lock_path(s->lock)->children : NULL;
			 path != NULL; path = path->sibling)
			if (path->node[HEAD].exists && same_uuid(s, &contender_of(path)->uuid))
				return path;
	}
	return NULL;
}

void
do_set_own(void)
{
	const Path *path = once_in(2) ? some_cached_node() : NULL;

	vandals.asks = true;
	if (path == NULL)
		path = some_own_node(false);
	if (path != NULL)
		put_question(path);
}

/* The znodes of clients are ephemeral; a copy is not. */
static bool
is_copy(Path *path)
{
	return path->node[HEAD].exists && path->node[HEAD].stat.ephemeral_owner == 0 &&
		contender_of(path)->counts;
}

/* Who comes is mostly asked before its server has read anything. */
void
vandals_see(const Entry *entry)
{
	size_t		i;

	for (i = 0; i < entry->tx.neffects && vandals.asks && !base.calm; i++)
	{
		const Effect *effect = &entry->tx.effects[i];

		if (effect->kind != OP_CREATE || vandals.newcomer != NULL ||
			!zkl_node_data_is_cached(effect->data, effect->length))
			continue;
		vandals.newcomer = effect->path;
		vandals.ask_at = base.now + below(4 * ens.net + ens.decide);
		agenda_changed(AGENDA_CHAOS);
	}
}

Time
vandals_due(void)
{
	return vandals.newcomer != NULL ? vandals.ask_at : NEVER;
}

void
vandals_step(void)
{
	const Path *path = vandals.newcomer;

	vandals.newcomer = NULL;
	if (path->node[HEAD].exists)
		put_question(path);
}

void
do_delete_heartbeat(void)
{
	vandals.deleted_heartbeat = true;
	vandalize(OP_DELETE, some_own_node(true), "");
}

bool
vandals_deleted_heartbeat(void)
{
	return vandals.deleted_heartbeat;
}

void
do_set_heartbeat(void)
{
	vandalize(OP_SET, some_own_node(true), "x");
}

void
do_set_directory(void)
{
	vandalize(OP_SET, lock_path((int) below(hosts.nlocks)), "x");
}

static void
create_directory(int lock)
{
	Op			op = {.kind = OP_CREATE,.data = "",.container = true};
	Path	   *parents[8];
	Path	   *path;
	int			n = 0;

	for (path = lock_path(lock); path->parent != NULL; path = path->parent)
		parents[n++] = path;
	while (n > 0)
	{
		op.path = parents[--n]->text;
		(void) ensemble_write(&op, true);
	}
}

/* Whoever stands in it */
static void
empty_directory(int lock)
{
	Path	   *path = lock_path(lock)->children;

	for (; path != NULL; path = path->sibling)
	{
		ZklLockMode mode;
		ZklSeq		seq;
		bool		has_uuid;
		ZklUuid		uuid;

		if (!path->node[HEAD].exists)
			continue;
		if (zkl_znode_parse(lock_dialect(lock), path->name, &mode, &seq,
							&has_uuid, &uuid) && has_uuid &&
			!zkl_uuid_is_zklock(&uuid))
			operators_note_broken(&uuid);
		vandalize(OP_DELETE, path, "");
	}
}

/* Only an empty one can be deleted. */
void
do_recreate_directory(void)
{
	int			lock = (int) below(hosts.nlocks);
	Path	   *path = lock_path(lock);
	int			children;

	if (ens.leader < 0)
		return;
	if (once_in(4))
		empty_directory(lock);
	vandalize(OP_DELETE, path, "");
	if (path->node[HEAD].exists || once_in(3))
		return;
	create_directory(lock);

	/* with a past of its own, so that numbers come again */
	for (children = (int) below(4); children > 0; children--)
	{
		Op			op = {.kind = OP_CREATE,.data = "",.version = -1};
		char		name[128];

		snprintf(name, sizeof(name), "%s/x%" PRIu64, path->text, random64());
		op.path = take_string(name);
		(void) ensemble_write(&op, true);
		op.kind = OP_DELETE;
		(void) ensemble_write(&op, true);
	}
}

void
do_kill_session(void)
{
	Session    *session = session_find(some_host()->worker.session.id);

	if (session == NULL || !session->alive)
		return;
	trace("vandal: closes session #", session->id, 0, 0, 0, NULL);
	ensemble_end_session(session, true);
}

/* The counter has come far: it never goes back. */
void
do_jump(void)
{
	Path	   *path = lock_path((int) below(hosts.nlocks));
	int32_t		counter = (int32_t) (ZKL_SEQ_LIMIT - below(4));
	int			copy;

	if (!path->node[HEAD].exists || path->node[HEAD].counter >= counter)
		return;
	for (copy = HEAD; copy < COPY(MAX_SERVERS); copy++)
		if (!path->node[copy].exists ||
			path->node[copy].stat.czxid != path->node[HEAD].stat.czxid)
			return;
	trace("vandal: the counter of @ jumps to #", counter, 0, 0, 0,
		  path->text);
	for (copy = HEAD; copy < COPY(MAX_SERVERS); copy++)
		path->node[copy].counter = counter;
}

/*
 * Copies the name of a server's node into the directory of another lock, and deletes the
 * previous copies there.
 */
void
do_copy_name(void)
{
	Path	   *path = some_own_node(false);
	int			lock = (int) below(hosts.nlocks);
	Op			op = {.kind = OP_CREATE,.data = "",.version = -1,.sequential = true};
	char		name[256];
	Path	   *copy;

	if (path == NULL || path->parent == lock_path(lock) || ens.leader < 0 ||
		lock_dialect(contender_of(path)->lock) != lock_dialect(lock))
		return;
	for (copy = lock_path(lock)->children; copy != NULL; copy = copy->sibling)
		if (is_copy(copy))
			vandalize(OP_DELETE, copy, "");
	snprintf(name, sizeof(name), "%s/%.*s", lock_path(lock)->text,
			 (int) strlen(path->name) - 10, path->name);
	trace("vandal: copies @", 0, 0, 0, 0, path->text);
	op.path = take_string(name);
	(void) ensemble_write(&op, true);
}

/* ---- strangers ---- */

void
do_stranger(void)
{
	char	   *name = vandals.strangers[vandals.nstrangers % MAX_STRANGERS];
	Op			op = {.kind = OP_CREATE,.data = "",.version = -1};

	if (ens.leader < 0)
		return;
	if (vandals.nstrangers++ >= MAX_STRANGERS)
	{
		op.kind = OP_DELETE;
		op.path = name;
		(void) ensemble_write(&op, true);
	}
	snprintf(name, sizeof(vandals.strangers[0]), "%s/stranger%d",
			 lock_path((int) below(hosts.nlocks))->text, vandals.nstrangers);
	op.kind = OP_CREATE;
	op.path = take_string(name);
	(void) ensemble_write(&op, true);
}

/* In seeds with such questions everybody is asked once more. */
static void
ask_all(void)
{
	Path	   *path;

	for (path = tree_newest(); path != NULL; path = path->all)
	{
		const Session *session = session_find(path->node[HEAD].stat.ephemeral_owner);

		if (path->node[HEAD].exists && session != NULL && session->host >= 0 &&
			strcmp(path->parent->name, ".waits") != 0 &&
			strcmp(path->parent->name, ".servers") != 0)
			put_question(path);
	}
}

void
vandals_calm(void)
{
	Op			op = {.kind = OP_DELETE,.version = -1};
	Path	   *path;
	Path	   *older;

	vandals.newcomer = NULL;
	if (vandals.asks)
		ask_all();

	/* What was deleted long ago may be back. */
	for (path = tree_newest(); path != NULL; path = older)
	{
		older = path->all;
		if (!path->node[HEAD].exists ||
			(path->name[0] != 'x' && strncmp(path->name, "stranger", 8) != 0 &&
			 !is_copy(path)))
			continue;
		op.path = path->text;
		(void) ensemble_write(&op, true);
	}
}
