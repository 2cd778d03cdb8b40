/*
 * pair.c
 *	  A deadlock with another server, for the tests of deadlocks.
 *
 * Owns nothing; makes a world with a session of ours, and one of another server.
 */
#include "pair.h"
#include "unit.h"

static ZklUuid
uuid_of(const char *path)
{
	ZklUuid		uuid;
	ZklLockMode mode;
	ZklSeq		seq;
	bool		has_uuid;

	CHECK(zkl_znode_parse(ZKL_DIALECT_CURATOR_RW, strrchr(path, '/') + 1,
						  &mode, &seq, &has_uuid, &uuid));
	return uuid;
}

void
pair_publish(Pair *p, const char *held, const char *waits, const char *lock,
			 bool behind)
{
	ZklWaitData data = {
		.server = "berlin",.behind = behind,.holder_pid = 815,
		.waiter_pid = 815 + behind,.every_ms = p->every_ms
	};
	ZklUuid		uuid = uuid_of(held);
	char		text[ZKL_MAX_WAIT_DATA + 1];
	static uint64_t published = 0;

	strcpy(data.lock, lock);
	data.wait = uuid_of(waits);
	text[zkl_node_data_format_wait(&data, text)] = '\0';
	model_mkdir(&p->w->zk, WORLD_ROOT ZKL_WAITS_DIRECTORY);
	strcpy(p->published, WORLD_ROOT ZKL_WAITS_DIRECTORY "/");
	zkl_znode_wait_name(&uuid, 1, ++published, p->published + strlen(p->published));
	CHECK_INT(model_create(&p->w->zk, p->published, false, PAIR_OTHER, text, NULL),
			  ZKL_RC_OK);
}

void
pair_publish_other(Pair *p)
{
	pair_publish(p, p->held, p->waits, "/a", false);
}

uint32_t
pair_publications(void)
{
	const Path *path = tree_children(WORLD_ROOT ZKL_WAITS_DIRECTORY);
	uint32_t	n = 0;

	for (; path != NULL; path = path->sibling)
		n += path->node[HEAD].exists &&
			path->node[HEAD].stat.ephemeral_owner != PAIR_OTHER;
	return n;
}

Pair
pair_begin(void)
{
	Pair		p;

	p.every_ms = PAIR_EVERY / 1000;
	p.w = world_make();
	p.w->config.max_requests = 100;
	p.w->patience = PAIR_PATIENCE;
	world_begin(p.w);
	world_connect(p.w);
	world_run(p.w);
	foreign_zklock(p.w, "/b", ZKL_EXCLUSIVE, "{\"zklock\":1}", p.held);
	return p;
}

uint32_t
pair_submit(Pair *p, const char *name, uint64_t owner, ZklLockMode mode)
{
	uint32_t	request = world_submit(p->w, name, owner, mode);

	world_run(p->w);
	return request;
}

Pair
pair_make_of(uint64_t waiter)
{
	Pair		p = pair_begin();

	world_warm_up(p.w, "/a");
	p.a = pair_submit(&p, "/a", 1, ZKL_EXCLUSIVE);
	foreign_zklock(p.w, "/a", ZKL_EXCLUSIVE, "{\"zklock\":1}", p.waits);
	p.b = pair_submit(&p, "/b", waiter, ZKL_EXCLUSIVE);
	CHECK(world_holds(p.w, p.a));
	CHECK(world_waits(p.w, p.b));
	return p;
}

uint64_t
pair_checks(const Pair *p)
{
	ZklDeadlockCounters counters;

	zkl_deadlock_count(p->w->worker.m, &counters);
	return counters.checks;
}

Pair
pair_make(void)
{
	return pair_make_of(1);
}

void
pair_wait_long(Pair *p)
{
	world_sleep(p->w, PAIR_PATIENCE + 1000);
	world_run(p->w);
}

void
pair_finish(Pair *p)
{
	foreign_leave_all(p->w, "/a");
	foreign_leave_all(p->w, "/b");
	world_run(p->w);
	world_wind_up(p->w);
}

bool
pair_is_victim(const Pair *p)
{
	const Slot *s = &p->w->requests[p->b];

	return s->state == SLOT_FAILED && s->failure == ZKL_FAILURE_DEADLOCK;
}
