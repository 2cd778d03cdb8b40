/*
 * oracle_told.c
 *	  Of the rules, those on what nodes tell to people: a hold that had to wait says
 *	  for how long, once it is old enough, and nobody tells of a wait that was none.
 *
 * Owns the latest grants, and the times since when workers run and are connected.
 * Must not know how the core decides.
 */
#include <string.h>

#include "faults.h"
#include "oracle.h"
#include "sight.h"

#ifndef REMEMBERED
#define REMEMBERED	1024		/* as many as are granted while one gets old */
#endif

static struct
{
	ZklUuid		uuid;
	int64_t		waited;
}			grants[MAX_HOSTS][REMEMBERED];
static uint32_t ngrants[MAX_HOSTS];
static Time at_work_since[MAX_HOSTS];
static Time at_work_until[MAX_HOSTS];

void
oracle_told_begin(void)
{
	memset(grants, 0, sizeof(grants));
	memset(ngrants, 0, sizeof(ngrants));
	memset(at_work_since, 0, sizeof(at_work_since));
	memset(at_work_until, 0, sizeof(at_work_until));
}

static int64_t
wait_told(const char *data, size_t length)
{
	ZklNodeData told;

	return zkl_node_data_parse(data, length, &told) ? told.waited_ms : 0;
}

void
oracle_told_grant(const Host *h, const Slot *s)
{
	uint32_t	i = ngrants[h->id]++ % REMEMBERED;

	grants[h->id][i].uuid = s->record.uuid;
	grants[h->id][i].waited = slot_wait(s, h->worker.decided_at);
}

/* Several holds may have had the node. */
void
oracle_told(const Host *h, const ZklUuid *uuid, const Effect *effect)
{
	int64_t		told = wait_told(effect->data, effect->length);
	int			i;

	for (i = 0; i < REMEMBERED && told != 0; i++)
		if (memcmp(&grants[h->id][i].uuid, uuid, sizeof(*uuid)) == 0 &&
			grants[h->id][i].waited == told)
			return;
	if (told != 0)
		broken("told", "%s tells a wait of %" PRId64 " ms, which is nobody's",
			   effect->path->text, told);
}

/* Whether the worker has had the time to write what it wants to write */
static bool
is_at_work(const Host *h)
{
	bool		ready = h->worker.m != NULL && !h->interrupted &&
	zkl_manager_ready(h->worker.m);

	if (!ready || base.now - at_work_until[h->id] > h->timeout / 3)
		at_work_since[h->id] = base.now;
	at_work_until[h->id] = base.now;
	return base.now - at_work_since[h->id] > h->timeout &&
		h->refused_at < base.now - h->timeout &&
		ens.rewound_at < base.now - h->timeout;
}

static bool
is_to_tell(const Host *h, const Slot *s)
{
	return s->state == SLOT_GRANTED && s->waited != 0 && !leans(h, s) &&
		s->record.generation == h->worker.session.generation && !s->tampered &&
		!s->breaking && s->overwritten == 0 &&
		s->overwritten_until == 0 && !s->node_gone &&
		zkl_dialect_marks(s->dialect) &&
		host_clock(h) - s->granted_at > h->timeout;
}

static void
check_node(const Host *h, int i, const Path *path)
{
	const Node *node = &path->node[HEAD];

	if (node->exists && wait_told(node->data, node->length) == 0 &&
		!zkl_node_data_is_cached(node->data, node->length))
		broken("told", "host %d slot %d has waited %" PRId64
			   " ms, and %s does not say so", h->id, i, h->slots[i].waited,
			   path->text);
}

void
oracle_told_all(const Host *h)
{
	int			i;

	if (!is_at_work(h))
		return;
	for (i = 0; i < MAX_SLOTS; i++)
	{
		const Slot *s = &h->slots[i];
		Path	   *path;

		if (!is_to_tell(h, s))
			continue;
		for (path = lock_path(s->lock)->children; path; path = path->sibling)
		{
			const Contender *c = contender_of(path);

			if (c->counts && c->mode == s->mode && same_uuid(s, &c->uuid))
				check_node(h, i, path);
		}
	}
}
