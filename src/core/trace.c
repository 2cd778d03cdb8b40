/*
 * trace.c
 *	  Tells, line by line, what happens to a manager and what it does about it.
 *
 * Owns m->trace, and changes nothing that a decision depends on.  Runs in the
 * worker (and in tests), takes no locks, knows neither PostgreSQL nor
 * ZooKeeper.
 *
 * A line begins with "in" (an event) or "out" (an action).  The data of znodes
 * is left out: operators of ZooKeeper keep secrets there.
 */
#include "core/hooks.h"
#include "core/line.h"
#include "core/operations.h"
#include "core/trace.h"

void
zkl_trace_begin(ZklManager *m, ZklWriteLine write, void *context)
{
	m->trace.write = write;
	m->trace.context = context;
	m->trace.ntraced = m->actions.n;
}

static void
begin_line(ZklLine *line, const char *direction, const char *what)
{
	zkl_line_begin(line);
	zkl_line_word(line, direction);
	zkl_line_word(line, what);
}

/* Another line of the same event may have ended the trace. */
static void
end_line(const ZklManager *m, const ZklLine *line)
{
	if (zkl_trace_is_on(m))
		m->trace.write(m->trace.context, line->text);
}

/* First come the actions of the previous event. */
static void
begin_event(ZklManager *m, ZklLine *line, const char *what)
{
	zkl_trace_actions(m);
	begin_line(line, "in", what);
}

static void
put_request(const ZklManager *m, ZklLine *line, uint32_t request)
{
	const ZklLock *lock = m->requests.all[request].lock;

	zkl_line_number(line, "request", request);
	if (lock != NULL)
		zkl_line_word(line, lock->path);
}

/* ---- events from backends ---- */

static void
put_demand(const ZklManager *m, ZklLine *line, uint32_t request,
		   const ZklDemand *demand)
{
	zkl_line_number(line, "request", request);
	zkl_line_path(line, m->root, demand->name);
	zkl_line_word(line, zkl_line_mode(demand->mode));
	zkl_line_word(line, zkl_line_dialect(demand->dialect));
	zkl_line_number(line, "owner", (int64_t) demand->owner);
	if (demand->sibling >= 0)
		zkl_line_number(line, "sibling", demand->sibling);
	if (demand->dialect == ZKL_DIALECT_PERMIT)
		zkl_line_number(line, "max", demand->max);
	if (demand->patience > 0)
		zkl_line_number(line, "patience_ms", demand->patience / 1000);
	zkl_line_flag(line, "timed-out", demand->timed_out);
	zkl_line_flag(line, "together", demand->together);
}

static void
put_end(ZklLine *line, const ZklEnd *end)
{
	zkl_line_flag(line, "epilogue", end->epilogue);
	if (end->keep_until != 0)
		zkl_line_number(line, "keep_until", end->keep_until);
}

static void
put_record(ZklLine *line, const ZklRecord *record)
{
	if (record->sent)
	{
		zkl_line_word(line, zkl_line_mode(record->mode));
		zkl_line_uuid(line, "uuid", &record->uuid);
		if (record->seq >= 0)
			zkl_line_number(line, "number", record->seq);
		zkl_line_number(line, "index", record->index);
	}
	zkl_line_number(line, "generation", record->generation);
	zkl_line_flag(line, "going", record->going);
	zkl_line_flag(line, "retired", record->retired);
	zkl_line_flag(line, "disowned", record->disowned);
}

void
zkl_trace_restore(ZklManager *m, uint32_t request, const ZklRestored *slot)
{
	static const char *const states[] = {
		[ZKL_SLOT_SAYS_WAITING] = "waiting",
		[ZKL_SLOT_SAYS_GRANTED] = "granted",
		[ZKL_SLOT_SAYS_ANSWERED] = "answered",
		[ZKL_SLOT_SAYS_LOST] = "lost",
		[ZKL_SLOT_SAYS_RELEASED] = "released",
	};
	ZklLine		line;

	begin_event(m, &line, "restore");
	put_demand(m, &line, request, &slot->demand);
	zkl_line_text(&line, "state", states[slot->state]);
	zkl_line_flag(&line, "broken", slot->broken);
	zkl_line_flag(&line, "overdue", slot->overdue);
	zkl_line_flag(&line, "over", slot->over);
	put_record(&line, &slot->record);
	put_end(&line, &slot->end);
	end_line(m, &line);
}

/* ---- events from ZooKeeper ---- */

static void
put_session(ZklLine *line, const ZklSession *session)
{
	zkl_line_session(line, session->id);
	zkl_line_number(line, "generation", session->generation);
	zkl_line_number(line, "timeout_ms", session->timeout_ms);
	zkl_line_hex(line, "zxid_seen", (uint64_t) session->zxid_seen);
}

const char *
zkl_trace_op_name(const ZklManager *m, ZklOpKind kind)
{
	static const char *const names[] = {
		[ZKL_OP_FREE] = "unknown",
		[ZKL_OP_BATCH] = "batch",
		[ZKL_OP_CHAIN] = "chain",
		[ZKL_OP_CHAIN_FENCE] = "chain-fence",
		[ZKL_OP_CHAIN_IN_USE] = "chain-in-use",
		[ZKL_OP_CHAIN_LIST] = "chain-list",
		[ZKL_OP_LIST] = "list",
		[ZKL_OP_PROBE] = "probe",
		[ZKL_OP_PROBE_MARK] = "probe-mark",
		[ZKL_OP_WATCH_AHEAD] = "watch-ahead",
		[ZKL_OP_WATCH_DIRECTORY] = "watch-directory",
		[ZKL_OP_WATCH_OWN] = "watch-own",
		[ZKL_OP_TOKEN] = "token",
		[ZKL_OP_PARENT] = "parent",
		[ZKL_OP_DELETE] = "delete",
		[ZKL_OP_RENUMBER_DELETE] = "renumber-delete",
		[ZKL_OP_RENUMBER_LIST] = "renumber-list",
		[ZKL_OP_JANITOR] = "janitor",
		[ZKL_OP_SWEEP] = "sweep",
		[ZKL_OP_PROBE_SYNC] = "probe-sync",
		[ZKL_OP_REWRITE] = "rewrite",
		[ZKL_OP_REVIVED] = "revived",
		[ZKL_OP_IGNORE] = "ignored",
	};

	return kind < ZKL_OP_WING ? names[kind] : zkl_hooks_operation(m, kind);
}

/* The operation with this tag; NULL: it is not under way any more. */
static const ZklOp *
put_tag(const ZklManager *m, ZklLine *line, uint64_t tag)
{
	const ZklOp *op = zkl_operations_find(m, tag);

	zkl_line_hex(line, "tag", tag);
	zkl_line_text(line, "for",
				  zkl_trace_op_name(m, op != NULL ? op->kind : ZKL_OP_FREE));
	return op;
}

/* Traces the answers that say more than that all went well. */
static void
tell_results(const ZklManager *m, const ZklReply *reply)
{
	size_t		i;

	for (i = 0; i < reply->nresults; i++)
	{
		const ZklMultiResult *result = &reply->results[i];
		ZklLine		line;

		if (result->rc == ZKL_RC_OK && result->path == NULL)
			continue;
		begin_line(&line, "in", "result");
		zkl_line_number(&line, "operation", (int64_t) i);
		zkl_line_number(&line, "rc", result->rc);
		zkl_line_word(&line, result->path != NULL ? result->path : "");
		end_line(m, &line);
	}
}

static void
describe_reply(const ZklManager *m, ZklLine *line, uint64_t tag,
			   const ZklReply *reply)
{
	const ZklOp *op = put_tag(m, line, tag);

	if (op != NULL && op->request != NULL)
		zkl_line_number(line, "request", op->request->id);
	if (op != NULL && op->lock != NULL)
		zkl_line_word(line, op->lock->path);
	zkl_line_number(line, "rc", reply->rc);
	if (reply->stat.czxid != 0)
	{
		zkl_line_hex(line, "czxid", (uint64_t) reply->stat.czxid);
		zkl_line_hex(line, "mzxid", (uint64_t) reply->stat.mzxid);
		zkl_line_number(line, "version", reply->stat.version);
	}
	if (reply->children != NULL)
		zkl_line_number(line, "children", (int64_t) reply->nchildren);
}

/* ---- events ---- */

static void
put_event(const ZklManager *m, ZklLine *line, const ZklEvent *event)
{
	switch (event->kind)
	{
		case ZKL_EVENT_ATTACH:
		case ZKL_EVENT_CONNECTED:
			put_session(line, event->session);
			break;
		case ZKL_EVENT_SUBMIT:
			put_demand(m, line, event->request, event->demand);
			break;
		case ZKL_EVENT_TIME_OUT:
		case ZKL_EVENT_NEWS:
		case ZKL_EVENT_RELEASE:
		case ZKL_EVENT_OVERDUE:
			put_request(m, line, event->request);
			put_end(line, &event->end);
			break;
		case ZKL_EVENT_CACHE:
			zkl_line_number(line, "time_ms", event->cache_time / 1000);
			break;
		case ZKL_EVENT_REPLY:
			describe_reply(m, line, event->tag, event->reply);
			break;
		case ZKL_EVENT_DELETED:
		case ZKL_EVENT_CHANGED:
		case ZKL_EVENT_CHILDREN:
			zkl_line_word(line, event->path);
			break;
		case ZKL_EVENT_DISCONNECTED:
		case ZKL_EVENT_SESSION_LOST:
			break;
	}
}

/* A host tells for how long locks stay cached even if that is as before. */
void
zkl_trace_event(ZklManager *m, const ZklEvent *event)
{
	static const char *const names[] = {
		[ZKL_EVENT_ATTACH] = "attach",
		[ZKL_EVENT_SUBMIT] = "submit",
		[ZKL_EVENT_TIME_OUT] = "time-out",
		[ZKL_EVENT_NEWS] = "news",
		[ZKL_EVENT_RELEASE] = "release",
		[ZKL_EVENT_OVERDUE] = "overdue",
		[ZKL_EVENT_CACHE] = "cache",
		[ZKL_EVENT_CONNECTED] = "connected",
		[ZKL_EVENT_DISCONNECTED] = "disconnected",
		[ZKL_EVENT_SESSION_LOST] = "session-lost",
		[ZKL_EVENT_REPLY] = "reply",
		[ZKL_EVENT_DELETED] = "deleted",
		[ZKL_EVENT_CHANGED] = "changed",
		[ZKL_EVENT_CHILDREN] = "children",
	};
	ZklLine		line;

	if (event->kind == ZKL_EVENT_CACHE && event->cache_time == m->cache.time)
		return;
	begin_event(m, &line, names[event->kind]);
	put_event(m, &line, event);
	end_line(m, &line);
	if (event->kind == ZKL_EVENT_REPLY)
		tell_results(m, event->reply);
}

/* ---- actions ---- */

static void
put_send(const ZklManager *m, ZklLine *line, const ZklAction *action)
{
	static const char *const names[] = {
		[ZKL_SEND_MULTI] = "multi",
		[ZKL_SEND_CREATE_CONTAINER] = "create-container",
		[ZKL_SEND_DELETE] = "delete",
		[ZKL_SEND_GET] = "get",
		[ZKL_SEND_LIST] = "list",
		[ZKL_SEND_UNWATCH] = "unwatch",
		[ZKL_SEND_UNWATCH_CHILDREN] = "unwatch-children",
		[ZKL_SEND_SYNC] = "sync",
	};

	zkl_line_word(line, names[action->send]);
	(void) put_tag(m, line, action->tag);
	zkl_line_word(line, action->path != NULL ? action->path : "");
	zkl_line_flag(line, "watch", action->watch);
	if (action->send == ZKL_SEND_MULTI)
		zkl_line_number(line, "operations", (int64_t) action->nmulti);
}

static void
put_failure(ZklLine *line, const ZklAction *action)
{
	static const char *const names[] = {
		[ZKL_FAILURE_DEADLOCK] = "deadlock",
		[ZKL_FAILURE_ZOOKEEPER] = "zookeeper",
		[ZKL_FAILURE_PARENTS] = "parents",
		[ZKL_FAILURE_SESSION_EXPIRED] = "session-expired",
		[ZKL_FAILURE_NODE_DELETED] = "node-deleted",
		[ZKL_FAILURE_BROKEN] = "broken",
		[ZKL_FAILURE_UNREADABLE] = "unreadable",
		[ZKL_FAILURE_OVERTAKEN] = "overtaken",
	};

	zkl_line_text(line, "failure", names[action->failure]);
	zkl_line_number(line, "rc", action->rc);
}

/* What an action says apart from its request */
static void
put_particulars(ZklLine *line, const ZklAction *action)
{
	switch (action->kind)
	{
		case ZKL_ACTION_RECORD:
			put_record(line, &action->record);
			break;
		case ZKL_ACTION_GRANT:
			zkl_line_number(line, "token", action->token);
			zkl_line_flag(line, "solitary", action->solitary);
			break;
		case ZKL_ACTION_FAIL:
		case ZKL_ACTION_LOSE:
			put_failure(line, action);
			break;
		case ZKL_ACTION_RELEASE_REQUEST:
			zkl_line_hex(line, "zxid", (uint64_t) action->asked_zxid);
			break;
		case ZKL_ACTION_BEHIND_CACHED:
			zkl_line_flag(line, "no-longer", action->server == NULL);
			break;
		default:
			break;
	}
}

static void
put_action(const ZklManager *m, ZklLine *line, const ZklAction *action)
{
	switch (action->kind)
	{
		case ZKL_ACTION_SEND:
			put_send(m, line, action);
			break;
		case ZKL_ACTION_CHAIN:
			zkl_line_number(line, "chain", action->chain);
			zkl_line_number(line, "in-use", action->chain_in_use);
			break;
		case ZKL_ACTION_LOST_WRITES:
			break;
		case ZKL_ACTION_RECONNECT:
			zkl_line_number(line, "rc", action->rc);
			break;
		default:
			put_request(m, line, action->request);
			put_particulars(line, action);
			break;
	}
}

/* The operations of a batch, each on a line of its own */
static void
tell_operations(const ZklManager *m, const ZklAction *action)
{
	static const char *const names[] = {
		[ZKL_MULTI_SET] = "set",
		[ZKL_MULTI_DELETE] = "delete",
		[ZKL_MULTI_CREATE] = "create",
		[ZKL_MULTI_CREATE_EPHEMERAL] = "create-ephemeral",
		[ZKL_MULTI_CHECK] = "check",
		[ZKL_MULTI_CREATE_PERSISTENT] = "create-persistent",
	};
	size_t		i;

	for (i = 0; i < action->nmulti; i++)
	{
		const ZklMultiOp *op = &action->multi[i];
		ZklLine		line;

		begin_line(&line, "out", "operation");
		zkl_line_word(&line, names[op->kind]);
		zkl_line_word(&line, op->path);
		if (op->kind == ZKL_MULTI_SET || op->kind == ZKL_MULTI_DELETE)
			zkl_line_number(&line, "version", op->version);
		end_line(m, &line);
	}
}

static void
tell_action(const ZklManager *m, const ZklAction *action)
{
	static const char *const names[] = {
		[ZKL_ACTION_SEND] = "send",
		[ZKL_ACTION_CHAIN] = "chain",
		[ZKL_ACTION_RECORD] = "record",
		[ZKL_ACTION_GRANT] = "grant",
		[ZKL_ACTION_BLOCKED] = "blocked",
		[ZKL_ACTION_BEHIND_CACHED] = "behind-cached",
		[ZKL_ACTION_DENY] = "deny",
		[ZKL_ACTION_FAIL] = "fail",
		[ZKL_ACTION_LOSE] = "lose",
		[ZKL_ACTION_RELEASE_REQUEST] = "release-request",
		[ZKL_ACTION_FREE] = "free",
		[ZKL_ACTION_REVIVED] = "revived",
		[ZKL_ACTION_LOST_WRITES] = "lost-writes",
		[ZKL_ACTION_RECONNECT] = "reconnect",
	};
	ZklLine		line;

	begin_line(&line, "out", names[action->kind]);
	put_action(m, &line, action);
	end_line(m, &line);
	tell_operations(m, action);
}

void
zkl_trace_actions(ZklManager *m)
{
	while (m->trace.ntraced < m->actions.n)
		tell_action(m, &m->actions.all[m->trace.ntraced++]);
}

void
zkl_trace_cleared(ZklManager *m)
{
	m->trace.ntraced = 0;
}
