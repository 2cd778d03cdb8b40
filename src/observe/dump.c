/*
 * dump.c
 *	  Writes everything that a manager believes at this moment.
 *
 * Owns nothing, and changes nothing.  Runs in the worker (and in tests), takes
 * no locks, knows neither PostgreSQL nor ZooKeeper.
 *
 * The data of znodes is left out.  Words and key=value pairs are those of the
 * trace; times are in ms before or after now.
 */
#include <string.h>

#include "core/host.h"
#include "core/node.h"
#include "core/owner.h"
#include "core/write.h"
#include "observe/dump.h"
#include "observe/line.h"
#include "observe/trace.h"

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
