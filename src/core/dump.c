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

#include "core/batches.h"
#include "core/downgrade.h"
#include "core/dump.h"
#include "core/hooks.h"
#include "core/keep.h"
#include "core/trace.h"

void
zkl_dump_item(const ZklDump *d, const ZklLock *lock, const char *item,
			  int64_t request, const ZklLine *line)
{
	ZklDumpItem row = {"", item, request, line->text};

	if (lock != NULL)
		row.path = lock->path + strlen(d->m->root);
	d->write(d->context, &row);
}

void
zkl_dump_count(ZklLine *line, const char *key, int64_t n)
{
	if (n > 0)
		zkl_line_number(line, key, n);
}

void
zkl_dump_list(ZklLine *line, const char *key, const ZklList *list)
{
	int64_t		n = 0;
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, list)
		n++;
	zkl_dump_count(line, key, n);
}

/* ---- the server ---- */

static void
dump_session(const ZklDump *d)
{
	static const char *const states[] = {
		[ZKL_CONNECTION_DOWN] = "down",
		[ZKL_CONNECTION_OPENING] = "opening",
		[ZKL_CONNECTION_PROVING] = "proving",
		[ZKL_CONNECTION_READY] = "ready",
	};
	const ZklManager *m = d->m;
	ZklLine		line;

	zkl_line_begin(&line);
	zkl_line_text(&line, "connection", states[m->connection.state]);
	zkl_line_session(&line, m->session.id);
	zkl_line_number(&line, "generation", m->session.generation);
	zkl_line_number(&line, "timeout_ms", m->session.timeout_ms);
	zkl_line_number(&line, "lease_ms", m->session_lease.until > d->now ?
					(m->session_lease.until - d->now) / 1000 : 0);
	zkl_line_flag(&line, "unverified", !m->session_lease.verified);
	zkl_line_hex(&line, "zxid_seen", (uint64_t) m->zxid.seen);
	zkl_line_number(&line, "chain", m->chain.number);
	zkl_line_number(&line, "in-use", m->chain.in_use);
	zkl_line_flag(&line, "chain-needed", m->chain.needed);
	zkl_line_flag(&line, "chain-sent", m->chain.sent);
	zkl_line_number(&line, "version", m->chain.version);
	zkl_line_number(&line, "acknowledged", m->chain.acknowledged);
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
	zkl_line_number(&line, "live", m->requests.nlive);
	zkl_line_number(&line, "queued", m->locks.nqueued);
	zkl_dump_list(&line, "creates", &pending[ZKL_RANK_CREATE]);
	zkl_dump_list(&line, "resends", &pending[ZKL_RANK_RESEND]);
	zkl_dump_list(&line, "downgrades", &pending[ZKL_RANK_CHANGE]);
	zkl_dump_list(&line, "deletes", &pending[ZKL_RANK_DELETE]);
	zkl_dump_list(&line, "late_deletes", &pending[ZKL_RANK_LATE_DELETE]);
	zkl_dump_list(&line, "lone_writes", &pending[ZKL_RANK_ALONE]);
	zkl_dump_list(&line, "stuck_writes", &m->writes.stuck);
	zkl_dump_list(&line, "stuck_locks", &m->reads.stuck);
	zkl_dump_list(&line, "kept", &m->kept);
	zkl_dump_list(&line, "undecided", &m->locks.dirty);
	zkl_dump_list(&line, "readers", &m->reads.readers);
	zkl_line_number(&line, "watches", (int64_t) m->reads.watches);
	zkl_dump_item(d, NULL, "requests", -1, &line);
}

static void
dump_batches(const ZklDump *d)
{
	const ZklManager *m = d->m;
	uint32_t	i;

	for (i = 0; i < m->batches.n; i++)
	{
		const ZklBatch *batch = zkl_batches_get(m, i);
		ZklLine		line;

		zkl_line_begin(&line);
		zkl_line_number(&line, "version", batch->version);
		zkl_line_number(&line, "operations", batch->nops);
		zkl_line_number(&line, "sent_ms_ago", (d->now - batch->sent_at) / 1000);
		zkl_dump_item(d, NULL, "batch", -1, &line);
	}
}

static void
dump_operations(const ZklDump *d)
{
	const ZklOperations *operations = &d->m->operations;
	uint32_t	i;

	for (i = 0; i < operations->n; i++)
	{
		const ZklOp *op = &operations->all[i];
		ZklLine		line;

		if (op->kind == ZKL_OP_FREE)
			continue;
		zkl_line_begin(&line);
		zkl_line_hex(&line, "tag", (uint64_t) op->serial << 32 | i);
		zkl_line_text(&line, "for", zkl_trace_op_name(d->m, op->kind));
		zkl_line_number(&line, "sent_ms_ago", (d->now - op->sent_at) / 1000);
		zkl_dump_item(d, op->lock, "operation",
					  op->request != NULL ? (int64_t) op->request->id : -1, &line);
	}
}

/* ---- the locks ---- */

static void
put_watch(ZklLine *line, const char *key, ZklWatchState state)
{
	static const char *const names[] = {
		[ZKL_WATCH_NONE] = "none",
		[ZKL_WATCH_WANTED] = "wanted",
		[ZKL_WATCH_SENT] = "sent",
		[ZKL_WATCH_ARMED] = "armed",
	};

	if (state != ZKL_WATCH_NONE)
		zkl_line_text(line, key, names[state]);
}

/* What we know of the directory */
static void
put_knowledge(ZklLine *line, const ZklLock *lock)
{
	if (lock->base.known)
	{
		zkl_line_number(line, "base", lock->base.seq);
		zkl_line_hex(line, "base_zxid", (uint64_t) lock->base.zxid);
	}
	if (lock->directory.watch == ZKL_WATCH_ARMED)
		zkl_line_hex(line, "directory_czxid",
					 (uint64_t) lock->directory.czxid);
	put_watch(line, "directory_watch", lock->directory.watch);
	put_watch(line, "children_watch", lock->listing.watch);
	zkl_dump_count(line, "foreign", (int64_t) lock->foreign.n);
	zkl_dump_count(line, "strangers", lock->foreign.strangers);
	if (lock->foreign.unknown_from != ZKL_SEQ_NONE)
		zkl_line_number(line, "unknown_from", lock->foreign.unknown_from);
	zkl_line_flag(line, "tainted", lock->foreign.tainted);
}

/* What we have yet to do, or have under way */
static void
put_work(ZklLine *line, const ZklLock *lock)
{
	zkl_line_flag(line, "undecided", zkl_list_linked(&lock->dirty));
	zkl_line_flag(line, "list-wanted", lock->listing.wanted);
	zkl_line_flag(line, "list-sent", lock->listing.sent);
	zkl_line_flag(line, "stuck", zkl_list_linked(&lock->listing.stuck));
	zkl_dump_list(line, "tries", &lock->tries.all);
	zkl_line_flag(line, "probe-sent", lock->tries.sent);
	zkl_line_flag(line, "make-parents", lock->parents.missing);
	if (lock->parents.rc != 0)
		zkl_line_number(line, "parents_rc", lock->parents.rc);
	zkl_line_flag(line, "renumbering", lock->renumber.wanted);
}

static void
dump_lock(const ZklDump *d, const ZklLock *lock)
{
	ZklLine		line;

	zkl_line_begin(&line);
	zkl_line_word(&line, zkl_line_dialect(lock->dialect));
	zkl_line_number(&line, "requests", lock->requests.n);
	zkl_line_number(&line, "held", lock->queue.nheld);
	if (lock->queue.waiting != NULL)
		zkl_line_number(&line, "next", lock->queue.waiting->id);
	put_knowledge(&line, lock);
	put_work(&line, lock);
	zkl_dump_item(d, lock, "lock", -1, &line);
}

static const char *
demand_name(const ZklRequest *r)
{
	static const char *const names[] = {
		[ZKL_DEMAND_UNUSED] = "unused",
		[ZKL_DEMAND_WAITING] = "waiting",
		[ZKL_DEMAND_GRANTED] = "granted",
		[ZKL_DEMAND_ANSWERED] = "answered",
		[ZKL_DEMAND_RELEASED] = "released",
	};

	return zkl_keep_is_on(r) ? "kept" : names[r->demand];
}

void
zkl_dump_place(ZklLine *line, const ZklWrite *w)
{
	static const char *const places[] = {
		[ZKL_WRITE_HELD] = "held",
		[ZKL_WRITE_PENDING] = "pending",
		[ZKL_WRITE_BATCH] = "batch",
		[ZKL_WRITE_ALONE] = "alone",
		[ZKL_WRITE_UNSETTLED] = "unsettled",
	};

	if (w->place != ZKL_WRITE_NONE)
		zkl_line_text(line, "write", places[w->place]);
}

static void
put_node(ZklLine *line, const ZklRequest *r)
{
	static const char *const names[] = {
		[ZKL_NODE_NONE] = "none",
		[ZKL_NODE_NEW] = "new",
		[ZKL_NODE_EXISTS] = "exists",
		[ZKL_NODE_DELETE] = "delete",
	};

	if (r->ring.cover != NULL)
		zkl_line_number(line, "covered_by", r->ring.cover->id);
	zkl_line_text(line, "node", names[r->node.state]);
	if (r->node.state == ZKL_NODE_NONE)
		return;
	zkl_dump_place(line, &r->node.write);
	if (r->node.seq >= 0)
		zkl_line_number(line, "number", r->node.seq);
	zkl_line_uuid(line, "uuid", &r->node.uuid);
	put_watch(line, "watch", r->look.watch);
	zkl_line_flag(line, "as-exclusive", r->mode != r->node.mode);
	zkl_line_flag(line, "downgrading", zkl_downgrade_is_on(r));
	if (zkl_downgrade_is_on(r))
		zkl_dump_place(line, &r->downgrade.write);
}

static void
dump_request(const ZklDump *d, const ZklRequest *r)
{
	ZklLine		line;

	zkl_line_begin(&line);
	zkl_line_number(&line, "request", r->id);
	zkl_line_word(&line, demand_name(r));
	zkl_line_word(&line, zkl_line_mode(r->mode));
	zkl_line_number(&line, "owner", (int64_t) r->ring.owner);
	put_node(&line, r);
	if (r->token != 0)
		zkl_line_number(&line, "token", r->token);
	zkl_line_flag(&line, "timed-out", r->timed_out);
	zkl_line_flag(&line, "together", r->together);
	zkl_line_flag(&line, "upgrade", r->place.upgrade);
	zkl_line_flag(&line, "broken", r->broken);
	zkl_dump_item(d, r->lock, "request", r->id, &line);
}

static void
dump_contenders(const ZklDump *d, const ZklLock *lock)
{
	size_t		i;

	for (i = 0; i < lock->foreign.n; i++)
	{
		const ZklContender *other = &lock->foreign.all[i];
		ZklLine		line;

		zkl_line_begin(&line);
		zkl_line_word(&line, zkl_line_mode(other->mode));
		zkl_line_number(&line, "number", other->seq);
		zkl_line_word(&line, lock->foreign.names + other->name);
		if (other->seq == lock->ahead.contender.seq &&
			other->mode == lock->ahead.contender.mode)
			put_watch(&line, "watch", lock->ahead.watch);
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
