/*
 * model.c
 *	  A tiny ZooKeeper for tests of the core.
 *
 * Owns the tree, the watches and the messages under way.  One thread, no
 * clock, no I/O.  Must not know what locks are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

/* To undo a step of a transaction, or to tell of it when it has succeeded */
typedef struct Step
{
	ZklMultiKind kind;
	ModelNode  *node;
	char	   *old_data;
	size_t		old_length;
	int64_t		old_mzxid;
} Step;

static void *
take_memory(size_t size)
{
	void	   *memory = calloc(1, size ? size : 1);

	if (memory == NULL)
		abort();
	return memory;
}

static char *
copy_bytes(const char *bytes, size_t length)
{
	char	   *copy = take_memory(length + 1);

	if (length > 0)
		memcpy(copy, bytes, length);
	return copy;
}

static char *
copy_string(const char *string)
{
	return string ? copy_bytes(string, strlen(string)) : NULL;
}

/* ---- the tree ---- */

static ModelNode *
add_node(Model *zk, ModelNode *parent, const char *path)
{
	ModelNode  *node = take_memory(sizeof(ModelNode));

	node->path = copy_string(path);
	node->parent = parent;
	if (zk->root == NULL)
		zk->root = node->next = node->prev = node;
	node->next = zk->root;
	node->prev = zk->root->prev;
	node->prev->next = node;
	zk->root->prev = node;
	return node;
}

static void
free_node(ModelNode *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	free(node->path);
	free(node->data);
	free(node);
}

void
model_start(Model *zk)
{
	memset(zk, 0, sizeof(*zk));
	zk->inbox_end = &zk->inbox;
	zk->outbox_end = &zk->outbox;
	zk->zxid = 1000;
	add_node(zk, NULL, "");
}

void
model_finish(Model *zk)
{
	model_disconnect(zk);
	while (zk->root->next != zk->root)
		free_node(zk->root->next);
	free(zk->root->path);
	free(zk->root->data);
	free(zk->root);
}

/* The last created come first: they are asked for most. */
ModelNode *
model_find(const Model *zk, const char *path)
{
	ModelNode  *node;

	for (node = zk->root->prev; node != zk->root; node = node->prev)
	{
		if (!node->deleted && strcmp(node->path, path) == 0)
			return node;
	}
	return path[0] == '\0' ? zk->root : NULL;
}

static void
emit_event(Model *zk, ZklEventKind kind, const char *path)
{
	ModelMessage *message = take_memory(sizeof(ModelMessage));

	message->is_event = true;
	message->event = kind;
	message->path = copy_string(path);
	*zk->outbox_end = message;
	zk->outbox_end = &message->next;
}

/* ---- transactions ---- */

/* Rights are asked for once it is clear what is there to have a right to. */
static bool
may_write(const Model *zk, const char *path)
{
	return !zk->ours || !zk->no_write || !strstr(path, zk->no_write);
}

static int32_t
do_create(Model *zk, const ZklMultiOp *op, bool sequential, int64_t owner,
		  Step *step)
{
	char		path[ZKL_MAX_PATH + 64];
	size_t		parent_length = (size_t) (strrchr(op->path, '/') - op->path);
	ModelNode  *parent;

	snprintf(path, sizeof(path), "%.*s", (int) parent_length, op->path);
	parent = model_find(zk, path);
	if (parent == NULL)
		return ZKL_RC_NONODE;
	if (!may_write(zk, op->path))
		return MODEL_NO_AUTH;
	snprintf(path, sizeof(path), "%s", op->path);
	if (sequential)
		snprintf(path, sizeof(path), "%s%010d", op->path,
				 (int) (int32_t) parent->counter);
	if (model_find(zk, path) != NULL)
		return ZKL_RC_NODEEXISTS;
	step->node = add_node(zk, parent, path);
	step->node->data = copy_bytes(op->data, op->data_length);
	step->node->data_length = op->data_length;
	step->node->stat.czxid = step->node->stat.mzxid = zk->zxid;
	step->node->stat.ephemeral_owner = owner;
	parent->counter++;
	parent->nchildren++;
	return ZKL_RC_OK;
}

static int32_t
do_delete(Model *zk, const ZklMultiOp *op, Step *step)
{
	ModelNode  *node = model_find(zk, op->path);

	if (node == NULL)
		return ZKL_RC_NONODE;
	if (!may_write(zk, op->path))
		return MODEL_NO_AUTH;
	if (op->version != -1 && op->version != node->version)
		return ZKL_RC_BADVERSION;
	if (node->nchildren > 0)
		return ZKL_RC_NOTEMPTY;
	node->deleted = true;
	node->parent->nchildren--;
	step->node = node;
	return ZKL_RC_OK;
}

static int32_t
do_set(Model *zk, const ZklMultiOp *op, Step *step)
{
	ModelNode  *node = model_find(zk, op->path);

	if (node == NULL)
		return ZKL_RC_NONODE;
	if (!may_write(zk, op->path))
		return MODEL_NO_AUTH;
	if (op->version != -1 && op->version != node->version)
		return ZKL_RC_BADVERSION;
	step->node = node;
	step->old_data = node->data;
	step->old_length = node->data_length;
	step->old_mzxid = node->stat.mzxid;
	node->data = copy_bytes(op->data, op->data_length);
	node->data_length = op->data_length;
	node->stat.mzxid = zk->zxid;
	node->version++;
	return ZKL_RC_OK;
}

static int32_t
do_step(Model *zk, const ZklMultiOp *op, int64_t owner, Step *step)
{
	step->kind = op->kind;
	switch (op->kind)
	{
		case ZKL_MULTI_SET:
			return do_set(zk, op, step);
		case ZKL_MULTI_DELETE:
			return do_delete(zk, op, step);
		case ZKL_MULTI_CREATE:
			return do_create(zk, op, true, owner, step);
		case ZKL_MULTI_CREATE_EPHEMERAL:
			return do_create(zk, op, false, owner, step);
	}
	abort();
}

static void
undo_step(Step *step)
{
	ModelNode  *node = step->node;

	switch (step->kind)
	{
		case ZKL_MULTI_SET:
			free(node->data);
			node->data = step->old_data;
			node->data_length = step->old_length;
			node->stat.mzxid = step->old_mzxid;
			node->version--;
			break;
		case ZKL_MULTI_DELETE:
			node->deleted = false;
			node->parent->nchildren++;
			break;
		default:
			node->parent->counter--;
			node->parent->nchildren--;
			free_node(node);
	}
}

static void
changed_children(Model *zk, ModelNode *parent)
{
	if (parent->child_watch)
		emit_event(zk, ZKL_EVENT_CHILDREN, parent->path);
	parent->child_watch = false;
}

static void
tell_step(Model *zk, Step *step)
{
	ModelNode  *node = step->node;

	switch (step->kind)
	{
		case ZKL_MULTI_SET:
			if (node->data_watch)
				emit_event(zk, ZKL_EVENT_CHANGED, node->path);
			node->data_watch = false;
			free(step->old_data);
			break;
		case ZKL_MULTI_DELETE:
			if (node->data_watch || node->child_watch)
				emit_event(zk, ZKL_EVENT_DELETED, node->path);
			changed_children(zk, node->parent);
			free_node(node);
			break;
		default:
			changed_children(zk, node->parent);
	}
}

/* All or nothing.  Returns how many steps went well: n, if all did. */
static size_t
transact(Model *zk, const ZklMultiOp *ops, size_t n, int64_t owner,
		 Step *steps, int32_t *rc)
{
	size_t		done;
	size_t		i;

	zk->zxid++;
	*rc = ZKL_RC_OK;
	for (done = 0; done < n; done++)
	{
		*rc = do_step(zk, &ops[done], owner, &steps[done]);
		if (*rc != ZKL_RC_OK)
			break;
	}
	if (done < n)
	{
		for (i = done; i-- > 0;)
			undo_step(&steps[i]);
	}
	return done;
}

static int32_t
transact_one(Model *zk, const ZklMultiOp *op, bool sequential, int64_t owner,
			 char *created)
{
	Step		step = {.kind = op->kind};
	int32_t		rc;

	zk->zxid++;
	if (op->kind == ZKL_MULTI_CREATE)
		rc = do_create(zk, op, sequential, owner, &step);
	else
		rc = do_step(zk, op, owner, &step);
	if (rc != ZKL_RC_OK)
		return rc;
	if (created)
		strcpy(created, step.node->path);
	tell_step(zk, &step);
	return rc;
}

/* ---- other clients ---- */

int32_t
model_create(Model *zk, const char *path, bool sequential, int64_t owner,
			 const char *data, char *created)
{
	ZklMultiOp	op = {
		.kind = ZKL_MULTI_CREATE,.path = path,.data = data,
		.data_length = strlen(data)
	};

	return transact_one(zk, &op, sequential, owner, created);
}

ModelNode *
model_mkdir(Model *zk, const char *path)
{
	char	   *prefix = copy_string(path);
	size_t		i;

	for (i = 1; i <= strlen(path); i++)
	{
		if (path[i] != '/' && path[i] != '\0')
			continue;
		prefix[i] = '\0';
		(void) model_create(zk, prefix, false, 0, "", NULL);
		prefix[i] = path[i];
	}
	free(prefix);
	return model_find(zk, path);
}

int32_t
model_delete(Model *zk, const char *path)
{
	ZklMultiOp	op = {.kind = ZKL_MULTI_DELETE,.path = path,.version = -1};

	return transact_one(zk, &op, false, 0, NULL);
}

int32_t
model_set(Model *zk, const char *path, const char *data)
{
	ZklMultiOp	op = {
		.kind = ZKL_MULTI_SET,.path = path,.version = -1,.data = data,
		.data_length = strlen(data)
	};

	return transact_one(zk, &op, false, 0, NULL);
}

void
model_expire(Model *zk, int64_t session)
{
	ModelNode  *node = zk->root->next;

	while (node != zk->root)
	{
		ModelNode  *next = node->next;

		if (node->stat.ephemeral_owner == session)
			(void) model_delete(zk, node->path);
		node = next;
	}
}

/* ---- the connection ---- */

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
	request = take_memory(sizeof(ModelRequest));
	request->kind = action->send;
	request->tag = action->tag;
	request->path = copy_string(action->path);
	request->watch = action->watch;
	if (action->send == ZKL_SEND_MULTI)
	{
		request->nmulti = action->nmulti;
		request->multi = take_memory(action->nmulti * sizeof(ZklMultiOp));
		for (i = 0; i < action->nmulti; i++)
		{
			request->multi[i] = action->multi[i];
			request->multi[i].path = copy_string(action->multi[i].path);
			request->multi[i].data = copy_bytes(action->multi[i].data,
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
	Step	   *steps = take_memory(n * sizeof(Step));
	ZklMultiResult *results = take_memory(n * sizeof(ZklMultiResult));
	int32_t		forced = zk->multi_rc;
	size_t		done = 0;
	size_t		i;

	zk->multi_rc = 0;
	zk->counts.multis++;
	if (n > zk->counts.largest_multi)
		zk->counts.largest_multi = (uint32_t) n;
	if (forced == 0 || zk->multi_applied)
		done = transact(zk, request->multi, n, zk->session, steps, &reply->rc);
	for (i = 0; i < n; i++)
	{
		results[i].rc = i < done ? ZKL_RC_OK : i > done ? MODEL_PASSED_OVER :
			reply->rc;
		if (done < n || forced != 0)
			continue;
		if (request->multi[i].kind >= ZKL_MULTI_CREATE)
			results[i].path = copy_string(steps[i].node->path);
		else if (i == 0 && steps[i].kind == ZKL_MULTI_SET)
			reply->stat = steps[i].node->stat;
	}
	for (i = 0; done == n && i < n; i++)
	{
		zk->counts.creates += steps[i].kind == ZKL_MULTI_CREATE;
		zk->counts.deletes += steps[i].kind == ZKL_MULTI_DELETE;
		tell_step(zk, &steps[i]);
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
	reply->data = copy_bytes(node->data, node->data_length);
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
	children = take_memory(directory->nchildren * sizeof(char *));

	/* newest first: as good an order as ZooKeeper's */
	for (node = zk->root->prev; node != zk->root; node = node->prev)
	{
		if (node->parent == directory)
			children[reply->nchildren++] =
				copy_string(strrchr(node->path, '/') + 1);
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
	}
}

bool
model_serve(Model *zk)
{
	ModelRequest *request = next_request(zk);
	ModelMessage *message;

	if (request == NULL)
		return false;
	message = take_memory(sizeof(ModelMessage));
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
