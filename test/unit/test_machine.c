/*
 * test_machine.c
 *	  The request machine off the beaten track: every state of a request meets
 *	  every event, then random walks over everything at once.  After each
 *	  event the invariants hold (world.c); in the end, once the others have
 *	  left and ZooKeeper is there, everybody has got his lock and nothing stays
 *	  behind.
 */
#include "unit.h"
#include "world.h"

#define NAMES		3
#define REQUESTS	24

static const char *const names[NAMES] = {"/a", "/b/c", "/d"};

/* One case: the world, and the request that it is about */
typedef struct Case
{
	World	   *w;
	const char *name;			/* of the lock that events are about */
	uint32_t	r;
	char		other[ZKL_MAX_PATH + 1];	/* a foreign contender, or "" */
} Case;

static uint64_t
free_owner(const World *w)
{
	uint64_t	owner;
	uint32_t	i;

	for (owner = 1;; owner++)
	{
		for (i = 0; i < w->nrequests; i++)
			if (w->requests[i].used && w->requests[i].owner == owner)
				break;
		if (i == w->nrequests)
			return owner;
	}
}

static uint32_t
count_used(const World *w)
{
	uint32_t	n = 0;
	uint32_t	i;

	for (i = 0; i < w->nrequests; i++)
		n += w->requests[i].used;
	return n;
}

/* A contender that is no zklock request of ours, of a lock or of any (NULL) */
static ModelNode *
find_foreign(const World *w, const char *name, ModelNode *from)
{
	ModelNode  *node;
	char		path[ZKL_MAX_PATH + 1];

	snprintf(path, sizeof(path), WORLD_ROOT "%s", name ? name : "");
	for (node = from; node != w->zk.root; node = node->next)
	{
		if (node->stat.ephemeral_owner != 0 &&
			node->stat.ephemeral_owner != w->session.id &&
			(name == NULL || strcmp(node->parent->path, path) == 0))
			return node;
	}
	return NULL;
}

static void
all_foreign_leave(World *w)
{
	ModelNode  *node;

	while ((node = find_foreign(w, NULL, w->zk.root->next)) != NULL)
		(void) model_delete(&w->zk, node->path);
}

/* Everybody else leaves, ZooKeeper is there: all get their turn and go. */
static void
settle(World *w)
{
	uint32_t	round;
	uint32_t	i;

	w->zk.multi_rc = 0;
	all_foreign_leave(w);
	if (!w->connected)
		world_connect(w);
	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	for (round = 0; round < 2 * w->nrequests && count_used(w) > 0; round++)
	{
		for (i = 0; i < w->nrequests; i++)
		{
			if (w->requests[i].used && !world_waits(w, i))
				world_leave(w, i);
		}
		world_flush(w);
		world_run(w);
		world_sleep(w, 2 * WORLD_BEAT);
	}
	CHECK_INT(count_used(w), 0);
	for (i = 0; i < NAMES; i++)
		CHECK_INT(world_nodes(w, names[i]), 0);
	world_check(w);
	world_end(w);
}

/* ---- states ---- */

static void
known_directory(Case *c)
{
	int			i;

	for (i = 0; i < 2; i++)
	{
		uint32_t	r = world_submit(c->w, "/a", 50, ZKL_EXCLUSIVE);

		world_run(c->w);
		world_release(c->w, r);
		world_run(c->w);
	}
}

static void
in_new(Case *c)
{
	c->r = world_enter(c->w, "/a", 1, ZKL_EXCLUSIVE, false);
}

static void
in_sent(Case *c)
{
	c->r = world_submit(c->w, "/a", 1, ZKL_EXCLUSIVE);
}

static void
in_sent_known(Case *c)
{
	known_directory(c);
	c->r = world_submit(c->w, "/a", 1, ZKL_SHARED);
}

static void
in_executed(Case *c)
{
	known_directory(c);
	c->r = world_submit(c->w, "/a", 1, ZKL_EXCLUSIVE);
	world_serve(c->w, 1);
}

static void
in_granted(Case *c)
{
	in_sent(c);
	world_run(c->w);
}

static void
in_granted_shared(Case *c)
{
	c->r = world_submit(c->w, "/a", 1, ZKL_SHARED);
	world_run(c->w);
}

static void
in_behind_own(Case *c)
{
	(void) world_submit(c->w, "/a", 2, ZKL_SHARED);
	(void) world_submit(c->w, "/a", 3, ZKL_EXCLUSIVE);
	c->r = world_submit(c->w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(c->w);
}

static void
in_listing(Case *c)
{
	known_directory(c);
	foreign_enter(c->w, "/a", ZKL_EXCLUSIVE, c->other);
	c->r = world_submit(c->w, "/a", 1, ZKL_EXCLUSIVE);
	world_serve(c->w, 1);
	world_deliver(c->w, 1);
}

static void
in_watching(Case *c)
{
	in_listing(c);
	world_serve(c->w, INT32_MAX);
	world_deliver(c->w, INT32_MAX);
}

static void
in_behind_foreign(Case *c)
{
	in_listing(c);
	world_run(c->w);
}

static void
in_behind_reader(Case *c)
{
	foreign_zklock(c->w, "/a", ZKL_SHARED, "{\"zklock\":1}", c->other);
	in_granted(c);
}

static void
in_unsettled(Case *c)
{
	in_executed(c);
	world_disconnect(c->w);
}

static void
in_unsettled_absent(Case *c)
{
	in_sent_known(c);
	world_disconnect(c->w);
}

static void
in_unsettled_connected(Case *c)
{
	in_unsettled(c);
	world_connect(c->w);
}

static void
in_unsettled_listing(Case *c)
{
	in_unsettled_connected(c);
	world_serve(c->w, 1);
	world_deliver(c->w, 1);
	world_serve(c->w, 1);
	world_deliver(c->w, 1);
}

static void
in_covered(Case *c)
{
	in_granted(c);
	c->r = world_submit(c->w, "/a", 1, ZKL_SHARED);
}

static void
in_covering(Case *c)
{
	in_granted(c);
	(void) world_submit(c->w, "/a", 1, ZKL_EXCLUSIVE);
}

static void
in_own_watch_sent(Case *c)
{
	in_covering(c);
	c->w->now += WORLD_BEAT;
	world_flush(c->w);
}

static void
in_own_watch_armed(Case *c)
{
	in_covering(c);
	world_sleep(c->w, 2 * WORLD_BEAT);
}

static void
in_denied(Case *c)
{
	(void) world_submit(c->w, "/a", 2, ZKL_SHARED);
	world_run(c->w);
	c->r = world_submit(c->w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(c->w);
	c->w->requests[c->r].expired = true;
	zkl_manager_expire(c->w->m, c->w->now, c->r);
}

static void
in_denied_deleting(Case *c)
{
	in_denied(c);
	world_flush(c->w);
}

static void
in_denied_gone(Case *c)
{
	in_denied(c);
	world_flush(c->w);
	world_run(c->w);
}

static void
in_expired_unlisted(Case *c)
{
	in_listing(c);
	world_expire(c->w, c->r);
}

static void
in_released_new(Case *c)
{
	in_new(c);
	world_leave(c->w, c->r);
}

static void
in_released_sent(Case *c)
{
	in_sent_known(c);
	world_leave(c->w, c->r);
}

static void
in_released_executed(Case *c)
{
	in_executed(c);
	world_release(c->w, c->r);
}

static void
in_released_unsettled(Case *c)
{
	in_unsettled(c);
	world_release(c->w, c->r);
}

static void
in_released_delete(Case *c)
{
	in_granted(c);
	world_leave(c->w, c->r);
}

static void
in_released_deleting(Case *c)
{
	in_granted(c);
	world_release(c->w, c->r);
}

static void
in_lost(Case *c)
{
	in_covering(c);
	world_expire_session(c->w);
	world_connect(c->w);
	world_run(c->w);
}

static void
in_between_sessions(Case *c)
{
	in_behind_own(c);
	world_expire_session(c->w);
}

static void
in_upgrade(Case *c)
{
	foreign_enter(c->w, "/a", ZKL_SHARED, c->other);
	in_granted_shared(c);
	c->r = world_submit(c->w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(c->w);
}

static void
in_upgraded(Case *c)
{
	in_granted_shared(c);
	c->r = world_submit(c->w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(c->w);
}

static void
in_draining(Case *c)
{
	known_directory(c);
	(void) world_submit(c->w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(c->w);
	model_find(&c->w->zk, WORLD_ROOT "/a")->counter = (uint32_t) ZKL_SEQ_LIMIT;
	in_sent(c);
	world_run(c->w);
}

static void
in_parked(Case *c)
{
	in_draining(c);
	c->r = world_submit(c->w, "/a", 3, ZKL_EXCLUSIVE);
	world_run(c->w);
}

static void
in_parents(Case *c)
{
	in_sent(c);
	world_serve(c->w, 3);
	world_deliver(c->w, 1);
}

static void
in_two_batches(Case *c)
{
	in_sent(c);
	(void) world_submit(c->w, "/a", 2, ZKL_SHARED);
	(void) world_submit(c->w, "/b/c", 3, ZKL_SHARED);
	world_serve(c->w, 2);
}

static void
in_restored_waiting(Case *c)
{
	in_behind_own(c);
	world_restart(c->w);
}

static void
in_restored_held(Case *c)
{
	in_covering(c);
	world_restart(c->w);
}

static void
in_restored_unsettled(Case *c)
{
	in_unsettled(c);
	world_restart(c->w);
}

static void
in_tainted(Case *c)
{
	char		reader[ZKL_MAX_PATH + 1];

	in_behind_foreign(c);
	foreign_downgrade(c->w, c->other, reader);
	strcpy(c->other, reader);
	world_deliver(c->w, 1);
}

static const struct
{
	const char *name;
	void		(*enter) (Case *c);
}			states[] = {
#define STATE(name) {#name, name}
	STATE(in_new), STATE(in_sent), STATE(in_sent_known), STATE(in_executed),
	STATE(in_granted), STATE(in_granted_shared), STATE(in_behind_own),
	STATE(in_listing), STATE(in_watching), STATE(in_behind_foreign),
	STATE(in_behind_reader), STATE(in_unsettled), STATE(in_unsettled_absent),
	STATE(in_unsettled_connected), STATE(in_unsettled_listing),
	STATE(in_covered), STATE(in_covering), STATE(in_own_watch_sent),
	STATE(in_own_watch_armed), STATE(in_denied), STATE(in_denied_deleting),
	STATE(in_denied_gone), STATE(in_expired_unlisted), STATE(in_released_new),
	STATE(in_released_sent), STATE(in_released_executed),
	STATE(in_released_unsettled), STATE(in_released_delete),
	STATE(in_released_deleting), STATE(in_lost), STATE(in_between_sessions),
	STATE(in_upgrade), STATE(in_upgraded), STATE(in_draining),
	STATE(in_parked), STATE(in_parents), STATE(in_two_batches),
	STATE(in_restored_waiting), STATE(in_restored_held),
	STATE(in_restored_unsettled), STATE(in_tainted)
};

#define NSTATES		(sizeof(states) / sizeof(states[0]))

/* ---- events ---- */

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
	if (c->w->requests[c->r].used && !c->w->requests[c->r].released)
		world_expire(c->w, c->r);
}

static void
do_release_others(Case *c)
{
	uint32_t	i;

	for (i = 0; i < c->w->nrequests; i++)
		if (i != c->r)
			world_leave(c->w, i);
	world_flush(c->w);
}

/* The owner of the request asks again, if it does not wait */
static void
ask_again(Case *c, ZklLockMode mode)
{
	const WorldRequest *r = &c->w->requests[c->r];
	uint32_t	i;

	if (!r->used)
		return;
	for (i = 0; i < c->w->nrequests; i++)
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
	ModelNode  *node = find_foreign(c->w, c->name, c->w->zk.root->next);

	if (node)
		(void) model_delete(&c->w->zk, node->path);
}

/* A writer goes on as a reader: only one that holds does so. */
static void
do_foreign_downgrade(Case *c)
{
	ModelNode  *node = find_foreign(c->w, c->name, c->w->zk.root->next);
	ModelNode  *ahead = c->w->zk.root->next;
	char		reader[ZKL_MAX_PATH + 1];

	if (node == NULL || strstr(node->path, "__WRIT__") == NULL ||
		node->stat.ephemeral_owner == c->w->session.id)
		return;
	for (; ahead != node; ahead = ahead->next)
		if (ahead->parent == node->parent)
			return;
	foreign_downgrade(c->w, node->path, reader);
}

/* Somebody deletes one of our nodes: from here on no exclusion is owed. */
static void
do_delete_own(Case *c)
{
	char		path[ZKL_MAX_PATH + 1];
	ModelNode  *node;

	directory_path(c, path);
	for (node = c->w->zk.root->next; node != c->w->zk.root; node = node->next)
	{
		if (node->parent == NULL || strcmp(node->parent->path, path) != 0 ||
			node->stat.ephemeral_owner != c->w->session.id)
			continue;
		c->w->tampered = true;
		(void) model_delete(&c->w->zk, node->path);
		return;
	}
}

static void
do_delete_beat(Case *c)
{
	ModelNode  *node;

	for (node = c->w->zk.root->next; node != c->w->zk.root; node = node->next)
	{
		if (strncmp(node->path, WORLD_ROOT "/.servers/", 18) != 0)
			continue;
		(void) model_delete(&c->w->zk, node->path);
		return;
	}
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
	c->w->now += 2 * WORLD_LEASE;
	world_flush(c->w);
}

static void
do_sleep(Case *c)
{
	world_sleep(c->w, 2 * WORLD_BEAT);
}

/* What no ZooKeeper should say */
static void
do_strays(Case *c)
{
	static const char *const paths[] = {
		"/", "", "/zklock", "/zklock/a", "/zklock/b/c", "a", "/zklock/a/",
		"/zklock/a/x__WRIT__0000000000", "/zklock/.servers/x"
	};
	ZklReply	reply = {.rc = -101};
	size_t		i;

	zkl_manager_reply(c->w->m, c->w->now, 0x7fffffffffffffff, &reply);
	zkl_manager_reply(c->w->m, c->w->now, 99999, &reply);
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
	{
		zkl_manager_event(c->w->m, c->w->now, ZKL_EVENT_CHANGED, paths[i]);
		zkl_manager_event(c->w->m, c->w->now, ZKL_EVENT_CHILDREN, paths[i]);
	}
	world_flush(c->w);
}

static const struct
{
	const char *name;
	void		(*happen) (Case *c);
	uint32_t	calm;			/* how often it comes up in a walk, */
	uint32_t	wild;			/* and in one with failures */
}			events[] = {
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
	EVENT(do_strays, 1, 1)
};

#define NEVENTS		(sizeof(events) / sizeof(events[0]))

static void
begin_case(Case *c, size_t state, uint32_t in_flight)
{
	memset(c, 0, sizeof(*c));
	c->w = world_make();
	c->name = "/a";
	c->w->nrequests = REQUESTS;
	c->w->batches_in_flight = in_flight;
	world_begin(c->w);
	world_connect(c->w);
	world_run(c->w);
	states[state].enter(c);
}

/* Says which case it was, once something has gone wrong in it. */
static void
end_case(Case *c, int failed_before, size_t state, const size_t *what, int n)
{
	int			i;

	settle(c->w);
	if (unit.failed_checks == failed_before ||
		failed_before > UNIT_MAX_REPORTS)
		return;
	fprintf(stderr, "# ^ %s", states[state].name);
	for (i = 0; i < n; i++)
		fprintf(stderr, " + %s", events[what[i]].name);
	fprintf(stderr, "\n");
}

static void
every_state_and_event(void)
{
	size_t		state;
	size_t		event;

	for (state = 0; state < NSTATES; state++)
		for (event = 0; event < NEVENTS; event++)
		{
			int			failed = unit.failed_checks;
			Case		c;

			begin_case(&c, state, 2);
			events[event].happen(&c);
			end_case(&c, failed, state, &event, 1);
		}
}

static void
every_state_and_some_events(void)
{
	int			i;

	for (i = 0; i < 6000; i++)
	{
		int			failed = unit.failed_checks;
		size_t		state = unit_random_below(NSTATES);
		size_t		what[6];
		int			n = 2 + (int) unit_random_below(5);
		int			j;
		Case		c;

		for (j = 0; j < n; j++)
			what[j] = unit_random_below(NEVENTS);
		begin_case(&c, state, 1 + unit_random_below(3));
		for (j = 0; j < n && count_used(c.w) < REQUESTS - 2; j++)
			events[what[j]].happen(&c);
		end_case(&c, failed, state, what, n);
	}
}

static size_t
next_event(bool wild)
{
	uint32_t	sum = 0;
	uint32_t	pick;
	size_t		i;

	for (i = 0; i < NEVENTS; i++)
		sum += wild ? events[i].wild : events[i].calm;
	pick = unit_random_below(sum);
	for (i = 0;; i++)
	{
		uint32_t	weight = wild ? events[i].wild : events[i].calm;

		if (pick < weight)
			return i;
		pick -= weight;
	}
}

static void
walk(Case *c, int steps, uint32_t nnames, bool wild)
{
	while (steps-- > 0)
	{
		uint32_t	tries = 0;

		c->name = names[unit_random_below(nnames)];
		do
			c->r = unit_random_below(REQUESTS);
		while (!c->w->requests[c->r].used && tries++ < 40);
		if (count_used(c->w) > REQUESTS - 4)
			do_release_others(c);
		if (!c->w->connected && unit_random_below(3) == 0)
			world_connect(c->w);
		c->w->now += unit_random_below(2000);
		events[next_event(wild)].happen(c);
	}
}

static void
random_walks(void)
{
	int			i;

	for (i = 0; i < 400; i++)
	{
		uint64_t	start = unit.random;
		int			failed = unit.failed_checks;
		Case		c;

		memset(&c, 0, sizeof(c));
		c.w = world_make();
		c.w->nrequests = REQUESTS;
		c.w->batches_in_flight = 1 + unit_random_below(3);
		c.w->batch_operations = 2 + unit_random_below(6);
		c.w->max_directories = unit_random_below(4);
		world_begin(c.w);
		world_connect(c.w);
		walk(&c, 300, 1 + unit_random_below(NAMES), i & 1);
		settle(c.w);
		if (unit.failed_checks > failed && failed < UNIT_MAX_REPORTS)
			fprintf(stderr, "# ^ walk %d, random state %" PRIu64 "\n", i,
					start);
	}
}

int
main(void)
{
	unit_start();
	RUN(every_state_and_event);
	RUN(every_state_and_some_events);
	RUN(random_walks);
	return unit_finish();
}
