/*
 * machine_events.c
 *	  All that can happen to a request, to its server and around it.
 *
 * Owns nothing; each event may come at any time, and does nothing if it makes
 * no sense then.
 */
#include "machine.h"
#include "unit.h"

uint32_t
machine_used(const World *w)
{
	uint32_t	n = 0;
	uint32_t	i;

	for (i = 0; i < w->config.max_requests; i++)
		n += w->requests[i].state != SLOT_FREE;
	return n;
}

static uint64_t
free_owner(const World *w)
{
	uint64_t	owner;
	uint32_t	i;

	for (owner = 1;; owner++)
	{
		for (i = 0; i < w->config.max_requests; i++)
			if (w->requests[i].state != SLOT_FREE && w->requests[i].owner == owner)
				break;
		if (i == w->config.max_requests)
			return owner;
	}
}

/* The oldest contender of a lock, ours or another client's, or NULL */
static const Path *
find_contender(const World *w, const char *name, bool ours)
{
	const Path *node;
	const Path *found = NULL;
	char		path[ZKL_MAX_PATH + 1];

	snprintf(path, sizeof(path), WORLD_ROOT "%s", name);
	for (node = tree_children(path); node != NULL; node = node->sibling)
	{
		int64_t		owner = node->node[HEAD].stat.ephemeral_owner;

		if (owner != 0 && (owner == w->worker.session.id) == ours)
			found = node;
	}
	return found;
}

static void
directory_path(const Case *c, char *path)
{
	sprintf(path, WORLD_ROOT "%s", c->name);
}

static void
do_nothing(Case *c)
{
	world_flush(c->w);
}

static void
do_release(Case *c)
{
	world_release(c->w, c->r);
}

static void
do_expire(Case *c)
{
	if (c->w->requests[c->r].state != SLOT_FREE && c->w->requests[c->r].state != SLOT_RELEASED)
		world_expire(c->w, c->r);
}

static void
do_release_others(Case *c)
{
	uint32_t	i;

	for (i = 0; i < c->w->config.max_requests; i++)
		if (i != c->r)
			world_leave(c->w, i);
	world_flush(c->w);
}

/* The owner of the request asks again, if it does not wait */
static void
ask_again(Case *c, ZklLockMode mode)
{
	const Slot *r = &c->w->requests[c->r];
	uint32_t	i;

	if (r->state == SLOT_FREE)
		return;
	for (i = 0; i < c->w->config.max_requests; i++)
		if (world_waits(c->w, i) && c->w->requests[i].owner == r->owner)
			return;
	(void) world_submit(c->w, r->name, r->owner, mode);
}

static void
do_ask_shared(Case *c)
{
	ask_again(c, ZKL_SHARED);
}

static void
do_ask_exclusive(Case *c)
{
	ask_again(c, ZKL_EXCLUSIVE);
}

static void
do_other_shared(Case *c)
{
	(void) world_submit(c->w, c->name, free_owner(c->w), ZKL_SHARED);
}

static void
do_other_exclusive(Case *c)
{
	(void) world_submit(c->w, c->name, free_owner(c->w), ZKL_EXCLUSIVE);
}

static void
do_other_try(Case *c)
{
	(void) world_try(c->w, c->name, free_owner(c->w), ZKL_EXCLUSIVE);
}

static void
do_serve(Case *c)
{
	world_serve(c->w, 1);
}

static void
do_serve_all(Case *c)
{
	world_serve(c->w, INT32_MAX);
}

static void
do_deliver(Case *c)
{
	world_deliver(c->w, 1);
}

static void
do_run(Case *c)
{
	world_run(c->w);
}

static void
do_unknown_multi(Case *c)
{
	c->w->zk.multi_rc = -4;
	c->w->zk.multi_applied = unit_random() & 1;
}

static void
do_disconnect(Case *c)
{
	world_disconnect(c->w);
}

static void
do_reconnect(Case *c)
{
	world_disconnect(c->w);
	world_connect(c->w);
}

static void
do_expire_session(Case *c)
{
	world_expire_session(c->w);
}

static void
do_new_session(Case *c)
{
	world_expire_session(c->w);
	world_connect(c->w);
}

static void
do_restart(Case *c)
{
	world_restart(c->w);
}

static void
do_foreign_writer(Case *c)
{
	foreign_enter(c->w, c->name, ZKL_EXCLUSIVE, c->other);
}

static void
do_foreign_reader(Case *c)
{
	foreign_zklock(c->w, c->name, ZKL_SHARED, "{\"zklock\":1}", c->other);
}

static void
do_foreign_leaves(Case *c)
{
	const Path *node = find_contender(c->w, c->name, false);

	if (node)
		(void) model_delete(&c->w->zk, node->text);
}

/* A writer goes on as a reader: only one that holds does so. */
static void
do_foreign_downgrade(Case *c)
{
	const Path *node = find_contender(c->w, c->name, false);
	char		reader[ZKL_MAX_PATH + 1];

	if (node == NULL || strstr(node->text, "__WRIT__") == NULL ||
		node->sibling != NULL)
		return;
	foreign_downgrade(c->w, node->text, reader);
}

/* Somebody deletes one of our nodes: from here on no exclusion is owed. */
static void
do_delete_own(Case *c)
{
	const Path *node = find_contender(c->w, c->name, true);

	if (node == NULL)
		return;
	c->w->tampered = true;
	(void) model_delete(&c->w->zk, node->text);
}

static void
do_delete_beat(Case *c)
{
	const Path *node = tree_children(WORLD_ROOT "/.servers");

	if (node != NULL)
		(void) model_delete(&c->w->zk, node->text);
}

static void
do_reap(Case *c)
{
	char		path[ZKL_MAX_PATH + 1];

	directory_path(c, path);
	(void) model_delete(&c->w->zk, path);
}

static void
do_touch_directory(Case *c)
{
	char		path[ZKL_MAX_PATH + 1];

	directory_path(c, path);
	(void) model_set(&c->w->zk, path, "x");
}

static void
do_jump_ahead(Case *c)
{
	c->w->worker.now += 2 * WORLD_LEASE;
	world_flush(c->w);
}

static void
do_sleep(Case *c)
{
	world_sleep(c->w, 2 * WORLD_BEAT);
}

/* The counter comes near its end: it never goes back. */
static void
do_near_the_end(Case *c)
{
	char		path[ZKL_MAX_PATH + 1];
	Node	   *node;

	directory_path(c, path);
	node = tree_find(path);
	if (node && (uint32_t) node->counter < ZKL_SEQ_LIMIT - 3)
		node->counter = (int32_t) (ZKL_SEQ_LIMIT - 3);
}

static void
do_no_write(Case *c)
{
	c->w->zk.no_write = c->w->zk.no_write ? NULL : "/a/";
}

static void
do_no_read(Case *c)
{
	c->w->zk.no_read = c->w->zk.no_read ? NULL : "/a";
}

/* What no ZooKeeper should say */
static void
do_strays(Case *c)
{
	static const char *const paths[] = {
		"/", "", "/zklock", "/zklock/a", "/zklock/b/c", "a", "/zklock/a/",
		"/zklock/a/x__WRIT__0000000000", "/zklock/.servers/x"
	};
	Worker	   *w = &c->w->worker;
	ZklReply	reply = {.rc = -101};
	size_t		i;

	worker_tell(w, ZKL_EVENT(REPLY,.tag = 0x7fffffffffffffff,.reply = &reply));
	worker_tell(w, ZKL_EVENT(REPLY,.tag = 99999,.reply = &reply));
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
	{
		worker_tell(w, ZKL_EVENT(CHANGED,.path = paths[i]));
		worker_tell(w, ZKL_EVENT(CHILDREN,.path = paths[i]));
	}
	world_flush(c->w);
}

const MachineEvent machine_events[] = {
#define EVENT(name, calm, wild) {#name, name, calm, wild}
	EVENT(do_nothing, 1, 1),
	EVENT(do_release, 14, 14),
	EVENT(do_expire, 2, 2),
	EVENT(do_release_others, 1, 1),
	EVENT(do_ask_shared, 3, 3),
	EVENT(do_ask_exclusive, 3, 3),
	EVENT(do_other_shared, 6, 6),
	EVENT(do_other_exclusive, 6, 6),
	EVENT(do_other_try, 2, 2),
	EVENT(do_serve, 20, 20),
	EVENT(do_serve_all, 8, 8),
	EVENT(do_deliver, 24, 24),
	EVENT(do_run, 4, 4),
	EVENT(do_unknown_multi, 0, 2),
	EVENT(do_disconnect, 0, 2),
	EVENT(do_reconnect, 0, 2),
	EVENT(do_expire_session, 0, 1),
	EVENT(do_new_session, 0, 1),
	EVENT(do_restart, 0, 1),
	EVENT(do_foreign_writer, 2, 2),
	EVENT(do_foreign_reader, 3, 3),
	EVENT(do_foreign_leaves, 6, 6),
	EVENT(do_foreign_downgrade, 2, 2),
	EVENT(do_delete_own, 0, 0),
	EVENT(do_delete_beat, 0, 1),
	EVENT(do_reap, 2, 2),
	EVENT(do_touch_directory, 1, 1),
	EVENT(do_jump_ahead, 0, 1),
	EVENT(do_sleep, 1, 1),
	EVENT(do_near_the_end, 0, 1),
	EVENT(do_no_write, 0, 1),
	EVENT(do_no_read, 0, 1),
	EVENT(do_strays, 1, 1)
};

const size_t machine_nevents =
sizeof(machine_events) / sizeof(machine_events[0]);
