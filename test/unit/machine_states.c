/*
 * machine_states.c
 *	  Brings a request into each of its states.
 *
 * Owns nothing; drives a world that has just become ready.
 */
#include <string.h>

#include "machine.h"

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
	c->w->worker.now += WORLD_BEAT;
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
	c->w->requests[c->r].timed_out = true;
	worker_tell(&c->w->worker, ZKL_EVENT(TIME_OUT,.request = c->r));
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
in_counter_ended(Case *c)
{
	known_directory(c);
	(void) world_submit(c->w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(c->w);
	tree_find(WORLD_ROOT "/a")->counter = (int32_t) ZKL_SEQ_LIMIT;
	in_sent(c);
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
in_restarted_waiting(Case *c)
{
	in_behind_own(c);
	world_restart(c->w);
}

static void
in_restarted_held(Case *c)
{
	in_covering(c);
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

const MachineState machine_states[] = {
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
	STATE(in_upgrade), STATE(in_upgraded), STATE(in_counter_ended),
	STATE(in_parents), STATE(in_two_batches),
	STATE(in_restarted_waiting), STATE(in_restarted_held), STATE(in_tainted)
};

const size_t machine_nstates =
sizeof(machine_states) / sizeof(machine_states[0]);
