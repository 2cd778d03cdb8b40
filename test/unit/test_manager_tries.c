/*
 * test_manager_tries.c
 *	  Tries that must not wait: what they cost, and what they may say.
 */
#include "unit.h"
#include "world.h"

/* Both have held /a, so that neither knows to be alone; "other" holds it. */
static World *
contended(ZklLockMode mode, char *other)
{
	World	   *w = world_ready();

	world_warm_up(w, "/a");
	foreign_enter(w, "/a", mode, other);
	CHECK(world_waits(w, world_submit(w, "/a", 1, ZKL_EXCLUSIVE)));
	world_run(w);
	world_release(w, 0);
	world_run(w);
	world_count_anew(w);
	return w;
}

/* A try that fails looks, and writes nothing; others share the look. */
static void
failed_tries(void)
{
	char		other[ZKL_MAX_PATH + 1];
	World	   *w = contended(ZKL_EXCLUSIVE, other);
	uint32_t	r[5];
	int			i;

	for (i = 0; i < 4; i++)
		r[i] = world_enter(w, "/a", (uint64_t) i, i % 2 ? ZKL_SHARED :
						   ZKL_EXCLUSIVE, true);
	world_flush(w);
	world_run(w);
	for (i = 0; i < 4; i++)
	{
		CHECK(w->requests[r[i]].state == SLOT_DENIED);
		world_release(w, r[i]);
	}
	world_run(w);
	CHECK_INT(w->zk.counts.lists, 1);
	CHECK_INT(w->zk.counts.syncs, 1);
	CHECK_INT(w->zk.counts.multis, 0);
	CHECK_INT(w->zk.counts.creates, 0);
	CHECK_INT(w->zk.counts.deletes, 0);
	world_wind_up(w);
}

/* A look answers nobody who came after it was sent. */
static void
later_try(void)
{
	char		other[ZKL_MAX_PATH + 1];
	World	   *w = contended(ZKL_EXCLUSIVE, other);
	uint32_t	early = world_try(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	late;

	world_serve(w, 10);
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	late = world_try(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(w->requests[early].state == SLOT_DENIED);
	CHECK(world_holds(w, late));
	world_wind_up(w);
}

/* Who shares is in the way of those who want it alone only. */
static void
shared_try(void)
{
	char		other[ZKL_MAX_PATH + 1];
	World	   *w = contended(ZKL_SHARED, other);
	uint32_t	shared = world_try(w, "/a", 1, ZKL_SHARED);
	uint32_t	exclusive = world_try(w, "/a", 2, ZKL_EXCLUSIVE);

	world_run(w);
	CHECK(world_holds(w, shared));
	CHECK(w->requests[exclusive].state == SLOT_DENIED);
	world_wind_up(w);
}

/* Nor can a try go on behind one that waits in front of it, for whatever. */
static void
behind_another_wait(void)
{
	char		other[ZKL_MAX_PATH + 1];
	World	   *w = contended(ZKL_SHARED, other);
	uint32_t	first = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	second = world_submit(w, "/a", 2, ZKL_SHARED);

	world_run(w);
	CHECK(world_waits(w, first) && world_waits(w, second));
	world_expire(w, second);
	world_run(w);
	CHECK(w->requests[second].state == SLOT_DENIED);
	CHECK(world_waits(w, first));
	world_wind_up(w);
}

/* Nor is what is left of a hold that was released before the try came. */
static void
released_before(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	held;
	uint32_t	r;

	foreign_enter(w, "/a", ZKL_SHARED, other);
	held = world_submit(w, "/a", 1, ZKL_SHARED);
	world_run(w);
	CHECK(world_holds(w, held));
	world_release(w, held);
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);

	/* The look overtakes nothing, but the delete may have to be repeated. */
	w->zk.no_write = "/a/";
	r = world_try(w, "/a", 1, ZKL_EXCLUSIVE);
	world_serve(w, 100);
	w->zk.no_write = NULL;
	world_run(w);
	CHECK(w->requests[r].state != SLOT_DENIED);
	world_sleep(w, 3000000);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

/* Where our last create met nobody, a try costs no look. */
static void
likely_free(void)
{
	World	   *w = world_ready();
	uint32_t	r;

	world_warm_up(w, "/a");
	world_count_anew(w);
	r = world_try(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, r));
	CHECK_INT(w->zk.counts.syncs, 0);
	CHECK_INT(w->zk.counts.lists, 0);
	world_wind_up(w);
}

/* On an idle server, whose lease has passed, a beat goes ahead. */
static void
idle_server(void)
{
	char		other[ZKL_MAX_PATH + 1];
	World	   *w = contended(ZKL_EXCLUSIVE, other);
	uint32_t	r;

	w->worker.now = zkl_manager_lease(w->worker.m) + 1000000;
	r = world_try(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(w->requests[r].state == SLOT_DENIED);
	CHECK_INT(w->zk.counts.multis, 1);
	CHECK_INT(w->zk.counts.lists, 1);
	CHECK_INT(w->zk.counts.creates, 0);
	world_wind_up(w);
}

/* Without an answer it goes the long way; and past the lease none is denied. */
static void
unanswered(void)
{
	char		other[ZKL_MAX_PATH + 1];
	World	   *w = contended(ZKL_EXCLUSIVE, other);
	uint32_t	r = world_try(w, "/a", 1, ZKL_EXCLUSIVE);

	world_disconnect(w);
	CHECK(world_waits(w, r));
	world_connect(w);
	world_run(w);
	CHECK(w->requests[r].state == SLOT_DENIED);
	world_release(w, r);
	world_run(w);

	r = world_try(w, "/a", 1, ZKL_EXCLUSIVE);
	world_serve(w, 10);
	w->worker.now = zkl_manager_lease(w->worker.m);
	world_deliver(w, 10);
	CHECK(w->requests[r].state != SLOT_DENIED);
	world_run(w);
	CHECK(w->requests[r].state == SLOT_DENIED);
	world_wind_up(w);
}

/* One that is given up while it looks leaves nothing behind. */
static void
given_up(void)
{
	char		other[ZKL_MAX_PATH + 1];
	World	   *w = contended(ZKL_EXCLUSIVE, other);
	uint32_t	r = world_try(w, "/a", 1, ZKL_EXCLUSIVE);

	world_release(w, r);
	CHECK(w->requests[r].state == SLOT_FREE);
	world_run(w);
	CHECK_INT(w->zk.counts.multis, 0);
	world_wind_up(w);
}

/*
 * A node of ours that no request claims is in the way once: tries alone must
 * not be denied because of it until the session ends.
 */
static void
unclaimed_node(void)
{
	char		path[ZKL_MAX_PATH + 1];
	char		name[ZKL_MAX_ZNODE_NAME + 1];
	World	   *w = contended(ZKL_EXCLUSIVE, path);
	ZklUuid		uuid = world_leftover(w);
	uint32_t	r;

	CHECK_INT(model_delete(&w->zk, path), ZKL_RC_OK);
	zkl_znode_prefix(ZKL_DIALECT_CURATOR_RW, &uuid, ZKL_EXCLUSIVE, name);
	snprintf(path, sizeof(path), WORLD_ROOT "/a/%s", name);
	CHECK_INT(model_create(&w->zk, path, true, w->worker.session.id, "", path), 0);
	r = world_try(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(w->requests[r].state == SLOT_DENIED);
	world_release(w, r);
	world_run(w);
	r = world_try(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

int
main(void)
{
	unit_start();
	RUN(failed_tries);
	RUN(later_try);
	RUN(shared_try);
	RUN(behind_another_wait);
	RUN(released_before);
	RUN(likely_free);
	RUN(idle_server);
	RUN(unanswered);
	RUN(given_up);
	RUN(unclaimed_node);
	return unit_finish();
}
