/*
 * conn.c
 *	  Connections of the simulated ensemble: what is under way on them, and
 *	  what becomes of it when they break.
 *
 * Owns the connections.  Must not know what clients are for.
 */
#include <string.h>

#include "agenda.h"
#include "ensemble.h"

/* ---- coming and going ---- */

/* The client's library goes by the timeout that its session has got. */
static Time
ping_every(const Conn *c)
{
	return session_find(c->session)->timeout / 3;
}

static Conn *
free_conn(void)
{
	int			i;

	for (i = 0; i < MAX_CONNS; i++)
		if (!ens.conns[i].open)
			return &ens.conns[i];
	broken("simulation", "too many connections");
}

/* Whether a server would take up the session, as far as it knows */
static AttachResult
judge_attach(int server, int64_t id, size_t seen)
{
	const Server *s = &ens.servers[server];
	const Session *session = session_find(id);

	if (s->state == SERVER_DOWN || s->applied < seen)
		return ATTACH_FAILED;
	if (s->state == SERVER_CUT)
		return s->deposed && id != 0 ? ATTACH_DONE : ATTACH_FAILED;
	if (ens.leader < 0 || s->paused_until > base.now)
		return ATTACH_FAILED;
	if (id != 0 && (session == NULL || !session->alive))
		return ATTACH_EXPIRED;
	return ATTACH_DONE;
}

AttachResult
conn_attach(int server, int64_t id, size_t seen, ClientKind kind, int client,
			Conn **conn)
{
	AttachResult result = judge_attach(server, id, seen);
	Session    *session = session_find(id);
	Conn	   *c;

	*conn = NULL;
	if (result != ATTACH_DONE)
		return result;
	if (session == NULL)
		session = session_make();
	if (ens.servers[server].state == SERVER_JOINED)
	{
		session_negotiate(session);
		session_touch(session);
		if (!ens.late_after_move)
			late_forget(session->id);
	}
	if (kind == CLIENT_HOST)
		session->host = client;
	else
		session->foreign = client;
	c = free_conn();
	memset(c, 0, sizeof(*c));
	c->open = true;
	c->id = (int) (c - ens.conns);
	c->serial = ++ens.serial;
	c->server = server;
	c->session = session->id;
	c->client_kind = kind;
	c->client = client;
	c->sent_end = &c->sent;
	c->pipe_end = &c->pipe;
	c->out_end = &c->out;
	c->commit_at = NEVER;
	c->heard_at = base.now;
	c->ping_at = base.now + ping_every(c);
	*conn = c;
	agenda_changed(AGENDA_CONN(c->id));
	return ATTACH_DONE;
}

void
conn_cut(Conn *c, bool deliver)
{
	Request   **cut = &c->sent;
	Time		at = base.now;

	if (!c->open)
		return;
	trace("conn #: cut from server #", c->id, c->server, 0, 0, NULL);
	while (*cut != NULL && c->frozen_until <= base.now && !once_in(3))
		cut = &(*cut)->next;
	*cut = NULL;
	if (!once_in(3))
	{
		late_keep(c, c->pipe, &at);
		late_keep(c, c->sent, &at);
	}
	while (deliver && c->out != NULL && c->frozen_until <= base.now &&
		   !once_in(4))
	{
		Frame	   *frame = c->out;

		c->out = frame->next;
		client_frame(c, frame);
		if (!c->open)
			return;
	}
	tree_forget_watcher(COPY(c->server), &c->watcher);
	c->open = false;
	agenda_changed(AGENDA_CONN(c->id));
}

void
server_drop_conns(int server)
{
	int			i;

	for (i = 0; i < MAX_CONNS; i++)
	{
		Conn	   *c = &ens.conns[i];

		if (!c->open || c->server != server)
			continue;
		conn_cut(c, true);
		client_gone(c);
	}
}

/* ---- towards the server ---- */

void
conn_send(Conn *c, Request *request)
{
	Time		at = base.now + some_delay(ens.net);

	c->last_arrival = at > c->last_arrival ? at : c->last_arrival;
	request->at = c->last_arrival;
	request->next = NULL;
	*c->sent_end = request;
	c->sent_end = &request->next;
	agenda_changed(AGENDA_CONN(c->id));
	c->ping_at = base.now + ping_every(c);
}

static void
push_frame(Conn *c, Frame *frame)
{
	Time		at = base.now + some_delay(ens.net);

	c->last_delivery = at > c->last_delivery ? at : c->last_delivery;
	frame->at = c->last_delivery;
	*c->out_end = frame;
	c->out_end = &frame->next;
	agenda_changed(AGENDA_CONN(c->id));
}

/* path: what a single create made */
static void
push_reply(Conn *c, const Request *request, const ZklReply *reply,
		   const char *path)
{
	Frame	   *frame = take(sizeof(Frame));

	frame->tag = request->tag;
	frame->reply = *reply;
	frame->path = path;
	push_frame(c, frame);
}

/* The tag of an event is the zxid of the transaction that it is about. */
void
watcher_event(Watcher *who, ZklEventKind kind, const char *path)
{
	const Server *s = &ens.servers[((Conn *) who)->server];
	Frame	   *frame = take(sizeof(Frame));

	if (s->applied > 0)
		frame->tag = (uint64_t) ens.log[s->applied - 1]->tx.zxid;
	frame->is_event = true;
	frame->event = kind;
	frame->path = path;
	push_frame((Conn *) who, frame);
}

/* A read is answered from what the server has applied. */
static void
serve_read(Conn *c, const Request *request)
{
	ZklReply	reply;

	memset(&reply, 0, sizeof(reply));
	if (c->client_kind == CLIENT_HOST)
		reply.rc = ensemble_refuses();
	if (reply.rc != ZKL_RC_OK)
		trace("zk: refuses", 0, 0, 0, 0, NULL);
	else
		message_read(request, COPY(c->server), &c->watcher, &reply);
	trace("conn #: server # reads @, rc #", c->id, c->server, reply.rc, 0,
		  request->path);
	push_reply(c, request, &reply, NULL);
}

static bool
is_for_leader(const Request *request)
{
	return request->kind == REQUEST_WRITE || request->kind == REQUEST_CLOSE ||
		request->kind == REQUEST_SYNC;
}

static void
pop_pipe(Conn *c)
{
	c->pipe = c->pipe->next;
	if (c->pipe == NULL)
		c->pipe_end = &c->pipe;
}

static void
serve_sync(Conn *c)
{
	ZklReply	reply;

	memset(&reply, 0, sizeof(reply));
	push_reply(c, c->pipe, &reply, NULL);
}

/* A leader that does not know that it is none answers a sync by itself. */
static void
serve_reads(Conn *c)
{
	while (c->pipe != NULL)
	{
		if (c->pipe->kind == REQUEST_SYNC && ens.servers[c->server].deposed)
		{
			session_find(c->session)->deposed_at = base.now;
			serve_sync(c);
		}
		else if (is_for_leader(c->pipe))
			return;
		else
			serve_read(c, c->pipe);
		pop_pipe(c);
	}
}

static Request *
next_to_commit(const Conn *c)
{
	Request    *request = c->pipe;

	while (request != NULL && (request->committed || !is_for_leader(request)))
		request = request->next;
	return request;
}

static void
plan_commit(Conn *c)
{
	if (next_to_commit(c) == NULL)
		c->commit_at = NEVER;
	else if (c->commit_at == NEVER)
		c->commit_at = base.now + some_delay(ens.decide);
}

static void
arrive(Conn *c)
{
	Request    *request = c->sent;

	c->sent = request->next;
	if (c->sent == NULL)
		c->sent_end = &c->sent;
	request->at = base.now;
	server_hears(c->server, c->session);
	request->next = NULL;
	*c->pipe_end = request;
	c->pipe_end = &request->next;
	serve_reads(c);
	plan_commit(c);
}

/* Some errors mean that nothing was done; of the others nobody knows. */
static bool
is_in_vain(const Request *request)
{
	return request->refused != ZKL_RC_OK &&
		(zkl_zkapi_is_definite(request->refused) || once_in(2));
}

/* An error that means something names its operation. */
static void
refuse(Entry *entry, const Request *request)
{
	bool		named = zkl_zkapi_is_definite(request->refused) &&
	!request->single;
	ZklMultiResult *results;
	size_t		culprit = (size_t) below((int64_t) request->nops);
	size_t		i;

	memset(&entry->tx.reply, 0, sizeof(entry->tx.reply));
	entry->tx.reply.rc = request->refused;
	if (!named)
		return;
	results = take(request->nops * sizeof(ZklMultiResult));
	for (i = 0; i < request->nops; i++)
		results[i].rc = i < culprit ? ZKL_RC_OK :
			i > culprit ? RC_PASSED_OVER : request->refused;
	entry->tx.reply.results = results;
	entry->tx.reply.nresults = request->nops;
}

Entry *
conn_decide(int64_t session, Request *request)
{
	Session    *s = session_find(session);
	Entry	   *entry;

	if (!s->alive)
		return NULL;
	request->committed = true;
	if (request->kind == REQUEST_CLOSE)
	{
		trace_log("zk close session=0x%" PRIx64, session);
		ensemble_end_session(s, false);
		return NULL;
	}
	entry = ensemble_commit(session, request->ops,
							is_in_vain(request) ? 0 : request->nops,
							request->single, false);
	if (request->refused != ZKL_RC_OK)
		refuse(entry, request);
	trace("zk: # rc # of session # @", entry->tx.zxid & UINT32_MAX,
		  entry->tx.reply.rc, session, 0, request->ops[request->nops - 1].path);
	return entry;
}

/* All that came before on this connection is answered by that. */
static void
commit_sync(Conn *c, Request *request)
{
	uint64_t	serial = c->serial;

	request->committed = true;
	ensemble_sync(c->server);
	if (!c->open || c->serial != serial)
		return;
	if (c->pipe != request)
		broken("simulation", "a sync out of order");
	serve_sync(c);
	pop_pipe(c);
	serve_reads(c);
	plan_commit(c);
}

static void
commit(Conn *c)
{
	Request    *request = next_to_commit(c);
	Entry	   *entry;

	c->commit_at = NEVER;
	if (request->kind == REQUEST_SYNC)
	{
		commit_sync(c, request);
		return;
	}
	sessions_take_reports(c->server, request->at);
	if (c->client_kind == CLIENT_HOST && request->kind == REQUEST_WRITE)
		request->refused = ensemble_refuses();
	entry = conn_decide(c->session, request);
	if (entry == NULL)
	{
		/* Its session is gone: the server hangs up. */
		conn_cut(c, true);
		client_gone(c);
		return;
	}
	entry->origin = c;
	entry->origin_serial = c->serial;
	entry->request = request;
	plan_commit(c);
	ensemble_append(entry);
}

void
conn_answer(Conn *c, const Entry *entry)
{
	if (c->pipe != entry->request)
		broken("simulation", "an answer out of order");
	push_reply(c, entry->request, &entry->tx.reply, entry->tx.neffects == 1 &&
			   entry->tx.reply.rc == ZKL_RC_OK ?
			   entry->tx.effects[0].path->text : NULL);
	pop_pipe(c);
	serve_reads(c);
}

/* ---- towards the client ---- */

static void
deliver(Conn *c)
{
	Frame	   *frame = c->out;

	c->out = frame->next;
	if (c->out == NULL)
		c->out_end = &c->out;
	c->heard_at = base.now;
	client_frame(c, frame);
}

/* The client's library: keeps the session alive, and notices silence. */
static void
ping(Conn *c)
{
	c->ping_at = base.now + ping_every(c);
	if (c->frozen_until <= base.now)
	{
		server_hears(c->server, c->session);
		c->heard_at = base.now;
	}
	else if (base.now - c->heard_at >= 2 * ping_every(c))
	{
		conn_cut(c, false);
		client_gone(c);
	}
}

/* ---- time ---- */

static Time
later(Time a, Time b)
{
	return a > b ? a : b;
}

static Time
commit_due(const Conn *c)
{
	const Server *s = &ens.servers[c->server];

	if (c->commit_at == NEVER || s->state != SERVER_JOINED || ens.leader < 0)
		return NEVER;
	return later(c->commit_at, s->paused_until);
}

Time
conn_due(const Conn *c)
{
	Time		due = c->ping_at;
	Time		t = commit_due(c);

	due = t < due ? t : due;
	if (c->sent != NULL)
	{
		t = later(c->sent->at, c->frozen_until);
		due = t < due ? t : due;
	}
	if (c->out != NULL)
	{
		t = later(c->out->at, c->frozen_until);
		due = t < due ? t : due;
	}
	return due;
}

void
conn_step(Conn *c)
{
	bool		thawed = c->frozen_until <= base.now;

	if (commit_due(c) <= base.now)
		commit(c);
	else if (thawed && c->sent != NULL && c->sent->at <= base.now)
		arrive(c);
	else if (thawed && c->out != NULL && c->out->at <= base.now)
		deliver(c);
	else if (c->ping_at <= base.now)
		ping(c);
}
