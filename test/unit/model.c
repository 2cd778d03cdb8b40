/*
 * model.c
 *	  Our connection to a tiny ZooKeeper, for tests of the core.
 *
 * Owns what is under way in either direction, and executes it.  One thread, no
 * clock, no I/O.  Must not know what locks are.
 */
#include <stdlib.h>
#include <string.h>

#include "model.h"

void
model_emit(Model *zk, ZklEventKind kind, const char *path)
{
	ModelMessage *message = model_memory(sizeof(ModelMessage));

	message->is_event = true;
	message->event = kind;
	message->path = model_string(path);
	*zk->outbox_end = message;
	zk->outbox_end = &message->next;
}

void
model_connect(Model *zk, int64_t session)
{
	model_disconnect(zk);
	zk->session = session;
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
next_request(Model *zk)
{
	ModelRequest *request = zk->inbox;

	if (request == NULL)
		return NULL;
	zk->inbox = request->next;
	if (zk->inbox == NULL)
		zk->inbox_end = &zk->inbox;
	return request;
}

void
model_disconnect(Model *zk)
{
	ModelNode  *node = zk->root;
	ModelRequest *request;
	ModelMessage *message;

	while ((request = next_request(zk)) != NULL)
		free_request(request);
	while ((message = model_receive(zk)) != NULL)
		model_free_message(message);
	do
	{
		node->data_watch = node->child_watch = false;
		node = node->next;
	} while (node != zk->root);
	zk->session = 0;
}

void
model_send(Model *zk, const ZklAction *action)
{
	ModelRequest *request;
	size_t		i;

	if (zk->session == 0)
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
	*zk->inbox_end = request;
	zk->inbox_end = &request->next;
}

static void
serve_multi(Model *zk, const ModelRequest *request, ZklReply *reply)
{
	size_t		n = request->nmulti;
	ModelStep  *steps = model_memory(n * sizeof(ModelStep));
	ZklMultiResult *results = model_memory(n * sizeof(ZklMultiResult));
	int32_t		forced = zk->multi_rc;
	size_t		done = 0;
	size_t		i;

	zk->multi_rc = 0;
	zk->counts.multis++;
	if (n > zk->counts.largest_multi)
		zk->counts.largest_multi = (uint32_t) n;
	if (forced == 0 || zk->multi_applied)
		done = model_transact(zk, request->multi, n, zk->session, steps,
							  &reply->rc);
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
serve_get(Model *zk, const ModelRequest *request, ZklReply *reply)
{
	ModelNode  *node = model_find(zk, request->path);

	zk->counts.gets++;
	if (node == NULL)
	{
		reply->rc = ZKL_RC_NONODE;
		return;
	}
	if (request->watch)
		node->data_watch = true;
	reply->stat = node->stat;
	reply->data = model_bytes(node->data, node->data_length);
	reply->data_length = node->data_length;
}

static void
serve_list(Model *zk, const ModelRequest *request, ZklReply *reply)
{
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
		directory->child_watch = true;
	children = model_memory(directory->nchildren * sizeof(char *));

	/* newest first: as good an order as ZooKeeper's */
	for (node = zk->root->prev; node != zk->root; node = node->prev)
	{
		if (node->parent == directory)
			children[reply->nchildren++] =
				model_string(strrchr(node->path, '/') + 1);
	}
	reply->children = children;
}

static int32_t
serve_unwatch(Model *zk, const char *path)
{
	ModelNode  *node = model_find(zk, path);

	zk->counts.unwatches++;
	if (node == NULL || !node->data_watch)
		return MODEL_NO_WATCHER;
	node->data_watch = false;
	return ZKL_RC_OK;
}

static void
serve_request(Model *zk, const ModelRequest *request, ZklReply *reply)
{
	switch (request->kind)
	{
		case ZKL_SEND_MULTI:
			serve_multi(zk, request, reply);
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
			serve_get(zk, request, reply);
			break;
		case ZKL_SEND_LIST:
			serve_list(zk, request, reply);
			break;
		case ZKL_SEND_UNWATCH:
			reply->rc = serve_unwatch(zk, request->path);
			break;
		case ZKL_SEND_SYNC:
			zk->counts.syncs++;
			break;
	}
}

bool
model_serve(Model *zk)
{
	ModelRequest *request = next_request(zk);
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
	else
		serve_request(zk, request, &message->reply);
	zk->ours = false;
	*zk->outbox_end = message;
	zk->outbox_end = &message->next;
	free_request(request);
	return true;
}
ModelMessage *
model_receive(Model *zk)
{
	ModelMessage *message = zk->outbox;

	if (message == NULL)
		return NULL;
	zk->outbox = message->next;
	if (zk->outbox == NULL)
		zk->outbox_end = &zk->outbox;
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
