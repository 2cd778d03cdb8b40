/*
 * trace.c
 *	  Tells, line by line, what happens to a manager and what it does about it.
 *
 * Owns nothing but what its host gave it, allocates no memory, and changes nothing
 * in a manager.  Runs in the worker (and in tests), takes no locks, knows neither
 * PostgreSQL nor ZooKeeper.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/host.h"
#include "observe/trace.h"

/* ---- line: writes one line of text for a trace or a dump ---- */

/*
 * Owns nothing, and allocates no memory.  It must not know what the lines are about.
 */

const char *const zkl_line_modes[] = {
	[ZKL_EXCLUSIVE] = "EXCLUSIVE",
	[ZKL_SHARED] = "SHARED",
};

const char *const zkl_line_dialects[] = {
	[ZKL_DIALECT_CURATOR_RW] = "curator_rw",
	[ZKL_DIALECT_CURATOR_MUTEX] = "curator_mutex",
	[ZKL_DIALECT_KAZOO] = "kazoo",
	[ZKL_DIALECT_LATCH] = "latch",
	[ZKL_DIALECT_PERMIT] = "permit",
	[ZKL_DIALECT_MEMBER] = "member",
};

void
zkl_line_begin(ZklLine *line)
{
	line->length = 0;
	line->text[0] = '\0';
}

static void append(ZklLine *line, const char *format, va_list args)
			__attribute__((format(printf, 2, 0)));

static void
append(ZklLine *line, const char *format, va_list args)
{
	size_t		from = line->length + (line->length > 0);
	int			n = from >= ZKL_MAX_LINE ? 0 :
	vsnprintf(line->text + from, sizeof(line->text) - from, format, args);

	if (n <= 0)
		return;
	if (from > 0)
		line->text[line->length++] = ' ';
	for (; line->length < ZKL_MAX_LINE && line->text[line->length] != '\0';
		 line->length++)
	{
		char	   *c = &line->text[line->length];

		if ((unsigned char) *c < ' ' || *c == 0x7f)
			*c = '?';
	}
}

void
zkl_line_put(ZklLine *line, const char *format,...)
{
	va_list		args;

	va_start(args, format);
	append(line, format, args);
	va_end(args);
}

void
zkl_line_if(ZklLine *line, bool condition, const char *format,...)
{
	va_list		args;

	va_start(args, format);
	if (condition)
		append(line, format, args);
	va_end(args);
}

void
zkl_line_name(ZklLine *line, const char *key, const char *name)
{
	size_t		from;

	if (name == NULL)
		return;
	zkl_line_put(line, "%s%s", key, name);
	for (from = line->length - strlen(name); from < line->length; from++)
	{
		char	   *c = &line->text[from];

		*c = *c == '_' ? '-' : (char) (*c | 0x20);
	}
}

void
zkl_line_uuid(ZklLine *line, const ZklUuid *uuid)
{
	char		text[ZKL_UUID_TEXT + 1];

	zkl_uuid_format(uuid, text);
	zkl_line_put(line, "uuid=%s", text);
}

void
zkl_line_list(ZklLine *line, const char *key, const ZklList *list)
{
	const ZklLink *link;
	int			n = 0;

	for (link = list->head.next; link != &list->head; link = link->next)
		n++;
	zkl_line_if(line, n > 0, "%s=%d", key, n);
}

/* ---- trace ---- */

/*
 * A line begins with "in" (an event) or "out" (an action).  The data of znodes
 * is left out: operators of ZooKeeper keep secrets there.
 */

static void
begin_line(ZklLine *line, const char *direction, const char *name)
{
	zkl_line_begin(line);
	zkl_line_put(line, "%s", direction);
	zkl_line_name(line, "", name);
}

/* Another line of the same event may have ended the trace. */
static void
end_line(const ZklTrace *t, const ZklLine *line)
{
	if (t->write != NULL)
		t->write(t->context, line->text);
}

/* What all lines that follow rest on */
static void
tell_beginning(const ZklTrace *t)
{
	ZklLine		line;

	begin_line(&line, "in", "begin");
	zkl_line_put(&line, "root=%s tokens=%d", t->m->root, ZKL_TOKENS_PER_ZXID);
	end_line(t, &line);
}

void
zkl_trace_begin(ZklTrace *t, const ZklManager *m, ZklWriteLine write,
				void *context)
{
	t->m = m;
	t->write = write;
	t->context = context;
	t->nactions = m->actions.n;
	t->lease = m->session_lease.until;
	t->flush = 0;
	if (write != NULL && m->now == 0)
		tell_beginning(t);
}

static void
put_request(const ZklTrace *t, ZklLine *line, uint32_t request)
{
	const ZklLock *lock = t->m->requests.all[request].lock;

	zkl_line_put(line, "request=%u", request);
	if (lock != NULL)
		zkl_line_put(line, "%s", lock->path);
}

static void
put_record(ZklLine *line, const ZklRecord *record)
{
	if (record->sent)
	{
		zkl_line_name(line, "", zkl_line_modes[record->mode]);
		zkl_line_uuid(line, &record->uuid);
		zkl_line_if(line, record->seq >= 0, "number=%" PRId64, record->seq);
		zkl_line_put(line, "index=%u", record->index);
	}
	zkl_line_put(line, "generation=%u", record->generation);
	zkl_line_if(line, record->going, "going");
	zkl_line_if(line, record->disowned, "disowned");
	zkl_line_if(line, record->stays, "stays");
}

const char *
zkl_trace_operation(const ZklManager *m, const ZklOp *op)
{
#define OP(kind) [ZKL_OP_##kind] = #kind
	static const char *const names[] = {
		OP(BATCH), OP(CHAIN), OP(CHAIN_FENCE), OP(CHAIN_IN_USE), OP(CHAIN_LIST),
		OP(LIST), OP(PROBE), OP(PROBE_MARK), OP(PROBE_SYNC), OP(WATCH_AHEAD),
		OP(WATCH_DIRECTORY), OP(WATCH_OWN), OP(TOKEN), OP(PARENT), OP(MAKE_DIRECTORY),
		OP(DELETE_DIRECTORIES), OP(DELETE),
		OP(RESET), OP(JANITOR), OP(SWEEP), OP(REWRITE),
		OP(REVIVED), OP(IGNORE)
	};
#undef OP
	const ZklWingState *w = m->wings;

	if (op == NULL)
		return "unknown";
	if (op->kind < ZKL_OP_WING)
		return names[op->kind];
	while (w->wing->operations == NULL)
		w++;
	return w->wing->operations[op->kind - ZKL_OP_WING];
}

/* The operation with this tag; NULL: it is not under way any more. */
static const ZklOp *
put_tag(const ZklTrace *t, ZklLine *line, uint64_t tag)
{
	const ZklOp *op = zkl_operations_find(t->m, tag);

	zkl_line_put(line, "tag=0x%" PRIx64, tag);
	zkl_line_name(line, "for=", zkl_trace_operation(t->m, op));
	return op;
}

/* ---- events ---- */

static void
put_end(ZklLine *line, const ZklEnd *end)
{
	zkl_line_if(line, end->epilogue, "epilogue");
	zkl_line_if(line, end->keep_until != 0, "keep_until=%" PRId64, end->keep_until);
}

static void
put_demand(const ZklTrace *t, ZklLine *line, const ZklDemand *demand)
{
	zkl_line_put(line, "%s%s", t->m->root, demand->name);
	zkl_line_name(line, "", zkl_line_modes[demand->mode]);
	zkl_line_put(line, "%s owner=%" PRId64, zkl_line_dialects[demand->dialect],
				 (int64_t) demand->owner);
	zkl_line_if(line, demand->sibling >= 0, "sibling=%d", demand->sibling);
	zkl_line_if(line, demand->dialect == ZKL_DIALECT_PERMIT, "max=%u", demand->max);
	zkl_line_if(line, demand->patience > 0, "patience_ms=%" PRId64,
				demand->patience / 1000);
	zkl_line_if(line, demand->timed_out, "timed-out");
	zkl_line_if(line, demand->together, "together");
	zkl_line_if(line, demand->plain, "plain");
	zkl_line_if(line, demand->guard, "guard");
}

static void
put_session(ZklLine *line, const ZklSession *session)
{
	zkl_line_put(line, "session=0x%016" PRIx64 " generation=%u timeout_ms=%u"
				 " zxid_seen=0x%" PRIx64 " begun=%" PRId64, session->id,
				 session->generation, session->timeout_ms, session->zxid_seen,
				 session->begun_at);
}

/* What marks say that others, or we, leave in the data of a znode */
static void
put_marks(ZklLine *line, const ZklReply *reply)
{
	char		who[1];

	zkl_line_if(line, zkl_node_data_breaking(reply->data, reply->data_length),
				"breaking");
	zkl_line_if(line, zkl_node_data_downgrading(reply->data, reply->data_length),
				"downgrading");
	zkl_line_if(line, zkl_node_data_is_cached(reply->data, reply->data_length),
				"cached");
	zkl_line_if(line, zkl_node_data_revoking(reply->data, reply->data_length, who,
											 sizeof(who)), "revoking");
}

static void
describe_reply(const ZklTrace *t, ZklLine *line, uint64_t tag,
			   const ZklReply *reply)
{
	const ZklOp *op = put_tag(t, line, tag);
	const ZklStat *stat = &reply->stat;

	if (op != NULL && op->request != NULL)
		zkl_line_put(line, "request=%u", op->request->id);
	if (op != NULL && op->lock != NULL)
		zkl_line_put(line, "%s", op->lock->path);
	zkl_line_put(line, "rc=%d", reply->rc);
	zkl_line_if(line, stat->czxid != 0, "czxid=0x%" PRIx64 " mzxid=0x%" PRIx64
				" version=%d", stat->czxid, stat->mzxid, stat->version);
	zkl_line_if(line, stat->ephemeral_owner != 0, "owner=0x%" PRIx64,
				stat->ephemeral_owner);
	if (op != NULL && op->lock != NULL && reply->data_length > 0)
		put_marks(line, reply);
	zkl_line_if(line, reply->children != NULL, "children=%zu", reply->nchildren);
}

/* Those of a lock's directory, the queue; and the heartbeat nodes */
static void
tell_children(const ZklTrace *t, uint64_t tag, const ZklReply *reply)
{
	const ZklOp *op = zkl_operations_find(t->m, tag);
	ZklLine		line;
	size_t		i;

	if (op == NULL || reply->children == NULL ||
		(op->lock == NULL && op->kind != ZKL_OP_CHAIN_LIST))
		return;
	for (i = 0; i < reply->nchildren; i++)
	{
		begin_line(&line, "in", "child");
		zkl_line_put(&line, "%s", reply->children[i]);
		end_line(t, &line);
	}
}

/* Of a transaction, the answers that say more than that all went well */
static void
tell_results(const ZklTrace *t, const ZklReply *reply)
{
	ZklLine		line;
	size_t		i;

	for (i = 0; i < reply->nresults; i++)
	{
		const ZklMultiResult *result = &reply->results[i];

		if (result->rc == ZKL_RC_OK && result->path == NULL)
			continue;
		begin_line(&line, "in", "result");
		zkl_line_put(&line, "operation=%zu rc=%d", i, result->rc);
		zkl_line_if(&line, result->path != NULL, "%s", result->path);
		end_line(t, &line);
	}
}

static void
put_peer(ZklLine *line, const ZklPeerMessage *peer)
{
	zkl_line_put(line, "session=0x%" PRIx64, peer->session);
	zkl_line_uuid(line, &peer->znode);
	zkl_line_uuid(line, &peer->waiter);
}

static void
put_event(const ZklTrace *t, ZklLine *line, const ZklEvent *event)
{
	switch (event->kind)
	{
		case ZKL_EVENT_CONNECTED:
			put_session(line, event->session);
			break;
		case ZKL_EVENT_SUBMIT:
			zkl_line_put(line, "request=%u", event->request);
			put_demand(t, line, event->demand);
			break;
		case ZKL_EVENT_NEWS:
		case ZKL_EVENT_TIME_OUT:
		case ZKL_EVENT_RELEASE:
		case ZKL_EVENT_OVERDUE:
			put_request(t, line, event->request);
			put_end(line, &event->end);
			break;
		case ZKL_EVENT_CACHE:
			zkl_line_put(line, "time_ms=%" PRId64, event->cache_time / 1000);
			break;
		case ZKL_EVENT_REPLY:
			describe_reply(t, line, event->tag, event->reply);
			break;
		case ZKL_EVENT_PROVE:
		case ZKL_EVENT_DISCONNECTED:
		case ZKL_EVENT_SESSION_LOST:
			break;
		case ZKL_EVENT_DELETED:
		case ZKL_EVENT_CHANGED:
		case ZKL_EVENT_CHILDREN:
			zkl_line_put(line, "%s", event->path);
			break;
		case ZKL_EVENT_PEERS:
			zkl_line_put(line, event->peers ? "on" : "off");
			break;
		case ZKL_EVENT_ASK:
		case ZKL_EVENT_WORD:
			put_peer(line, event->peer);
			break;
	}
}

/* A flush that does nothing is no line. */
static void
tell_flush(ZklTrace *t)
{
	ZklLine		line;

	if (t->flush == 0)
		return;
	begin_line(&line, "in", "flush");
	zkl_line_put(&line, "now=%" PRId64, t->flush);
	t->flush = 0;
	end_line(t, &line);
}

/*
 * First come the actions of the event before.  A host tells for how long locks stay
 * cached even if that is as before.
 */
void
zkl_trace_event(ZklTrace *t, int64_t now, const ZklEvent *event)
{
#define EVENT(kind) [ZKL_EVENT_##kind] = #kind
	static const char *const names[] = {
		EVENT(SUBMIT), EVENT(TIME_OUT), EVENT(NEWS), EVENT(PROVE),
		EVENT(RELEASE), EVENT(OVERDUE), EVENT(CACHE), EVENT(CONNECTED),
		EVENT(DISCONNECTED), EVENT(SESSION_LOST), EVENT(REPLY), EVENT(DELETED),
		EVENT(CHANGED), EVENT(CHILDREN), EVENT(PEERS), EVENT(ASK), EVENT(WORD)
	};
#undef EVENT
	ZklLine		line;

	if (t->write == NULL ||
		(event->kind == ZKL_EVENT_CACHE && event->cache_time == t->m->cache.time))
		return;
	zkl_trace_actions(t);
	t->flush = 0;
	begin_line(&line, "in", names[event->kind]);
	put_event(t, &line, event);
	zkl_line_put(&line, "now=%" PRId64, now);
	end_line(t, &line);
	if (event->kind != ZKL_EVENT_REPLY)
		return;
	tell_results(t, event->reply);
	tell_children(t, event->tag, event->reply);
}

void
zkl_trace_flush(ZklTrace *t, int64_t now)
{
	zkl_trace_actions(t);
	t->flush = now;
}

/* ---- questions amid an event ---- */

void
zkl_trace_offer(ZklTrace *t, uint32_t request)
{
	ZklLine		line;

	if (t->write == NULL)
		return;
	tell_flush(t);
	zkl_trace_actions(t);
	begin_line(&line, "out", "offer");
	put_request(t, &line, request);
	end_line(t, &line);
}

void
zkl_trace_recalled(ZklTrace *t, uint32_t request, const ZklRecalled *found)
{
	static const char *const names[] = {
		[ZKL_RECALLED_HELD] = "held",
		[ZKL_RECALLED_CACHED] = "cached",
		[ZKL_RECALLED_ENDED] = "ended",
	};
	ZklLine		line;

	if (t->write == NULL)
		return;
	tell_flush(t);
	zkl_trace_actions(t);
	begin_line(&line, "in", "recalled");
	put_request(t, &line, request);
	zkl_line_put(&line, "%s owner=%" PRId64 " token=%" PRId64, names[found->state],
				 (int64_t) found->owner, found->token);
	end_line(t, &line);
}

/* ---- actions ---- */

static void
put_send(const ZklTrace *t, ZklLine *line, const ZklAction *action)
{
#define SEND(kind) [ZKL_SEND_##kind] = #kind
	static const char *const names[] = {
		SEND(MULTI), SEND(CREATE_CONTAINER), SEND(DELETE), SEND(GET), SEND(LIST),
		SEND(UNWATCH), SEND(UNWATCH_CHILDREN), SEND(SYNC)
	};
#undef SEND

	zkl_line_name(line, "", names[action->send]);
	(void) put_tag(t, line, action->tag);
	zkl_line_if(line, action->path != NULL, "%s", action->path);
	zkl_line_if(line, action->watch, "watch");
	zkl_line_if(line, action->nmulti > 0, "operations=%zu", action->nmulti);
}

static const char *
failure_name(ZklFailure failure)
{
#define FAILURE(kind) [ZKL_FAILURE_##kind] = #kind
	static const char *const names[] = {
		FAILURE(DEADLOCK), FAILURE(ZOOKEEPER), FAILURE(PARENTS),
		FAILURE(NO_NUMBER), FAILURE(SESSION_EXPIRED), FAILURE(NODE_DELETED),
		FAILURE(BROKEN), FAILURE(UNREADABLE), FAILURE(OVERTAKEN)
	};
#undef FAILURE

	return names[failure];
}

static void
put_action(const ZklTrace *t, ZklLine *line, const ZklAction *action)
{
	ZklActionKind kind = action->kind;

	if (kind == ZKL_ACTION_SEND)
		put_send(t, line, action);
	else if (kind == ZKL_ACTION_ASK || kind == ZKL_ACTION_WORD)
		put_peer(line, &action->peer);
	else if (kind != ZKL_ACTION_LOST_WRITES && kind != ZKL_ACTION_RECONNECT)
		put_request(t, line, action->request);
	if (kind == ZKL_ACTION_RECORD)
		put_record(line, &action->record);
	if (kind == ZKL_ACTION_FAIL || kind == ZKL_ACTION_LOSE)
		zkl_line_name(line, "failure=", failure_name(action->failure));
	zkl_line_if(line, action->rc != 0, "rc=%d", action->rc);
	zkl_line_if(line, action->token != 0, "token=%" PRId64, action->token);
	zkl_line_if(line, action->asked_zxid != 0, "zxid=0x%" PRIx64, action->asked_zxid);
	zkl_line_if(line, action->solitary, "solitary");
	zkl_line_if(line, kind == ZKL_ACTION_BEHIND_CACHED && action->server == NULL,
				"no-longer");
}

/* The operations of a batch, each on a line of its own */
static void
tell_operations(const ZklTrace *t, const ZklAction *action)
{
#define MULTI(kind) [ZKL_MULTI_##kind] = #kind
	static const char *const names[] = {
		MULTI(SET), MULTI(DELETE), MULTI(CREATE), MULTI(CREATE_EPHEMERAL),
		MULTI(CHECK), MULTI(CREATE_PERSISTENT)
	};
#undef MULTI
	ZklLine		line;
	size_t		i;

	for (i = 0; i < action->nmulti; i++)
	{
		const ZklMultiOp *op = &action->multi[i];

		begin_line(&line, "out", "operation");
		zkl_line_name(&line, "", names[op->kind]);
		zkl_line_put(&line, "%s", op->path);
		zkl_line_if(&line, op->kind == ZKL_MULTI_SET || op->kind == ZKL_MULTI_DELETE,
					"version=%d", op->version);
		end_line(t, &line);
	}
}

static void
tell_action(const ZklTrace *t, const ZklAction *action)
{
#define ACTION(kind) [ZKL_ACTION_##kind] = #kind
	static const char *const names[] = {
		ACTION(SEND), ACTION(RECORD), ACTION(GRANT),
		ACTION(BLOCKED), ACTION(BEHIND_CACHED), ACTION(DENY),
		ACTION(FAIL), ACTION(LOSE), ACTION(RELEASE_REQUEST), ACTION(FREE),
		ACTION(REVIVED), ACTION(LOST_WRITES), ACTION(ASK), ACTION(WORD),
		ACTION(ASKED), ACTION(RECONNECT)
	};
#undef ACTION
	ZklLine		line;

	begin_line(&line, "out", names[action->kind]);
	put_action(t, &line, action);
	end_line(t, &line);
	tell_operations(t, action);
}

/* The host shows the lease before it carries out actions. */
static void
tell_lease(ZklTrace *t)
{
	ZklLine		line;

	if (t->lease == t->m->session_lease.until)
		return;
	t->lease = t->m->session_lease.until;
	begin_line(&line, "out", "lease");
	zkl_line_put(&line, "until=%" PRId64, t->lease);
	end_line(t, &line);
}

void
zkl_trace_actions(ZklTrace *t)
{
	if (t->write != NULL && t->nactions < t->m->actions.n)
		tell_flush(t);
	if (t->write != NULL)
		tell_lease(t);
	for (; t->write != NULL && t->nactions < t->m->actions.n; t->nactions++)
		tell_action(t, &t->m->actions.all[t->nactions]);
}

void
zkl_trace_clear(ZklTrace *t)
{
	zkl_trace_actions(t);
	t->nactions = 0;
}
