/*
 * model.c
 *	  A ZooKeeper of one server, for tests that let it act step by step.
 *
 * Owns what is under way in either direction, and executes it.  One thread, no
 * clock, no I/O.  Must not know what locks are.
 */
#include "memory.h"
#include "model.h"

void
model_start(Model *zk)
{
	memset(zk, 0, sizeof(*zk));
	zk->zxid = 1000;
	tree_begin(0);
}

/* ---- other clients ---- */

static void
free_reply(ZklReply reply)
{
	Frame	   *frame = take(sizeof(Frame));

	frame->reply = reply;
	message_free_frame(frame);
}

static int32_t
transact(Model *zk, int64_t session, const Op *ops, size_t n, char *created)
{
	Transaction t = {.zxid = ++zk->zxid,.session = session};

	tree_decide(&t, ops, n, true);
	if (created != NULL && t.neffects > 0)
		strcpy(created, t.effects[0].path->text);
	tree_settle(&t);
	free_reply(t.reply);
	return t.reply.rc;
}

int32_t
model_create(Model *zk, const char *path, bool sequential, int64_t owner,
			 const char *data, char *created)
{
	Op			op = {
		.kind = OP_CREATE,.path = path,.data = data,.length = strlen(data),
		.sequential = sequential,.ephemeral = true
	};

	return transact(zk, owner, &op, 1, created);
}

void
model_mkdir(Model *zk, const char *path)
{
	char	   *prefix = take_string(path);
	size_t		i;

	for (i = 1; i <= strlen(path); i++)
	{
		if (path[i] != '/' && path[i] != '\0')
			continue;
		prefix[i] = '\0';
		(void) model_create(zk, prefix, false, 0, "", NULL);
		prefix[i] = path[i];
	}
	put_back(prefix);
}

int32_t
model_delete(Model *zk, const char *path)
{
	Op			op = {.kind = OP_DELETE,.path = path,.version = -1};

	return transact(zk, 0, &op, 1, NULL);
}

int32_t
model_set(Model *zk, const char *path, const char *data)
{
	Op			op = {
		.kind = OP_SET,.path = path,.data = data,.length = strlen(data),
		.version = -1
	};

	return transact(zk, 0, &op, 1, NULL);
}

void
model_expire(Model *zk, int64_t session)
{
	size_t		n;
	Op		   *ops = tree_end_of_session(session, &n);

	(void) transact(zk, 0, ops, n, NULL);
	put_back(ops);
}

/* ---- a connection ---- */

static void
put_out(ModelConnection *connection, Frame *frame)
{
	*connection->outbox_end = frame;
	connection->outbox_end = &frame->next;
	if (connection->noticed != NULL)
		connection->noticed(connection);
}

void
watcher_event(Watcher *who, ZklEventKind kind, const char *path)
{
	Frame	   *frame = take(sizeof(Frame));

	frame->is_event = true;
	frame->event = kind;
	frame->path = take_string(path);
	put_out((ModelConnection *) who, frame);
}

void
model_open(ModelConnection *connection, Model *zk)
{
	memset(connection, 0, sizeof(*connection));
	connection->zk = zk;
	connection->inbox_end = &connection->inbox;
	connection->outbox_end = &connection->outbox;
}

void
model_connect(ModelConnection *connection, int64_t session)
{
	model_disconnect(connection);
	connection->session = session;
}

static Request *
next_request(ModelConnection *connection)
{
	Request    *request = connection->inbox;

	if (request == NULL)
		return NULL;
	connection->inbox = request->next;
	if (connection->inbox == NULL)
		connection->inbox_end = &connection->inbox;
	return request;
}

Frame *
model_receive(ModelConnection *connection)
{
	Frame	   *frame = connection->outbox;

	if (frame == NULL)
		return NULL;
	connection->outbox = frame->next;
	if (connection->outbox == NULL)
		connection->outbox_end = &connection->outbox;
	return frame;
}

void
model_disconnect(ModelConnection *connection)
{
	Request    *request;
	Frame	   *frame;

	while ((request = next_request(connection)) != NULL)
		message_free_request(request);
	while ((frame = model_receive(connection)) != NULL)
		message_free_frame(frame);
	tree_forget_watcher(HEAD, &connection->watcher);
	connection->session = 0;
}

void
model_send(ModelConnection *connection, const ZklAction *action)
{
	Request    *request;

	if (connection->session == 0)
		return;
	request = message_make_request(action);
	*connection->inbox_end = request;
	connection->inbox_end = &request->next;
}

/* ---- executing ---- */

static void
count(ModelCounts *counts, const Request *request, const ZklReply *reply)
{
	size_t		i;

	counts->containers += request->send == ZKL_SEND_CREATE_CONTAINER;
	counts->deletes += request->send == ZKL_SEND_DELETE;
	counts->gets += request->kind == REQUEST_GET;
	counts->lists += request->kind == REQUEST_LIST;
	counts->unwatches += request->kind == REQUEST_UNWATCH;
	counts->syncs += request->kind == REQUEST_SYNC;
	counts->listed_children += reply->nchildren;
	for (i = 0; i < reply->nchildren; i++)
		counts->listed_bytes += strlen(reply->children[i]);
	if (request->send != ZKL_SEND_MULTI)
		return;
	counts->multis++;
	counts->beats += request->nops == 1 && request->ops->kind == OP_SET;
	if (request->nops > counts->largest_multi)
		counts->largest_multi = (uint32_t) request->nops;
}

/* As often as they took effect */
static void
count_effects(ModelCounts *counts, const Transaction *t)
{
	size_t		i;

	counts->failed_multis += t->neffects == 0;
	for (i = 0; i < t->neffects; i++)
	{
		counts->creates += t->effects[i].kind == OP_CREATE;
		counts->deletes += t->effects[i].kind == OP_DELETE;
	}
}

static void
serve_write(ModelConnection *connection, Request *request, ZklReply *reply)
{
	Model	   *zk = connection->zk;
	int32_t		forced = request->single ? 0 : zk->multi_rc;
	Transaction t = {.session = connection->session};
	size_t		i;

	for (i = 0; i < request->nops; i++)
		request->ops[i].denied = zk->no_write != NULL &&
			request->ops[i].kind != OP_CHECK &&
			strstr(request->ops[i].path, zk->no_write) != NULL;
	if (!request->single)
		zk->multi_rc = 0;
	if (forced == 0 || zk->multi_applied)
	{
		t.zxid = ++zk->zxid;
		tree_decide(&t, request->ops, request->nops, request->single);
	}
	if (!request->single)
		count_effects(&zk->counts, &t);
	tree_settle(&t);
	*reply = t.reply;
	if (forced == 0)
		return;
	free_reply(t.reply);
	memset(reply, 0, sizeof(*reply));
	reply->rc = forced;
}

static bool
is_refused(Model *zk, const Request *request, ZklReply *reply)
{
	if (zk->no_read != NULL && (request->kind == REQUEST_GET ||
								request->kind == REQUEST_LIST) &&
		strstr(request->path, zk->no_read))
	{
		reply->rc = ZKL_RC_NOAUTH;
		return true;
	}
	if (zk->single_rc == 0 || request->send != zk->single_kind ||
		strstr(request->path, zk->single_path) == NULL)
		return false;
	reply->rc = zk->single_rc;
	if (zk->singles > 0)
		zk->singles--;
	if (zk->singles == 0)
		zk->single_rc = 0;
	return true;
}

bool
model_serve(ModelConnection *connection)
{
	Model	   *zk = connection->zk;
	Request    *request = next_request(connection);
	Frame	   *frame;

	if (request == NULL)
		return false;
	frame = take(sizeof(Frame));
	frame->tag = request->tag;
	if (!is_refused(zk, request, &frame->reply))
	{
		if (request->kind == REQUEST_WRITE)
			serve_write(connection, request, &frame->reply);
		else if (request->kind != REQUEST_SYNC)
			message_read(request, HEAD, &connection->watcher, &frame->reply);
		count(&zk->counts, request, &frame->reply);
	}
	put_out(connection, frame);
	message_free_request(request);
	return true;
}
