/*
 * foreign.c
 *	  Other clients of the simulated ensemble, and who gets what on a
 *	  connection.
 *
 * Owns them.  They follow Curator's recipe: create, list, watch the next one
 * ahead by a get, list again.  Of a semaphore they watch the children; they
 * count those ahead of them, not all there are, for the guard that Curator goes
 * through first is left out.  In trouble they give their session up: they close
 * it on another connection, or leave it to expire.
 */
#include <stdio.h>
#include <string.h>

#include "agenda.h"
#include "foreign.h"
#include "oracle.h"

Foreigners	foreigners;

/* ---- sending ---- */

static Request *
make_request(Foreign *f, RequestKind kind, const char *path)
{
	Request    *request = take(sizeof(Request));

	request->kind = kind;
	request->path = path;
	request->tag = ++f->tag;
	return request;
}

static void
send_write(Foreign *f, OpKind kind, const char *path, bool ephemeral,
		   bool sequential)
{
	Request    *request = make_request(f, REQUEST_WRITE, path);

	request->single = true;
	request->nops = 1;
	request->ops = take(sizeof(Op));
	request->ops->kind = kind;
	request->ops->path = path;
	request->ops->data = "10.0.0.1";
	request->ops->length = 8;
	request->ops->version = -1;
	request->ops->ephemeral = ephemeral;
	request->ops->sequential = sequential;
	request->ops->container = !ephemeral;
	conn_send(f->conn, request);
}

static void
send_list(Foreign *f)
{
	Request    *request = make_request(f, REQUEST_LIST,
									   lock_path(f->lock)->text);

	f->phase = FOREIGN_LISTING;
	request->watch = f->lock == hosts.semaphore;
	conn_send(f->conn, request);
}

/* ---- steps ---- */

static void
go_idle(Foreign *f)
{
	f->phase = FOREIGN_IDLE;
	f->holding = false;
	f->at = base.calm ? NEVER : base.now + some_delay(foreigners.think);
}

/* Gives its session up: from here on it is left to expire. */
static void
die(Foreign *f)
{
	trace("client #: leaves its session # behind", f->id, f->session, 0, 0,
		  NULL);
	if (f->conn != NULL)
		conn_cut(f->conn, false);
	f->conn = NULL;
	f->session = 0;
	go_idle(f);
}

void
foreign_lose_all(void)
{
	int			i;

	for (i = 0; i < foreigners.n; i++)
		if (foreigners.foreign[i].session != 0)
			die(&foreigners.foreign[i]);
}

static bool
connect_somewhere(Foreign *f)
{
	if (f->conn != NULL)
		return true;
	if (f->rewinds != ens.rewinds)
		f->seen = 0;
	f->rewinds = ens.rewinds;
	switch (conn_attach((int) below(ens.nservers), f->session, f->seen,
						CLIENT_FOREIGN, f->id, &f->conn))
	{
		case ATTACH_DONE:
			f->session = f->conn->session;
			return true;
		case ATTACH_EXPIRED:
			f->session = 0;
			/* FALLTHROUGH */
		default:
			f->at = base.now + some_delay(ens.timeout / 20);
			return false;
	}
}

static void
send_create(Foreign *f)
{
	Path	   *directory = lock_path(f->lock);
	char		prefix[ZKL_MAX_ZNODE_NAME + 1];
	char		path[256];
	Path	   *parent[8];
	int			n = 0;

	for (; directory->parent != NULL; directory = directory->parent)
		parent[n++] = directory;
	while (n > 0)
		send_write(f, OP_CREATE, parent[--n]->text, false, false);
	zkl_znode_prefix(lock_dialect(f->lock), &f->uuid, f->mode, prefix);
	snprintf(path, sizeof(path), "%s/%s", lock_path(f->lock)->text, prefix);
	send_write(f, OP_CREATE, take_string(path), true, true);
	f->phase = FOREIGN_CREATING;
}

static void
begin(Foreign *f)
{
	if (!connect_somewhere(f))
		return;
	f->lock = (int) below(hosts.nlocks);
	f->mode = lock_mode(f->lock, below(100) < foreigners.shared);
	f->uuid = zkl_uuid_make((int64_t) random64(), 0, random64());
	f->uuid.bytes[6] = (uint8_t) (0x40 | (f->uuid.bytes[6] & 15));
	f->attempts = 0;
	f->broken = false;
	f->at = NEVER;
	send_create(f);
}

static void
hold(Foreign *f)
{
	trace(f->mode == ZKL_EXCLUSIVE ? "client #: holds @ exclusively" :
		  "client #: holds @ shared", f->id, 0, 0, 0, f->node);
	f->phase = FOREIGN_HOLDING;
	f->holding = true;
	f->at = base.now + some_delay(base.calm ? MS : foreigners.hold);
	oracle_foreign_hold(f);
}

/* Waits for what happens to the nearest one ahead, or to any of a semaphore. */
static void
wait_behind(Foreign *f, const char *nearest)
{
	Request    *request;
	char		path[256];

	if (f->lock == hosts.semaphore)
	{
		f->ahead = lock_path(f->lock)->text;
		f->phase = FOREIGN_WAITING;
		return;
	}
	snprintf(path, sizeof(path), "%s/%s", lock_path(f->lock)->text, nearest);
	f->ahead = take_string(path);
	f->phase = FOREIGN_WATCHING;
	request = make_request(f, REQUEST_GET, f->ahead);
	request->watch = true;
	conn_send(f->conn, request);
}

static void
take_list(Foreign *f, const ZklReply *reply)
{
	const char *nearest = NULL;
	uint32_t	most = f->lock == hosts.semaphore ? hosts.max - 1 : 0;
	uint32_t	ahead = 0;
	ZklSeq		best = -1;
	bool		found = false;
	size_t		i;

	for (i = 0; i < reply->nchildren; i++)
	{
		ZklLockMode mode;
		ZklSeq		seq;
		bool		has_uuid;
		ZklUuid		uuid;

		found |= strcmp(reply->children[i], strrchr(f->node, '/') + 1) == 0;
		if (!zkl_znode_parse(lock_dialect(f->lock),
							 reply->children[i], &mode, &seq, &has_uuid,
							 &uuid) || seq >= f->seq ||
			!zkl_mode_conflicts(mode, f->mode))
			continue;
		ahead++;
		if (seq <= best)
			continue;
		best = seq;
		nearest = reply->children[i];
	}
	if (reply->rc != ZKL_RC_OK || !found)
		go_idle(f);				/* somebody deleted it */
	else if (ahead <= most)
		hold(f);
	else
		wait_behind(f, nearest);
}

static void
created(Foreign *f, const ZklReply *reply, const char *path)
{
	if (reply->rc == ZKL_RC_NONODE && ++f->attempts < 4)
		send_create(f);
	else if (reply->rc != ZKL_RC_OK || path == NULL)
		go_idle(f);
	else
	{
		f->node = path;
		f->seq = zkl_znode_path_seq(lock_dialect(f->lock), path);
		send_list(f);
	}
}

/* ---- holding ---- */

static void
leave(Foreign *f)
{
	f->holding = false;
	f->phase = FOREIGN_LEAVING;
	f->at = NEVER;
	send_write(f, OP_DELETE, f->node, true, false);
}

/* As Curator 5.5: first a reader of the writer's own number, then it goes. */
static void
downgrade(Foreign *f)
{
	char	   *reader = take_string(f->node);

	memcpy(strstr(reader, "__WRIT__"), "__READ__", 8);
	f->ahead = f->node;
	f->node = reader;
	f->phase = FOREIGN_DOWNGRADING;
	f->at = NEVER;
	send_write(f, OP_CREATE, reader, true, false);
}

static void
downgraded(Foreign *f, const ZklReply *reply)
{
	if (reply->rc != ZKL_RC_OK)
	{
		f->node = f->ahead;
		leave(f);
		return;
	}
	trace("client #: goes on shared", f->id, 0, 0, 0, NULL);
	f->mode = ZKL_SHARED;
	send_write(f, OP_DELETE, f->ahead, true, false);
	f->phase = FOREIGN_HOLDING;
	f->at = base.now + some_delay(base.calm ? MS : foreigners.hold);
}

static void
end_hold(Foreign *f)
{
	if (!base.calm && below(100) < foreigners.deaths)
		die(f);
	else if (!f->broken && f->mode == ZKL_EXCLUSIVE &&
			 lock_dialect(f->lock) == ZKL_DIALECT_CURATOR_RW &&
			 below(100) < foreigners.downgrades)
		downgrade(f);
	else
		leave(f);
}

static void
close_session(Foreign *f)
{
	if (!connect_somewhere(f))
	{
		if (f->session == 0)
			go_idle(f);
		return;
	}
	conn_send(f->conn, make_request(f, REQUEST_CLOSE, ""));
	f->at = NEVER;
}

void
foreign_step(Foreign *f)
{
	f->at = NEVER;
	if (f->phase == FOREIGN_IDLE && !base.calm)
		begin(f);
	else if (f->phase == FOREIGN_HOLDING)
		end_hold(f);
	else if (f->phase == FOREIGN_CLOSING)
		close_session(f);
}

/* ---- what comes in ---- */

void
foreign_frame(Foreign *f, Frame *frame)
{
	agenda_changed(AGENDA_CLIENT(f->id));
	f->seen = ens.servers[f->conn->server].applied;
	if (frame->is_event)
	{
		if (f->phase == FOREIGN_WAITING &&
			strcmp(frame->path, f->ahead) == 0)
			send_list(f);
		return;
	}
	if (frame->tag != f->tag)
		return;
	switch (f->phase)
	{
		case FOREIGN_CREATING:
			created(f, &frame->reply, frame->path);
			break;
		case FOREIGN_LISTING:
			take_list(f, &frame->reply);
			break;
		case FOREIGN_WATCHING:
			if (frame->reply.rc == ZKL_RC_OK)
				f->phase = FOREIGN_WAITING;
			else
				send_list(f);
			break;
		case FOREIGN_DOWNGRADING:
			downgraded(f, &frame->reply);
			break;
		case FOREIGN_LEAVING:
			go_idle(f);
			break;
		default:
			break;
	}
}

void
foreign_gone(Foreign *f)
{
	agenda_changed(AGENDA_CLIENT(f->id));
	f->conn = NULL;
	if (f->phase == FOREIGN_IDLE)
		return;
	f->holding = false;
	if (f->phase != FOREIGN_CLOSING && once_in(2))
	{
		die(f);
		return;
	}
	f->phase = FOREIGN_CLOSING;
	f->at = base.now + some_delay(ens.timeout / 20);
}

/* ---- life ---- */

void
foreign_start(void)
{
	int			i;

	for (i = 0; i < foreigners.n; i++)
	{
		foreigners.foreign[i].id = i;
		foreigners.foreign[i].at = base.now + some_delay(foreigners.think);
	}
}

Time
foreign_due(const Foreign *f)
{
	return f->at;
}

void
foreign_calm(void)
{
	int			i;

	for (i = 0; i < foreigners.n; i++)
		if (foreigners.foreign[i].phase == FOREIGN_IDLE)
			foreigners.foreign[i].at = NEVER;
}

bool
foreign_idle(void)
{
	int			i;

	for (i = 0; i < foreigners.n; i++)
		if (foreigners.foreign[i].phase != FOREIGN_IDLE)
			return false;
	return true;
}

/* ---- who gets what on a connection ---- */

void
client_frame(Conn *c, Frame *frame)
{
	Host	   *h = &hosts.host[c->client];

	if (c->client_kind == CLIENT_FOREIGN)
	{
		if (foreigners.foreign[c->client].conn == c)
			foreign_frame(&foreigners.foreign[c->client], frame);
	}
	else if (h->conn == c)
		link_push(h, LINK_FRAME, 0, frame);
}

void
client_gone(Conn *c)
{
	Host	   *h = &hosts.host[c->client];

	if (c->client_kind == CLIENT_FOREIGN)
	{
		if (foreigners.foreign[c->client].conn == c)
			foreign_gone(&foreigners.foreign[c->client]);
	}
	else if (h->conn == c)
	{
		h->conn = NULL;
		link_push(h, LINK_GONE, 0, NULL);
	}
}
