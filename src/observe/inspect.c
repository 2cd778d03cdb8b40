/*
 * inspect.c
 *	  What a manager believes at this moment: for people, and its invariants for
 *	  tests.
 *
 * Owns nothing, changes nothing, and walks everything.  Runs in the worker (and in
 * tests), takes no locks, knows neither PostgreSQL nor ZooKeeper.
 */
#include <string.h>

#include "core/contenders.h"
#include "core/host.h"
#include "core/lock.h"
#include "core/node.h"
#include "core/owner.h"
#include "core/write.h"
#include "observe/inspect.h"

/* ---- dump: writes everything that a manager believes at this moment ---- */

/*
 * Owns nothing, and changes nothing.
 *
 * The data of znodes is left out.  Words and key=value pairs are those of the
 * trace; times are in ms before or after now.
 */

void
zkl_dump_item(const ZklDump *d, const ZklLock *lock, const char *item,
			  int64_t request, const ZklLine *line)
{
	ZklDumpItem row = {"", item, request, line->text};

	if (lock != NULL)
		row.path = lock->path + strlen(d->m->root);
	d->write(d->context, &row);
}

/* ---- the server ---- */

static void
dump_session(const ZklDump *d)
{
#define STATE(state) [ZKL_CONNECTION_##state] = #state
	static const char *const states[] = {
		STATE(DOWN), STATE(OPENING), STATE(PROVING), STATE(READY)
	};
#undef STATE
	const ZklManager *m = d->m;
	int64_t		lease = m->session_lease.until - d->now;
	ZklLine		line;

	zkl_line_begin(&line);
	zkl_line_name(&line, "connection=", states[m->connection.state]);
	zkl_line_put(&line, "session=0x%016" PRIx64 " generation=%u timeout_ms=%u"
				 " lease_ms=%" PRId64, m->session.id, m->session.generation,
				 m->session.timeout_ms, lease > 0 ? lease / 1000 : 0);
	zkl_line_if(&line, !m->session_lease.verified, "unverified");
	zkl_line_put(&line, "zxid_seen=0x%" PRIx64 " chain=%u in-use=%u",
				 m->zxid.seen, m->chain.number, m->chain.in_use);
	zkl_line_if(&line, m->chain.needed, "chain-needed");
	zkl_line_if(&line, m->chain.sent, "chain-sent");
	zkl_line_put(&line, "version=%d acknowledged=%d", m->chain.version,
				 m->chain.acknowledged);
	zkl_dump_item(d, NULL, "session", -1, &line);
}

/* What we have yet to send or decide */
static void
dump_lists(const ZklDump *d)
{
	const ZklManager *m = d->m;
	const ZklList *pending = m->writes.pending;
	ZklLine		line;

	zkl_line_begin(&line);
	zkl_line_put(&line, "live=%u queued=%u", m->requests.nlive, m->locks.nqueued);
	zkl_line_list(&line, "creates", &pending[ZKL_RANK_CREATE]);
	zkl_line_list(&line, "resends", &pending[ZKL_RANK_RESEND]);
	zkl_line_list(&line, "downgrades", &pending[ZKL_RANK_CHANGE]);
	zkl_line_list(&line, "deletes", &pending[ZKL_RANK_DELETE]);
	zkl_line_list(&line, "late_deletes", &pending[ZKL_RANK_LATE_DELETE]);
	zkl_line_list(&line, "lone_writes", &pending[ZKL_RANK_ALONE]);
	zkl_line_list(&line, "stuck_writes", &m->writes.stuck);
	zkl_line_list(&line, "stuck_locks", &m->reads.stuck);
	zkl_line_list(&line, "kept", &m->kept);
	zkl_line_list(&line, "undecided", &m->locks.dirty);
	zkl_line_list(&line, "readers", &m->reads.readers);
	zkl_line_put(&line, "watches=%" PRIu64, m->reads.watches);
	zkl_dump_item(d, NULL, "requests", -1, &line);
}

static void
dump_batches(const ZklDump *d)
{
	ZklLine		line;
	uint32_t	i;

	for (i = 0; i < d->m->batches.n; i++)
	{
		const ZklBatch *batch = zkl_batches_get(d->m, i);

		zkl_line_begin(&line);
		zkl_line_put(&line, "version=%d operations=%u sent_ms_ago=%" PRId64,
					 batch->version, batch->nops,
					 (d->now - batch->sent_at) / 1000);
		zkl_dump_item(d, NULL, "batch", -1, &line);
	}
}

static void
dump_operations(const ZklDump *d)
{
	const ZklOperations *operations = &d->m->operations;
	ZklLine		line;
	uint32_t	i;

	for (i = 0; i < operations->n; i++)
	{
		const ZklOp *op = &operations->all[i];

		if (op->kind == ZKL_OP_FREE)
			continue;
		zkl_line_begin(&line);
		zkl_line_put(&line, "tag=0x%" PRIx64, (uint64_t) op->serial << 32 | i);
		zkl_line_name(&line, "for=", zkl_trace_operation(d->m, op));
		zkl_line_put(&line, "sent_ms_ago=%" PRId64, (d->now - op->sent_at) / 1000);
		zkl_dump_item(d, op->lock, "operation",
					  op->request != NULL ? (int64_t) op->request->id : -1, &line);
	}
}

/* ---- the locks ---- */

static void
put_watch(ZklLine *line, const char *key, ZklWatchState state)
{
#define STATE(state) [ZKL_WATCH_##state] = #state
	static const char *const names[] = {
		[ZKL_WATCH_NONE] = NULL, STATE(WANTED), STATE(SENT), STATE(ARMED)
	};
#undef STATE

	zkl_line_name(line, key, names[state]);
}

/* What we know of the directory */
static void
put_knowledge(ZklLine *line, const ZklLock *lock)
{
	zkl_line_if(line, lock->base.known, "base=%" PRId64 " base_zxid=0x%" PRIx64,
				lock->base.seq, lock->base.zxid);
	zkl_line_if(line, lock->directory.watch == ZKL_WATCH_ARMED,
				"directory_czxid=0x%" PRIx64, lock->directory.czxid);
	put_watch(line, "directory_watch=", lock->directory.watch);
	put_watch(line, "children_watch=", lock->listing.watch);
	zkl_line_if(line, lock->foreign.n > 0, "foreign=%zu", lock->foreign.n);
	zkl_line_if(line, lock->foreign.strangers > 0, "strangers=%u",
				lock->foreign.strangers);
	zkl_line_if(line, lock->foreign.unknown_from != ZKL_SEQ_NONE,
				"unknown_from=%" PRId64, lock->foreign.unknown_from);
	zkl_line_if(line, lock->foreign.tainted, "tainted");
}

/* What we have yet to do, or have under way */
static void
put_work(ZklLine *line, const ZklLock *lock)
{
	zkl_line_if(line, zkl_list_linked(&lock->dirty), "undecided");
	zkl_line_if(line, lock->listing.wanted, "list-wanted");
	zkl_line_if(line, lock->listing.sent, "list-sent");
	zkl_line_if(line, zkl_list_linked(&lock->listing.stuck), "stuck");
	zkl_line_list(line, "tries", &lock->tries.all);
	zkl_line_if(line, lock->tries.sent, "probe-sent");
	zkl_line_if(line, lock->parents.missing, "make-parents");
	zkl_line_if(line, lock->parents.rc != 0, "parents_rc=%d", lock->parents.rc);
	zkl_line_if(line, lock->parents.guessed, "guessed");
	zkl_line_if(line, lock->parents.made, "made");
	zkl_line_if(line, lock->counter == ZKL_COUNTER_ENDED, "counter-ended");
	zkl_line_if(line, lock->counter == ZKL_COUNTER_RESET, "reset-sent");
}

static void
dump_lock(const ZklDump *d, const ZklLock *lock)
{
	ZklLine		line;

	zkl_line_begin(&line);
	zkl_line_put(&line, "%s requests=%u held=%u", zkl_line_dialects[lock->dialect],
				 lock->requests.n, lock->queue.nheld);
	if (lock->queue.waiting != NULL)
		zkl_line_put(&line, "next=%u", lock->queue.waiting->id);
	put_knowledge(&line, lock);
	put_work(&line, lock);
	zkl_dump_item(d, lock, "lock", -1, &line);
}

static const char *
demand_name(const ZklRequest *r)
{
#define DEMAND(state) [ZKL_DEMAND_##state] = #state
	static const char *const names[] = {
		DEMAND(UNUSED), DEMAND(WAITING), DEMAND(GRANTED), DEMAND(ANSWERED),
		DEMAND(RELEASED)
	};
#undef DEMAND

	return zkl_keep_is_on(r) ? "KEPT" : names[r->demand];
}

void
zkl_dump_place(ZklLine *line, const ZklWrite *w)
{
#define PLACE(place) [ZKL_WRITE_##place] = #place
	static const char *const places[] = {
		[ZKL_WRITE_NONE] = NULL, PLACE(HELD), PLACE(PENDING), PLACE(BATCH),
		PLACE(ALONE), PLACE(UNSETTLED)
	};
#undef PLACE

	zkl_line_name(line, "write=", places[w->state]);
}

static void
put_node(ZklLine *line, const ZklRequest *r)
{
#define STATE(state) [ZKL_NODE_##state] = #state
	static const char *const names[] = {
		STATE(NONE), STATE(NEW), STATE(EXISTS), STATE(DELETE)
	};
#undef STATE

	zkl_line_name(line, "node=", names[r->node.state]);
	if (r->node.state == ZKL_NODE_NONE)
		return;
	zkl_dump_place(line, &r->node.write);
	zkl_line_if(line, r->node.seq >= 0, "number=%" PRId64, r->node.seq);
	if (zkl_node_was_sent(r))
		zkl_line_uuid(line, &r->node.uuid);
	put_watch(line, "watch=", r->look.watch);
	zkl_line_if(line, r->mode != r->node.mode, "as-exclusive");
	zkl_line_if(line, zkl_downgrade_is_on(r), "downgrading");
	if (zkl_downgrade_is_on(r))
		zkl_dump_place(line, &r->downgrade.write);
}

static void
dump_request(const ZklDump *d, const ZklRequest *r)
{
	ZklLine		line;

	zkl_line_begin(&line);
	zkl_line_put(&line, "request=%u", r->id);
	zkl_line_name(&line, "", demand_name(r));
	zkl_line_name(&line, "", zkl_line_modes[r->mode]);
	zkl_line_put(&line, "owner=%" PRId64, (int64_t) r->ring.owner);
	if (r->ring.cover != NULL)
		zkl_line_put(&line, "covered_by=%u", r->ring.cover->id);
	zkl_line_if(&line, zkl_siblings_stays(r), "stays");
	put_node(&line, r);
	zkl_line_if(&line, r->token != 0, "token=%" PRId64, r->token);
	zkl_line_if(&line, r->timed_out, "timed-out");
	zkl_line_if(&line, r->together, "together");
	zkl_line_if(&line, r->place.upgrade, "upgrade");
	zkl_line_if(&line, r->broken, "broken");
	zkl_dump_item(d, r->lock, "request", r->id, &line);
}

static void
dump_contenders(const ZklDump *d, const ZklLock *lock)
{
	ZklLine		line;
	size_t		i;

	for (i = 0; i < lock->foreign.n; i++)
	{
		const ZklContender *other = &lock->foreign.all[i];

		zkl_line_begin(&line);
		zkl_line_name(&line, "", zkl_line_modes[other->mode]);
		zkl_line_put(&line, "number=%" PRId64 " %s", other->seq,
					 lock->foreign.names + other->name);
		if (other->seq == lock->ahead.contender.seq &&
			other->mode == lock->ahead.contender.mode)
			put_watch(&line, "watch=", lock->ahead.watch);
		zkl_dump_item(d, lock, "contender", -1, &line);
	}
}

static void
dump_locks(const ZklDump *d)
{
	const ZklTable *locks = &d->m->locks.by_path;
	size_t		i;
	ZklLink    *link,
			   *after,
			   *request,
			   *request_after;

	for (i = 0; i < locks->nbuckets; i++)
	{
		zkl_foreach(link, after, &locks->buckets[i])
		{
			const ZklLock *lock = zkl_container(ZklLock, by_path, link);

			dump_lock(d, lock);
			zkl_foreach(request, request_after, &lock->requests.all)
				dump_request(d, zkl_container(ZklRequest, all, request));
			dump_contenders(d, lock);
		}
	}
}

void
zkl_dump_write(const ZklManager *m, int64_t now, ZklWriteDump write,
			   void *context)
{
	ZklDump		d = {m, now, write, context};

	dump_session(&d);
	dump_lists(&d);
	dump_batches(&d);
	dump_operations(&d);
	dump_locks(&d);
	ZKL_HOOKS(m, dump, &d);
}

/* ---- check: the invariants of the core, as code: for tests and simulations ---- */

/*
 * Owns nothing, changes nothing, and walks everything.
 */

static const char *
check_request(const ZklManager *m, const ZklRequest *r)
{
	bool		queued = zkl_list_linked(&r->place.link);
	bool		trying = zkl_list_linked(&r->trying);

	if (r->demand == ZKL_DEMAND_UNUSED)
		return r->node.state == ZKL_NODE_NONE && !queued && !trying &&
			r->node.write.state == ZKL_WRITE_NONE && !zkl_downgrade_is_on(r) && !zkl_list_linked(&r->cache.link) &&
			!zkl_list_linked(&r->rewrite.link) &&
			!zkl_list_linked(&r->all) && !zkl_list_linked(&r->look.unwatched) &&
			!zkl_list_linked(&r->look.unseen) &&
			!zkl_list_linked(&r->node.by_uuid) && !zkl_keep_is_on(r) &&
			!zkl_list_linked(&r->ring.by_owner) ? NULL :
			"an unused request has a node or is in a list";
	if (r->lock == NULL)
		return "a request in use has no lock";
	if (r->demand == ZKL_DEMAND_RELEASED && r->node.state == ZKL_NODE_NONE)
		return "a released request without a node was not given back";
	if (zkl_keep_is_on(r) && r->demand != ZKL_DEMAND_GRANTED)
		return "something is kept that is not held";
	if (queued != (r->node.state == ZKL_NODE_EXISTS))
		return "the queue and the nodes that exist differ";
	if (zkl_list_linked(&r->look.unwatched) ?
		!queued || r->look.watch != ZKL_WATCH_NONE :
		queued && r->look.watch == ZKL_WATCH_NONE &&
		!zkl_downgrade_pending(r) &&
		(r->demand == ZKL_DEMAND_GRANTED || r->lock->queue.waiting == r))
		return "the nodes without a watch and the list of them differ";
	if (zkl_list_linked(&r->look.unseen) ?
		!queued || r->look.watch == ZKL_WATCH_ARMED :
		zkl_list_linked(&r->look.unwatched) ||
		(queued && r->look.watch == ZKL_WATCH_SENT))
		return "the nodes that may be marked unseen differ from their list";
	if (queued && r->demand != ZKL_DEMAND_WAITING &&
		r->demand != ZKL_DEMAND_GRANTED)
		return "a request that neither waits nor holds is in the queue";
	if ((r->node.write.state != ZKL_WRITE_NONE) !=
		(r->node.state == ZKL_NODE_NEW || r->node.state == ZKL_NODE_DELETE) ||
		(zkl_downgrade_is_on(r) && r->node.state != ZKL_NODE_EXISTS &&
		 r->node.write.state != ZKL_WRITE_HELD) ||
		!zkl_write_is_in_place(&r->node.write) || !zkl_write_is_in_place(&r->downgrade.write))
		return "the writes and the nodes to be written differ";
	if (r->node.state == ZKL_NODE_DELETE &&
		r->node.write.state == ZKL_WRITE_HELD &&
		!zkl_list_linked(&r->node.write.link) && !zkl_downgrade_pending(r))
		return "a delete waits for nothing";
	if (r->downgrade.either && r->node.state != ZKL_NODE_DELETE)
		return "a node that is not being deleted may have either name";
	if (trying != (r->demand == ZKL_DEMAND_WAITING &&
				   r->node.state == ZKL_NODE_NONE))
		return "the tries without a node differ from their list";
	if (r->demand == ZKL_DEMAND_GRANTED &&
		(r->ring.cover == NULL) != (r->node.state == ZKL_NODE_EXISTS))
		return "a hold has neither or both of a node and a cover";
	if (r->ring.cover != NULL &&
		(r->demand != ZKL_DEMAND_GRANTED ||
		 r->ring.cover->demand != ZKL_DEMAND_GRANTED ||
		 r->ring.cover->node.state != ZKL_NODE_EXISTS ||
		 !zkl_siblings_may_share(r->ring.cover, r) ||
		 r->ring.cover->lock != r->lock))
		return "a hold is covered by what does not hold";
	if (zkl_siblings_stays(r) &&
		(r->demand != ZKL_DEMAND_GRANTED || zkl_keep_is_on(r) ||
		 zkl_siblings_leaning(r) == NULL))
		return "a hold stays for nobody";
	if (zkl_downgrade_is_on(r) && r->node.state == ZKL_NODE_EXISTS &&
		!zkl_siblings_stays(r))
		return "a hold goes on as a shared one although its holder has it";
	if (r->demand == ZKL_DEMAND_WAITING && r->node.state == ZKL_NODE_NONE &&
		!r->timed_out)
		return "a request waits without a node to be";
	if (!zkl_list_linked(&r->ring.by_owner))
		return "a request cannot be found by its owner";
	if (zkl_node_was_sent(r) && zkl_node_find(m, &r->node.uuid) != r)
		return "a node cannot be found by its id";
	return NULL;
}

static bool
is_rewriting(const ZklManager *m, const ZklRequest *r)
{
	uint32_t	i;

	for (i = 0; i < m->operations.n; i++)
	{
		const ZklOp *op = &m->operations.all[i];

		if (op->kind == ZKL_OP_REWRITE && op->request == r &&
			op->submitted == r->submitted)
			return true;
	}
	return false;
}

/*
 * A mark says that a lock may be cached: it is so, or is to become so, or the mark
 * or the node is about to go.  And while it may be cached, each new contender
 * comes to light.
 */
static const char *
check_cache(const ZklManager *m, const ZklRequest *r)
{
	bool		watched = r->lock->listing.watch != ZKL_WATCH_NONE ||
	r->lock->listing.sent || r->lock->listing.wanted ||
	m->connection.state != ZKL_CONNECTION_READY;

	if ((r->cache.state != ZKL_CACHE_NONE) != zkl_list_linked(&r->cache.link) ||
		(r->cache.state != ZKL_CACHE_NONE) != (r->lock->cached == r))
		return "a lock that may be cached is not known as such";
	if (r->rewrite.writing && m->connection.state != ZKL_CONNECTION_DOWN &&
		!is_rewriting(m, r))
		return "an answer is awaited that cannot come";
	switch (r->cache.state)
	{
		case ZKL_CACHE_HOPED:
			return !r->rewrite.marked ? "a lock may be cached without a mark" :
				r->node.state == ZKL_NODE_EXISTS && !watched ?
				"no watch tells whether a lock may be cached" : NULL;
		case ZKL_CACHE_CACHEABLE:
			return !r->rewrite.marked || r->demand != ZKL_DEMAND_GRANTED ||
				r->broken || zkl_keep_is_on(r) || r->lock->requests.n != 1 ||
				r->node.mode != ZKL_EXCLUSIVE ||
				zkl_downgrade_is_on(r) ||
				r->lock->listing.watch != ZKL_WATCH_ARMED ?
				"a lock may be cached that others want, or may want unseen" :
				NULL;
		default:
			return r->rewrite.marked && r->node.state == ZKL_NODE_EXISTS &&
				!r->rewrite.writing && !zkl_list_linked(&r->rewrite.link) &&
				r->look.watch == ZKL_WATCH_ARMED && !r->broken &&
				!zkl_downgrade_is_on(r) ?
				"a mark stays on a lock that is not cached" : NULL;
	}
}

/* What was said of a znode, or heard, goes with what is done. */
static const char *
check_words(const ZklManager *m, const ZklRequest *r)
{
	if (r->askers.n > ZKL_MAX_ASKERS)
		return "a znode has more askers than there is room for";
	if (r->askers.over && r->node.state != ZKL_NODE_DELETE &&
		r->node.state != ZKL_NODE_NONE)
		return "a znode that may have had a word is not being deleted";
	if (r->askers.over && r->askers.n > 0 &&
		r->node.write.state == ZKL_WRITE_PENDING &&
		r->node.write.rank == ZKL_RANK_LATE_DELETE)
		return "the delete of a znode that had a word is put off";
	return zkl_node_was_sent(r) && zkl_departed_has(m, r->lock, &r->node.uuid) ?
		"a znode of ours has departed" : NULL;
}

static const char *
check_departed(const ZklManager *m, const ZklLock *lock)
{
	size_t		i;

	for (i = 0; i < lock->foreign.n; i++)
	{
		if (zkl_departed_is(m, lock, &lock->foreign.all[i]))
			return "a znode that has departed stands in a queue";
	}
	return NULL;
}

static const char *
check_queue(const ZklLock *lock)
{
	const ZklLink *link;
	const ZklRequest *before = NULL,
			   *waiting = NULL;
	uint32_t	held = 0,
				exclusive = 0,
				upgrades = 0;

	for (link = lock->queue.own.head.next; link != &lock->queue.own.head;
		 link = link->next)
	{
		const ZklRequest *r = zkl_container(ZklRequest, place.link, link);

		if (before != NULL && before->node.seq >= r->node.seq &&
			!before->broken &&
			!r->broken)
			return "a queue is out of order";
		if (r->demand == ZKL_DEMAND_GRANTED)
		{
			held++;
			exclusive += r->node.mode == ZKL_EXCLUSIVE;
		}
		else if (waiting == NULL)
			waiting = r;
		if (r->place.upgrade)
			upgrades++;
		before = r;
	}
	if (held != lock->queue.nheld)
		return "the count of holds is wrong";
	if (exclusive != lock->queue.nexclusive)
		return "the count of exclusive holds is wrong";
	if (waiting != lock->queue.waiting)
		return "the first that waits is wrong";
	if (upgrades != lock->queue.nupgrades)
		return "the count of upgrades is wrong";
	return NULL;
}

/*
 * No two local holders of different owners have conflicting modes, except
 * holders that lost the lock to an operator.
 */
static const char *
check_holders(const ZklLock *lock)
{
	const ZklRequest *exclusive = NULL;
	const ZklRequest *other = NULL; /* of another owner than the first holder */
	const ZklRequest *first = NULL;
	const ZklLink *link;

	for (link = lock->queue.own.head.next; link != &lock->queue.own.head;
		 link = link->next)
	{
		const ZklRequest *r = zkl_container(ZklRequest, place.link, link);

		if (r->demand != ZKL_DEMAND_GRANTED || r->broken)
			continue;
		if (first == NULL)
			first = r;
		if (r->ring.owner != first->ring.owner)
			other = r;
		if (r->node.mode == ZKL_EXCLUSIVE)
			exclusive = r;
	}
	return exclusive != NULL && other != NULL ?
		"two owners hold a lock that one holds exclusively" : NULL;
}

/* No permit is held with its maximum, or more, ahead of it. */
static const char *
check_permits(const ZklLock *lock)
{
	const ZklLink *link;
	uint32_t	ahead = 0;

	for (link = lock->queue.own.head.next; link != &lock->queue.own.head;
		 link = link->next)
	{
		const ZklRequest *r = zkl_container(ZklRequest, place.link, link);

		if (r->demand == ZKL_DEMAND_GRANTED && ahead >= r->max)
			return "more permits are held than there may be";
		ahead++;
	}
	return NULL;
}

static const char *
check_lock(const ZklLock *lock)
{
	const char *why = check_queue(lock);
	const ZklLink *link;
	uint32_t	timed_out = 0,
				together = 0,
				n = 0;

	if (why == NULL && lock->dialect == ZKL_DIALECT_PERMIT)
		why = check_permits(lock);
	else if (why == NULL)
		why = check_holders(lock);
	for (link = lock->requests.all.head.next; link != &lock->requests.all.head;
		 link = link->next)
	{
		const ZklRequest *r = zkl_container(ZklRequest, all, link);

		n++;
		if (r->demand == ZKL_DEMAND_WAITING && r->timed_out)
			timed_out++;
		together += r->together;
		if (r->together && r->demand != ZKL_DEMAND_WAITING)
			return "one that is answered is to be told that it waits";
	}
	if (why == NULL && n != lock->requests.n)
		why = "the count of a lock's requests is wrong";
	if (why == NULL && timed_out != lock->requests.ntimed_out)
		why = "the count of tries that timed out is wrong";
	if (why == NULL && together != lock->requests.ntogether)
		why = "the count of those to be told that they wait is wrong";
	if (why == NULL && lock->counter == ZKL_COUNTER_ENDED && !zkl_lock_has_node(lock))
		why = "a directory whose counter has ended is left as it is";
	if (why == NULL && lock->counter == ZKL_COUNTER_RESET && lock->pins == 0)
		why = "an answer about a directory is awaited that cannot come";
	if (why == NULL && n == 0 && lock->pins == 0 && !zkl_list_linked(&lock->idle))
		why = "a lock that nobody uses was kept";
	return why;
}

static const char *
check_wings(const ZklManager *m)
{
	const ZklWingState *w;
	const char *why = NULL;

	for (w = m->wings; w->wing != NULL && why == NULL; w++)
	{
		if (w->wing->check != NULL)
			why = w->wing->check(w->state);
	}
	return why;
}

const char *
zkl_check_all(const ZklManager *m)
{
	const char *why = NULL;
	uint64_t	watches = 0;
	uint32_t	live = 0,
				queued = 0,
				waiting = 0,
				i;
	size_t		bucket;

	for (i = 0; i < m->config.max_requests && why == NULL; i++)
	{
		const ZklRequest *r = &m->requests.all[i];

		why = check_request(m, r);
		if (why == NULL && r->demand != ZKL_DEMAND_UNUSED)
			why = check_cache(m, r);
		if (why == NULL && r->demand != ZKL_DEMAND_UNUSED)
			why = check_words(m, r);
		if (r->demand == ZKL_DEMAND_WAITING || r->demand == ZKL_DEMAND_GRANTED)
			live++;
		queued += zkl_list_linked(&r->place.link);
		watches += r->look.watch == ZKL_WATCH_ARMED;
	}
	if (why == NULL)
		why = check_wings(m);
	if (why == NULL && live != m->requests.nlive)
		why = "the count of live requests is wrong";
	if (why == NULL && queued != m->locks.nqueued)
		why = "the count of requests in queues is wrong";
	for (bucket = 0; bucket < m->locks.by_path.nbuckets; bucket++)
	{
		const ZklList *list = &m->locks.by_path.buckets[bucket];
		const ZklLink *link;

		for (link = list->head.next; link != &list->head && why == NULL;
			 link = link->next)
		{
			const ZklLock *lock = zkl_container(ZklLock, by_path, link);

			why = check_lock(lock);
			if (why == NULL)
				why = check_departed(m, lock);
			waiting += lock->queue.waiting != NULL;
			watches += (lock->directory.watch == ZKL_WATCH_ARMED) +
				(lock->ahead.watch == ZKL_WATCH_ARMED) +
				(lock->listing.watch == ZKL_WATCH_ARMED);
		}
	}
	if (why == NULL && waiting != m->locks.nwaiting)
		why = "the count of locks with a queue is wrong";
	if (why == NULL && watches != m->reads.watches)
		why = "the count of watches is wrong";
	return why;
}
