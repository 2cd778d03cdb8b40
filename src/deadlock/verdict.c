/*
 * verdict.c
 *	  The decision that a wait of ours ends for a deadlock.
 *
 * Owns d->verdict.  Runs in the worker (and in tests), takes no locks, knows neither
 * PostgreSQL nor ZooKeeper.
 */
#include <string.h>

#include "core/assert.h"
#include "deadlock/publication.h"
#include "deadlock/verdict.h"

/* ---- cycle ---- */

/*
 * The decision which wait ends, if some wait for each other in a cycle.
 *
 * The caller gives a graph, and room for the search.
 */

void
zkl_cycle_begin(ZklCycleGraph *graph, uint32_t nnodes)
{
	graph->nnodes = nnodes;
	graph->nedges = 0;
	memset(graph->first, 0xff, nnodes * sizeof(uint32_t));
}

ZklCycleEdge *
zkl_cycle_add(ZklCycleGraph *graph, uint32_t from, uint32_t to)
{
	ZklCycleEdge *edge = &graph->edges[graph->nedges];

	ZKL_ASSERT(from < graph->nnodes && to < graph->nnodes);
	edge->from = from;
	edge->to = to;
	edge->next = graph->first[from];
	graph->first[from] = graph->nedges++;
	return edge;
}

static bool
is_smaller(const ZklCycleEdge *a, const ZklCycleEdge *b)
{
	if (a->czxid != b->czxid || ZKL_MUTANT(ORDER_BY_ZXID_ALONE))
		return a->czxid < b->czxid;
	return memcmp(a->id.bytes, b->id.bytes, ZKL_UUID_BYTES) < 0;
}

/* Whether "last" leads to the victim of a cycle that the edge is on, too */
static bool
may_be_on_cycle(const ZklCycleEdge *edge, const ZklCycleEdge *last)
{
	if (edge->kind == ZKL_CYCLE_QUEUE)
		return true;
	if (edge->kind == ZKL_CYCLE_OWN && last->kind == ZKL_CYCLE_DEPENDENT)
		return true;
	return edge->kind == last->kind && is_smaller(edge, last);
}

/* How many edges lead from "wait" to the beginning of "last"; 0: none do. */
static uint32_t
search(const ZklCycleGraph *graph, uint32_t wait, const ZklCycleEdge *last)
{
	uint32_t	head = 0,
				tail = 0,
				depth = 0,
				end_of_depth = 1;

	memset(graph->came, 0xff, graph->nnodes * sizeof(uint32_t));
	graph->queue[tail++] = wait;
	while (head < tail)
	{
		uint32_t	node = graph->queue[head++];
		uint32_t	i;

		for (i = graph->first[node]; i != ZKL_NO_EDGE; i = graph->edges[i].next)
		{
			const ZklCycleEdge *edge = &graph->edges[i];

			if (edge->to == wait || graph->came[edge->to] != ZKL_NO_EDGE ||
				!may_be_on_cycle(edge, last))
				continue;
			graph->came[edge->to] = i;
			if (edge->to == last->from)
				return depth + 1;
			graph->queue[tail++] = edge->to;
		}
		if (head == end_of_depth)
		{
			depth++;
			end_of_depth = tail;
		}
	}
	return 0;
}

uint32_t
zkl_cycle_find(const ZklCycleGraph *graph, uint32_t wait, uint32_t *path)
{
	uint32_t	shortest = 0,
				i;

	for (i = 0; i < graph->nedges; i++)
	{
		const ZklCycleEdge *last = &graph->edges[i];
		uint32_t	n;
		uint32_t	at;

		if (last->to != wait || last->kind == ZKL_CYCLE_QUEUE)
			continue;
		n = search(graph, wait, last);
		if (n == 0 || (shortest != 0 && n + 1 >= shortest))
			continue;
		shortest = n + 1;
		path[n] = i;
		for (at = last->from; n > 0; at = graph->edges[path[n]].from)
			path[--n] = graph->came[at];
	}
	return shortest;
}

/* ---- verdict ---- */

/*
 * What a search has read is old when it comes to its end.  So the decision is a
 * transaction of ZooKeeper: it checks that each publication and each contender on
 * the cycle exists, and deletes the victim's own publications.  If it is applied,
 * all of them were there since the search read them, since no name is used twice; so
 * at that moment they waited for each other.  From then on no server
 * finds the victim on a cycle, so the cycle gets no other victim.  Two looks would
 * not do: two members of a cycle could both decide.
 *
 * It is no part of the chain of batches, since a refusal must not break that.  But
 * it checks the heartbeat node, so that it can never be applied once that is
 * replaced.  If its answer is lost, that is done; then the publications tell.
 */

#define TIME_TO_TELL	100000	/* µs: until a look of another host shows */

/* ---- whether it is time ---- */

/*
 * What the hosts saw of PostgreSQL's own locks may have changed since.  Ours has
 * looked just now.  Another one takes back what is no longer so within the time of
 * one look; all the rest of the cycle must have been there for as long.
 */
static bool
is_time(ZklDeadlock *d, ZklWait *w, const ZklStep *steps, size_t n)
{
	bool		own = false,
				others = false;
	int64_t		every = 0,
				zxid = 0;
	size_t		i;

	for (i = 0; i < n; i++)
	{
		const ZklEntry *entry = steps[i].entry;

		if (entry == NULL)
			continue;
		if (entry->czxid > zxid)
			zxid = entry->czxid;
		if (!entry->data->behind)
			continue;
		if (i == n - 1)
		{
			own = true;
			continue;
		}
		others = true;
		if (entry->data->every_ms > every)
			every = entry->data->every_ms;
	}
	if (own && d->m->now > w->dependents_at + w->patience / 2 &&
		!ZKL_MUTANT(STALE_DEPENDENTS))
		return false;
	return !others || ZKL_MUTANT(VERDICT_TOO_SOON) ||
		zkl_waits_cycle_lasts(d, w, zxid, every * 1000 + TIME_TO_TELL);
}

/* ---- what it says ---- */

static size_t
size_of_steps(size_t n)
{
	return offsetof(ZklDeadlockSteps, all) + n * sizeof(ZklEdge);
}

static ZklEdge *
add_step(ZklVerdict *v)
{
	ZklEdge    *edge = &v->steps->all[v->steps->n++];

	memset(edge, 0, sizeof(*edge));
	return edge;
}

/*
 * For each publication on the cycle, whose wait it ends the way to: that waits
 * for its holder, and perhaps the holder in PostgreSQL's own locks for the next.
 */
static void
tell_cycle(ZklDeadlock *d, const ZklRequest *r, const ZklStep *steps, size_t n)
{
	ZklVerdict *v = &d->verdict;
	const char *lock = r->lock->path + strlen(d->m->root);
	ZklLockMode mode = r->mode;
	ZklDialect	dialect = r->lock->dialect;
	const char *server = d->m->server;
	int32_t		pid = r->pid;
	size_t		i;

	ZKL_ASSERT(v->steps == NULL);
	v->steps = zkl_memory_alloc(d->m, size_of_steps(2 * n));
	v->steps->n = 0;
	for (i = 0; i < n; i++)
	{
		const ZklWaitData *data;
		ZklEdge    *edge;

		if (steps[i].entry == NULL)
			continue;
		data = steps[i].entry->data;
		edge = add_step(v);
		strcpy(edge->lock, lock);
		edge->mode = mode;
		edge->dialect = dialect;
		edge->known = zkl_waits_knows(d, r->ring.owner, lock);
		strcpy(edge->waiter_server, server);
		edge->waiter_pid = pid;
		strcpy(edge->blocker_server, data->server);
		edge->blocker_pid = data->holder_pid;
		if (data->behind)
		{
			edge = add_step(v);
			strcpy(edge->waiter_server, data->server);
			strcpy(edge->blocker_server, data->server);
			edge->waiter_pid = data->holder_pid;
			edge->blocker_pid = data->waiter_pid;
		}
		lock = data->lock;
		mode = data->mode;
		dialect = data->dialect;
		server = data->server;
		pid = data->waiter_pid;
	}
}

/* ---- the transaction ---- */

static void
add_check(ZklMultiOp **op, const char *path)
{
	(*op)->kind = ZKL_MULTI_CHECK;
	(*op)->path = path;
	(*op)->version = -1;
	(*op)++;
}

static void
send(ZklDeadlock *d, ZklWait *w, const ZklStep *steps, size_t n)
{
	size_t		most = 1 + 2 * n + ZKL_MAX_PUBLISHED;
	ZklMultiOp *ops = (ZklMultiOp *) (void *)
	zkl_actions_text(d->m, most * sizeof(ZklMultiOp));
	ZklMultiOp *op = ops;
	ZklAction  *action;
	ZklLink    *link,
			   *after;
	size_t		i;

	memset(ops, 0, most * sizeof(ZklMultiOp));
	add_check(&op, zkl_session_heartbeat(d->m, d->m->chain.number));
	for (i = 0; i < n && !ZKL_MUTANT(VERDICT_UNCHECKED); i++)
	{
		char	   *directory = zkl_actions_join(d->m, steps[i].directory->path,
												 "/", "");

		add_check(&op, zkl_actions_join(d->m, directory, steps[i].contender->name,
										""));
		if (steps[i].entry != NULL && i < n - 1)
			add_check(&op, zkl_publication_path(d, steps[i].entry->name));
	}
	zkl_foreach(link, after, &w->publications)
	{
		ZklPublication *p = zkl_container(ZklPublication, of_wait, link);

		ZKL_ASSERT((size_t) (op - ops) < most);
		op->kind = ZKL_MULTI_DELETE;
		op->path = zkl_publication_path(d, p->name);
		op->version = -1;
		op++;
		strcpy(d->verdict.publication, p->name);
		zkl_publication_judge(d, p);
	}
	action = zkl_operations_send(d->m, ZKL_DEADLOCK_VERDICT, NULL, w->r, ZKL_SEND_MULTI,
								 NULL);
	action->multi = ops;
	action->nmulti = (size_t) (op - ops);
}

/* Its own publication may have been retracted since the search read it. */
static bool
is_still_published(const ZklDeadlock *d, const ZklWait *w,
				   const ZklStep *last)
{
	const ZklPublication *p = zkl_publication_find(d, last->entry->name);

	return (p != NULL && p->wait == w) || ZKL_MUTANT(VERDICT_TAKEN_BACK);
}

bool
zkl_verdict_begin(ZklDeadlock *d, ZklWait *w, const ZklStep *steps, size_t n)
{
	ZklVerdict *v = &d->verdict;

	ZKL_ASSERT(n > 0 && steps[n - 1].entry != NULL);
	if (v->state != ZKL_VERDICT_NONE || d->m->chain.needed ||
		!is_still_published(d, w, &steps[n - 1]) || !is_time(d, w, steps, n))
		return false;
	v->state = ZKL_VERDICT_SENT;
	v->wait = w;
	v->submitted = w->r->submitted;
	v->uuid = w->r->node.uuid;
	tell_cycle(d, w->r, steps, n);
	send(d, w, steps, n);
	return true;
}

/* ---- what became of it ---- */

/*
 * If the request has ended meanwhile, or has another place in the queue, the verdict
 * was just a delete of publications.
 */
static ZklWait *
victim(const ZklDeadlock *d)
{
	const ZklVerdict *v = &d->verdict;
	const ZklRequest *r = v->wait->r;

	ZKL_ASSERT(v->state != ZKL_VERDICT_NONE && v->steps != NULL);
	return r->submitted == v->submitted && r->demand == ZKL_DEMAND_WAITING &&
		r->node.state == ZKL_NODE_EXISTS &&
		zkl_uuid_equal(&r->node.uuid, &v->uuid) ? v->wait : NULL;
}

static void
carry_out(ZklDeadlock *d)
{
	ZklWait    *w = victim(d);
	size_t		size = size_of_steps(d->verdict.steps->n);
	char	   *steps;

	if (w != NULL)
	{
		d->verdict.deadlocks++;
		steps = zkl_actions_text(d->m, size);
		memcpy(steps, d->verdict.steps, size);
		zkl_request_end_wait(d->m, w->r, ZKL_FAILURE_DEADLOCK, steps);
	}
	zkl_verdict_forget(d);
}

/* Somebody has gone on meanwhile, or has decided.  What is left of it? */
static void
refused(ZklDeadlock *d)
{
	ZklWait    *w = victim(d);

	zkl_verdict_forget(d);
	if (w != NULL && zkl_waits_refused(w))
		zkl_waits_want(d, w);
}

static void
unknown(ZklDeadlock *d)
{
	zkl_publication_judged(d, ZKL_OUTCOME_UNKNOWN);
	d->verdict.state = ZKL_VERDICT_UNSETTLED;
	zkl_session_need_chain(d->m);
}

static bool
is_refused(const ZklReply *reply)
{
	size_t		i;

	for (i = 0; i < reply->nresults; i++)
	{
		if (reply->results[i].rc != ZKL_RC_OK)
			return zkl_zkapi_is_definite(reply->results[i].rc);
	}
	return false;
}

void
zkl_verdict_reply(ZklDeadlock *d, const ZklReply *reply)
{
	if (d->verdict.state != ZKL_VERDICT_SENT)
		return;
	if (reply->rc == ZKL_RC_OK)
	{
		zkl_batches_want_proof(d->m);
		zkl_publication_judged(d, ZKL_OUTCOME_APPLIED);
		carry_out(d);
	}
	else if (is_refused(reply))
	{
		zkl_publication_judged(d, ZKL_OUTCOME_REFUSED);
		refused(d);
	}
	else
		unknown(d);
}

/*
 * The heartbeat node that it checked is replaced.  It deletes all of the
 * publications or none.
 */
void
zkl_verdict_listed(ZklDeadlock *d)
{
	if (d->verdict.state != ZKL_VERDICT_UNSETTLED)
		return;
	if (zkl_publication_find(d, d->verdict.publication) == NULL)
		carry_out(d);
	else
		refused(d);
}

void
zkl_verdict_disconnected(ZklDeadlock *d)
{
	if (d->verdict.state == ZKL_VERDICT_SENT)
		unknown(d);
}

void
zkl_verdict_forget(void *wing)
{
	ZklDeadlock *d = wing;

	if (d->verdict.steps != NULL)
		zkl_memory_release(d->m, d->verdict.steps);
	d->verdict.steps = NULL;
	d->verdict.state = ZKL_VERDICT_NONE;
}
