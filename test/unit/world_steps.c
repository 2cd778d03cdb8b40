/*
 * world_steps.c
 *	  Steps that many scenarios have in common.
 *
 * Owns nothing; drives a world by what world.h offers.
 */
#include "core/state.h"
#include "unit.h"
#include "world.h"

void
world_count_anew(World *w)
{
	memset(&w->zk.counts, 0, sizeof(w->zk.counts));
}

void
world_path(const World *w, uint32_t request, char *path)
{
	const Slot *r = &w->requests[request];
	char		name[ZKL_MAX_ZNODE_NAME + 1];

	zkl_znode_name(w->dialect, &r->record.uuid, r->record.mode, r->record.seq, name);
	snprintf(path, ZKL_MAX_PATH + 1, WORLD_ROOT "%s/%s", r->name, name);
}

uint32_t
world_chain(const World *w)
{
	return w->worker.m->chain.number;
}

void
world_heartbeat(const World *w, uint32_t chain, char *path)
{
	snprintf(path, ZKL_MAX_PATH + 1, WORLD_ROOT "/.servers/%016" PRIx64 ".%u",
			 (uint64_t) w->worker.session.id, chain);
}

void
world_lose_a_beat(World *w)
{
	char		heartbeat[ZKL_MAX_PATH + 1];

	world_heartbeat(w, world_chain(w), heartbeat);
	tree_find(heartbeat)->stat.version--;
}

void
world_write(World *w, uint32_t request, const char *data)
{
	char		path[ZKL_MAX_PATH + 1];

	world_path(w, request, path);
	CHECK_INT(model_set(&w->zk, path, data), ZKL_RC_OK);
}

void
world_warm_up(World *w, const char *name)
{
	int			i;

	for (i = 0; i < 3; i++)
	{
		uint32_t	r = world_submit(w, name, 999, ZKL_EXCLUSIVE);

		world_run(w);
		CHECK(world_holds(w, r));
		world_release(w, r);
		world_run(w);
	}
}

void
world_wind_up(World *w)
{
	uint32_t	i;

	for (i = 0; i < w->config.max_requests; i++)
		world_leave(w, i);
	world_flush(w);
	if (w->connected)
	{
		world_run(w);
		world_sleep(w, 2 * WORLD_TIMEOUT_MS * 1000LL);
		world_check(w);
	}
	world_end(w);
}
