/*
 * model.c
 *	  Our connections to a tiny ZooKeeper, for tests of the core.
 *
 * Owns what is under way in either direction, and executes it.  One thread, no
 * clock, no I/O.  Must not know what locks are.
 */
#include <stdlib.h>
#include <string.h>

#include "model.h"

static void
put_out(ModelConnection *connection, ModelMessage *message)
{
	*connection->outbox_end = message;
	connection->outbox_end = &message->next;
	if (connection->zk->noticed != NULL)
		connection->zk->noticed(connection);
}

void
model_emit(ModelConnection *connection, ZklEventKind kind, const char *path)
{
	ModelMessage *message = model_memory(sizeof(ModelMessage));

	message->is_event = true;
	message->event = kind;
	message->path = model_string(path);
	put_out(connection, message);
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

static void
free_request(ModelRequest *request)
{
	size_t		i;

	for (i = 0; i < request->nmulti; i++)
	{
		free((char *) request->multi[i].path);
		free((char *) request->multi[i].data);
	}
	free(request->multi);
	free(request->path);
	free(request);
}

static ModelRequest *
next_request(ModelConnection *connection)
{
	ModelRequest *request = connection->inbox;

	if (request == NULL)
		return NULL;
	connection->inbox = request->next;
	if (connection->inbox == NULL)
		connection->inbox_end = &connection->inbox;
	return request;
}

void
model_disconnect(ModelConnection *connection)
{
	ModelNode  *root = connection->zk->root;
	ModelNode  *node = root;
	ModelRequest *request;
	ModelMessage *message;

	while ((request = next_request(connection)) != NULL)
		free_request(request);
	while ((message = model_receive(connection)) != NULL)
		model_free_message(message);
	do
	{
		(void) model_unwatch(&node->data_watch, connection);
		(void) model_unwatch(&node->child_watch, connection);
		node = node->next;
	} while (node != root);
	connection->session = 0;
}

void
model_send(ModelConnection *connection, const ZklAction *action)
{
	ModelRequest *request;
	size_t		i;

	if (connection->session == 0)
		return;
	request = model_memory(sizeof(ModelRequest));
	request->kind = action->send;
	request->tag = action->tag;
	request->path = model_string(action->path);
	request->watch = action->watch;
	if (action->send == ZKL_SEND_MULTI)
	{
		request->nmulti = action->nmulti;
		request->multi = model_memory(action->nmulti * sizeof(ZklMultiOp));
		for (i = 0; i < action->nmulti; i++)
		{
			request->multi[i] = action->multi[i];
			request->multi[i].path = model_string(action->multi[i].path);
			request->multi[i].data = model_bytes(action->multi[i].data,
												 action->multi[i].data_length);
		}
	}
	*connection->inbox_end = request;
	connection->inbox_end = &request->next;
}

static void
serve_multi(ModelConnection *connection, const ModelRequest *request,
			ZklReply *reply)
{
	Model	   *zk = connection->zk;
	size_t		n = request->nmulti;
	ModelStep  *steps = model_memory(n * sizeof(ModelStep));
	ZklMultiResult *results = model_memory(n * sizeof(ZklMultiResult));
	int32_t		forced = zk->multi_rc;
	size_t		done = 0;
	size_t		i;

	zk->multi_rc = 0;
	zk->counts.multis++;
	zk->counts.beats += n == 1 && request->multi[0].kind == ZKL_MULTI_SET;
	if (n > zk->counts.largest_multi)
		zk->counts.largest_multi = (uint32_t) n;
	if (forced == 0 || zk->multi_applied)
		done = model_transact(zk, request->multi, n, connection->session,
							  steps, &reply->rc);
	for (i = 0; i < n; i++)
	{
		results[i].rc = i < done ? ZKL_RC_OK :
			i > done ? MODEL_PASSED_OVER : reply->rc;
		if (done < n || forced != 0)
			continue;
		if (request->multi[i].kind >= ZKL_MULTI_CREATE)
			results[i].path = model_string(steps[i].node->path);
		else if (i == 0 && steps[i].kind == ZKL_MULTI_SET)
			reply->stat = steps[i].node->stat;
	}
	for (i = 0; done == n && i < n; i++)
	{
		zk->counts.creates += steps[i].kind == ZKL_MULTI_CREATE;
		zk->counts.deletes += steps[i].kind == ZKL_MULTI_DELETE;
		model_tell(zk, &steps[i]);
	}
	zk->counts.failed_multis += done < n;
	free(steps);
	reply->results = results;
	reply->nresults = n;
	if (forced != 0)
	{
		reply->rc = forced;
		reply->nresults = 0;
	}
}

static void
serve_get(ModelConnection *connection, const ModelRequest *request,
		  ZklReply *reply)
{
	Model	   *zk = connection->zk;
	ModelNode  *node = model_find(zk, request->path);

	zk->counts.gets++;
	if (node == NULL)
	{
		reply->rc = ZKL_RC_NONODE;
		return;
	}
	if (request->watch)
		model_watch(&node->data_watch, connection);
	reply->stat = node->stat;
	reply->data = model_bytes(node->data, node->data_length);
	reply->data_length = node->data_length;
}

static void
serve_list(ModelConnection *connection, const ModelRequest *request,
		   ZklReply *reply)
{
	Model	   *zk = connection->zk;
	ModelNode  *directory = model_find(zk, request->path);
	const char **children;
	ModelNode  *node;

	zk->counts.lists++;
	if (directory == NULL)
	{
		reply->rc = ZKL_RC_NONODE;
		return;
	}
	if (request->watch)
		model_watch(&directory->child_watch, connection);
	children = model_memory(directory->nchildren * sizeof(char *));
	for (node = directory->youngest; node != NULL; node = node->older)
	{
		const char *name = strrchr(node->path, '/') + 1;

		children[reply->nchildren++] = model_string(name);
		zk->counts.listed_bytes += strlen(name);
	}
	reply->children = children;
	zk->counts.listed_children += reply->nchildren;
}

static int32_t
serve_unwatch(ModelConnection *connection, const ModelRequest *request)
{
	ModelNode  *node = model_find(connection->zk, request->path);

	connection->zk->counts.unwatches++;
	if (node == NULL ||
		!model_unwatch(request->kind == ZKL_SEND_UNWATCH ?
					   &node->data_watch : &node->child_watch, connection))
		return MODEL_NO_WATCHER;
	return ZKL_RC_OK;
}

static void
serve_request(ModelConnection *connection, const ModelRequest *request,
			  ZklReply *reply)
{
	Model	   *zk = connection->zk;

	switch (request->kind)
	{
		case ZKL_SEND_MULTI:
			serve_multi(connection, request, reply);
			break;
		case ZKL_SEND_CREATE_CONTAINER:
			zk->counts.containers++;
			reply->rc = model_create(zk, request->path, false, 0, "", NULL);
			break;
		case ZKL_SEND_DELETE:
			zk->counts.deletes++;
			reply->rc = model_delete(zk, request->path);
			break;
		case ZKL_SEND_GET:
			serve_get(connection, request, reply);
			break;
		case ZKL_SEND_LIST:
			serve_list(connection, request, reply);
			break;
		case ZKL_SEND_UNWATCH:
		case ZKL_SEND_UNWATCH_CHILDREN:
			reply->rc = serve_unwatch(connection, request);
			break;
		case ZKL_SEND_SYNC:
			zk->counts.syncs++;
			break;
	}
}

static bool
is_refused(Model *zk, const ModelRequest *request, ZklReply *reply)
{
	if (zk->single_rc == 0 || request->kind != zk->single_kind ||
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
	ModelRequest *request = next_request(connection);
	ModelMessage *message;

	if (request == NULL)
		return false;
	message = model_memory(sizeof(ModelMessage));
	message->tag = request->tag;
	zk->ours = true;
	if (zk->no_read != NULL && (request->kind == ZKL_SEND_GET ||
								request->kind == ZKL_SEND_LIST) &&
		strstr(request->path, zk->no_read))
		message->reply.rc = MODEL_NO_AUTH;
	else if (!is_refused(zk, request, &message->reply))
		serve_request(connection, request, &message->reply);
	zk->ours = false;
	put_out(connection, message);
	free_request(request);
	return true;
}

ModelMessage *
model_receive(ModelConnection *connection)
{
	ModelMessage *message = connection->outbox;

	if (message == NULL)
		return NULL;
	connection->outbox = message->next;
	if (connection->outbox == NULL)
		connection->outbox_end = &connection->outbox;
	return message;
}

void
model_free_message(ModelMessage *message)
{
	ZklReply   *reply = &message->reply;
	size_t		i;

	for (i = 0; i < reply->nchildren; i++)
		free((char *) reply->children[i]);
	for (i = 0; reply->results && i < reply->nresults; i++)
		free((char *) reply->results[i].path);
	free((void *) reply->children);
	free((void *) reply->results);
	free((char *) reply->data);
	free(message->path);
	free(message);
}
