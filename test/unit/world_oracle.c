/*
 * world_oracle.c
 *	  What must never be seen, whatever happens.
 *
 * Owns nothing: it looks at the host's records and at ZooKeeper's whole tree,
 * which the core cannot see.  Must not know how the core decides.
 */
#include "observe/inspect.h"
#include "unit.h"
#include "world.h"
#include "znode/znode.h"

bool
world_holds(const World *w, uint32_t request)
{
	return w->requests[request].state == SLOT_GRANTED;
}

bool
world_waits(const World *w, uint32_t request)
{
	return w->requests[request].state == SLOT_WAITING;
}

bool
world_keeps(const World *w, uint32_t request)
{
	const Slot *r = &w->requests[request];

	return r->state == SLOT_RELEASED && r->token != 0 &&
		r->keep_until > w->worker.now;
}

uint32_t
world_nodes(const World *w, const char *name)
{
	char		path[ZKL_MAX_PATH + 1];
	const Path *node;
	uint32_t	n = 0;

	snprintf(path, sizeof(path), WORLD_ROOT "%s", name);
	for (node = tree_children(path); node != NULL; node = node->sibling)
		n += node->node[HEAD].stat.ephemeral_owner == w->worker.session.id;
	return n;
}

static const Slot *
find_uuid(const World *w, const ZklUuid *uuid)
{
	uint32_t	i;

	for (i = 0; i < w->config.max_requests; i++)
	{
		const Slot *r = &w->requests[i];

		if (r->state != SLOT_FREE && r->record.sent &&
			memcmp(&r->record.uuid, uuid, sizeof(*uuid)) == 0)
			return r;
	}
	return NULL;
}

/* A hold of r's owner that has a node: r itself or another, or NULL */
static const Slot *
find_cover(const World *w, const Slot *r)
{
	uint32_t	i;

	for (i = 0; i < w->config.max_requests; i++)
	{
		const Slot *s = &w->requests[i];

		if (s != r && world_holds(w, i) && s->owner == r->owner &&
			s->record.sent && s->token == r->token &&
			strcmp(s->name, r->name) == 0)
			return s;
	}
	return NULL;
}

/* How many may hold a name beside each other */
static uint32_t
limit(const World *w)
{
	return w->max > 0 ? w->max : 1;
}

/* Two requests of this server; to a semaphore each counts for itself. */
static bool
conflict(const World *w, const Slot *r, const Slot *s)
{
	bool		same_owner = s->owner == r->owner &&
	s->record.disowned == r->record.disowned;

	return s != r && s->name != NULL && strcmp(s->name, r->name) == 0 &&
		(w->max > 0 || (!same_owner && zkl_mode_conflicts(s->mode, r->mode)));
}

/* Returns how many local holds conflict, whatever is in the tree. */
static uint32_t
check_local_holds(const World *w, const Slot *r)
{
	uint32_t	n = 0;
	uint32_t	i;

	for (i = 0; i < w->config.max_requests; i++)
		if ((world_holds(w, i) || world_keeps(w, i)) &&
			conflict(w, r, &w->requests[i]))
			CHECK_MSG(++n < limit(w), "granted beside local holders of %s",
					  r->name);
	return n;
}

/*
 * Fewer than may hold it are ahead: so many of our own server, the contenders of
 * others, and all else that was in a semaphore's directory before.
 */
static void
check_contenders_ahead(const World *w, const Slot *r, uint32_t ahead)
{
	char		path[ZKL_MAX_PATH + 1];
	const Path *node;
	bool		found = false;

	snprintf(path, sizeof(path), WORLD_ROOT "%s", r->name);
	for (node = tree_children(path); node != NULL; node = node->sibling)
	{
		const ZklStat *stat = &node->node[HEAD].stat;
		ZklLockMode mode = r->mode;
		ZklSeq		seq = 0;
		bool		has_uuid = false;
		ZklUuid		uuid;

		if (!zkl_znode_parse(w->dialect, node->name, &mode, &seq,
							 &has_uuid, &uuid) &&
			(w->max == 0 || stat->czxid > r->token / 4096))
			continue;
		if (has_uuid && memcmp(&uuid, &r->record.uuid, sizeof(uuid)) == 0)
		{
			found = true;
			CHECK_INT(seq, r->record.seq);
			CHECK_INT(stat->czxid, r->token / 4096);
			CHECK_INT(stat->ephemeral_owner, w->worker.session.id);
			CHECK_INT(r->token % 4096, r->record.index);
		}
		else if (stat->ephemeral_owner != w->worker.session.id &&
				 !(has_uuid && zkl_uuid_equal(&uuid, &w->departed)) &&
				 seq <= r->record.seq && zkl_mode_conflicts(mode, r->mode))
			CHECK_MSG(++ahead < limit(w),
					  "granted %s number %d behind %s", r->name,
					  (int) r->record.seq, node->text);
	}
	CHECK_MSG(found, "granted %s without a node", r->name);
}

/*
 * Tokens of conflicting grants of a lock grow.  Leases that exist at the same
 * time have different tokens, greater than those of leases that have ended.
 */
static void
check_token(const World *w, const Slot *r)
{
	uint32_t	i;

	for (i = 0; i < w->config.max_requests; i++)
	{
		const Slot *s = &w->requests[i];

		if (s->token != 0 && conflict(w, r, s))
			CHECK(w->max > 0 && world_holds(w, i) ? s->token != r->token :
				  s->token < r->token);
	}
}

/* Whether it leans on a hold that stays for it, and shows its node */
static bool
shows_anothers(const World *w, const Slot *r)
{
	uint32_t	i;

	for (i = 0; i < w->config.max_requests; i++)
	{
		const Slot *s = &w->requests[i];

		if (s->state != SLOT_FREE && s->record.stays && s->owner == r->owner &&
			s->token == r->token && strcmp(s->name, r->name) == 0)
			return true;
	}
	return false;
}

void
world_check_grant(const World *w, const Slot *r)
{
	uint32_t	ahead;

	check_token(w, r);
	if (w->tampered)
		return;
	ahead = check_local_holds(w, r);
	if (!r->record.sent || shows_anothers(w, r))
	{
		CHECK_MSG(find_cover(w, r) != NULL, "granted %s with no cover",
				  r->name);
		return;
	}
	CHECK(w->was_ready);
	CHECK(zkl_manager_lease(w->worker.m) > w->worker.now);
	check_contenders_ahead(w, r, ahead);
}

/* A writer is marked, made a reader of the same number, and deleted. */
static void
check_downgrade(const ZklMultiOp *op)
{
	const char *writer = strrchr(op->path, '/') + 1;
	ZklLockMode mode;
	ZklSeq		seq,
				made_seq;
	bool		has_uuid;
	ZklUuid		uuid,
				made;

	CHECK(zkl_node_data_downgrading(op->data, op->data_length));
	CHECK(zkl_znode_parse(ZKL_DIALECT_CURATOR_RW, writer, &mode, &seq,
						  &has_uuid, &uuid) && mode == ZKL_EXCLUSIVE);
	CHECK_INT(op[1].kind, ZKL_MULTI_CREATE_EPHEMERAL);
	CHECK(zkl_znode_parse(ZKL_DIALECT_CURATOR_RW, strrchr(op[1].path, '/') + 1,
						  &mode, &made_seq, &has_uuid, &made));
	CHECK(mode == ZKL_SHARED && made_seq == seq &&
		  memcmp(&uuid, &made, sizeof(uuid)) == 0);
	CHECK_INT(op[2].kind, ZKL_MULTI_DELETE);
	CHECK_STR(op[2].path, op->path);
}

void
world_check_recorded(const World *w, const ZklAction *action)
{
	size_t		i;

	for (i = 0; i < action->nmulti; i++)
	{
		const ZklMultiOp *op = &action->multi[i];
		const char *name = strrchr(op->path, '/') + 1;
		const Slot *r;
		char		prefix[ZKL_MAX_ZNODE_NAME + 1];
		char		chain[32];
		ZklUuid		uuid;

		snprintf(chain, sizeof(chain), "%016" PRIx64 ".%u",
				 (uint64_t) w->worker.session.id, world_chain(w));
		if (op->kind == ZKL_MULTI_SET && i > 0)
		{
			check_downgrade(op);
			i += 2;
			continue;
		}
		if (strstr(op->path, ZKL_WAITS_DIRECTORY "/") != NULL)
			continue;

		/* A mark is taken away, if nothing else was written meanwhile. */
		if (op->kind == ZKL_MULTI_SET && action->nmulti == 1 &&
			strstr(op->path, "/.servers/") == NULL)
		{
			CHECK(op->version >= 0 &&
				  !zkl_node_data_is_cached(op->data, op->data_length));
			continue;
		}
		if (op->kind == ZKL_MULTI_CREATE_EPHEMERAL || op->kind == ZKL_MULTI_SET)
			CHECK_STR(name, chain);
		if (op->kind != ZKL_MULTI_CREATE)
			continue;
		memcpy(prefix, name + 3, ZKL_UUID_TEXT);
		prefix[ZKL_UUID_TEXT] = '\0';
		if (!CHECK(zkl_uuid_parse(prefix, &uuid)))
			continue;
		r = find_uuid(w, &uuid);
		if (!CHECK_MSG(r != NULL, "%s is not recorded", name))
			continue;
		zkl_znode_prefix(w->dialect, &uuid, r->record.mode, prefix);
		CHECK_STR(name, prefix);
		CHECK_INT(r->record.index, (int64_t) i);
	}
}

void
world_check(const World *w)
{
	const Path *node;
	const char *broken = zkl_check_all(w->worker.m);
	uint32_t	live = 0;
	uint32_t	i;

	CHECK_MSG(broken == NULL, "%s", broken ? broken : "");
	for (i = 0; i < w->config.max_requests; i++)
	{
		const Slot *s = &w->requests[i];
		bool		stays = s->state != SLOT_FREE && s->record.stays;

		live += world_holds(w, i) || world_waits(w, i) || world_keeps(w, i) || stays;
		CHECK_MSG(s->state != SLOT_RELEASED || world_keeps(w, i) || stays,
				  "request %u was never freed", i);
	}
	CHECK_INT(zkl_manager_live(w->worker.m), live);
	for (node = tree_newest(); node != NULL; node = node->all)
	{
		const Slot *r;
		ZklUuid		uuid;
		ZklLockMode mode;
		ZklSeq		seq;
		bool		has_uuid;

		if (w->worker.session.id == 0 ||
			node->node[HEAD].stat.ephemeral_owner != w->worker.session.id ||
			!zkl_znode_parse(w->dialect,
							 node->name, &mode, &seq, &has_uuid, &uuid))
			continue;
		r = find_uuid(w, &uuid);
		CHECK_MSG(r != NULL && r->state != SLOT_LOST && r->state != SLOT_DENIED &&
				  r->state != SLOT_FAILED,
				  "left behind: %s", node->text);
	}
}
