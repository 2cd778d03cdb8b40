/*
 * model_tree.c
 *	  The tree of a tiny ZooKeeper, its transactions, and other clients.
 *
 * Owns the nodes and their watches.  One thread, no clock, no I/O.  Must not
 * know what locks are, nor what our connections have under way.
 */
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

void *
model_memory(size_t size)
{
	void	   *memory = calloc(1, size ? size : 1);

	if (memory == NULL)
		abort();
	return memory;
}

char *
model_bytes(const char *bytes, size_t length)
{
	char	   *copy = model_memory(length + 1);

	if (length > 0)
		memcpy(copy, bytes, length);
	return copy;
}

char *
model_string(const char *string)
{
	return string ? model_bytes(string, strlen(string)) : NULL;
}

/* ---- the tree ---- */

static int
compare_paths(const void *a, const void *b)
{
	return strcmp(((const ModelNode *) a)->path, ((const ModelNode *) b)->path);
}

static void
add_to_index(Model *zk, ModelNode *node)
{
	if (tsearch(node, &zk->by_path, compare_paths) == NULL)
		abort();
}

static void
join_siblings(ModelNode *parent, ModelNode *node)
{
	node->older = parent->youngest;
	if (node->older != NULL)
		node->older->younger = node;
	parent->youngest = node;
}

static void
leave_siblings(ModelNode *node)
{
	if (node->younger != NULL)
		node->younger->older = node->older;
	else
		node->parent->youngest = node->older;
	if (node->older != NULL)
		node->older->younger = node->younger;
}

static ModelNode *
add_node(Model *zk, ModelNode *parent, const char *path)
{
	ModelNode  *node = model_memory(sizeof(ModelNode));

	node->path = model_string(path);
	node->parent = parent;
	if (zk->root == NULL)
		zk->root = node->next = node->prev = node;
	if (parent != NULL)
		join_siblings(parent, node);
	node->next = zk->root;
	node->prev = zk->root->prev;
	node->prev->next = node;
	zk->root->prev = node;
	add_to_index(zk, node);
	return node;
}

static void
forget_watches(ModelWatch **watches)
{
	while (*watches != NULL)
		(void) model_unwatch(watches, (*watches)->who);
}

static void
free_node(Model *zk, ModelNode *node)
{
	if (!node->deleted)
		(void) tdelete(node, &zk->by_path, compare_paths);
	if (node->parent != NULL)
		leave_siblings(node);
	node->prev->next = node->next;
	node->next->prev = node->prev;
	forget_watches(&node->data_watch);
	forget_watches(&node->child_watch);
	free(node->path);
	free(node->data);
	free(node);
}

void
model_start(Model *zk)
{
	memset(zk, 0, sizeof(*zk));
	zk->zxid = 1000;
	add_node(zk, NULL, "");
}

/* Children come behind their parents in the ring. */
void
model_finish(Model *zk)
{
	while (zk->root->prev != zk->root)
		free_node(zk, zk->root->prev);
	free_node(zk, zk->root);
}

ModelNode *
model_find(const Model *zk, const char *path)
{
	ModelNode	key = {.path = (char *) path};
	ModelNode  *const *found = tfind(&key, &zk->by_path, compare_paths);

	return found != NULL ? *found : NULL;
}

/* ---- watches ---- */

void
model_watch(ModelWatch **watches, ModelConnection *who)
{
	ModelWatch *watch;

	for (watch = *watches; watch != NULL; watch = watch->next)
		if (watch->who == who)
			return;
	watch = model_memory(sizeof(ModelWatch));
	watch->next = *watches;
	watch->who = who;
	*watches = watch;
	who->watches++;
	who->zk->watches++;
}

bool
model_unwatch(ModelWatch **watches, ModelConnection *who)
{
	ModelWatch *watch;

	while ((watch = *watches) != NULL && watch->who != who)
		watches = &watch->next;
	if (watch == NULL)
		return false;
	*watches = watch->next;
	who->watches--;
	who->zk->watches--;
	free(watch);
	return true;
}

static void
fire(ModelWatch **watches, ZklEventKind kind, const char *path)
{
	while (*watches != NULL)
	{
		ModelConnection *who = (*watches)->who;

		(void) model_unwatch(watches, who);
		model_emit(who, kind, path);
	}
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
		  ModelStep *step)
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
	step->node->data = model_bytes(op->data, op->data_length);
	step->node->data_length = op->data_length;
	step->node->stat.czxid = step->node->stat.mzxid = zk->zxid;
	step->node->stat.ephemeral_owner = owner;
	parent->counter++;
	parent->nchildren++;
	return ZKL_RC_OK;
}

static int32_t
do_delete(Model *zk, const ZklMultiOp *op, ModelStep *step)
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
	(void) tdelete(node, &zk->by_path, compare_paths);
	node->deleted = true;
	node->parent->nchildren--;
	step->node = node;
	return ZKL_RC_OK;
}

static int32_t
do_set(Model *zk, const ZklMultiOp *op, ModelStep *step)
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
	node->data = model_bytes(op->data, op->data_length);
	node->data_length = op->data_length;
	node->stat.mzxid = zk->zxid;
	node->stat.version = ++node->version;
	return ZKL_RC_OK;
}

static int32_t
do_step(Model *zk, const ZklMultiOp *op, int64_t owner, ModelStep *step)
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
		case ZKL_MULTI_CREATE_PERSISTENT:
			return do_create(zk, op, false, 0, step);
	}
	abort();
}

static void
undo_step(Model *zk, ModelStep *step)
{
	ModelNode  *node = step->node;

	switch (step->kind)
	{
		case ZKL_MULTI_SET:
			free(node->data);
			node->data = step->old_data;
			node->data_length = step->old_length;
			node->stat.mzxid = step->old_mzxid;
			node->stat.version = --node->version;
			break;
		case ZKL_MULTI_DELETE:
			node->deleted = false;
			node->parent->nchildren++;
			add_to_index(zk, node);
			break;
		default:
			node->parent->counter--;
			node->parent->nchildren--;
			free_node(zk, node);
	}
}

/* Who watches both the node and its children is told of its end once. */
static void
fire_deleted(ModelNode *node)
{
	ModelWatch *watch;

	for (watch = node->child_watch; watch != NULL; watch = watch->next)
		model_watch(&node->data_watch, watch->who);
	forget_watches(&node->child_watch);
	fire(&node->data_watch, ZKL_EVENT_DELETED, node->path);
}

void
model_tell(Model *zk, ModelStep *step)
{
	ModelNode  *node = step->node;
	ModelNode  *parent = node->parent;

	switch (step->kind)
	{
		case ZKL_MULTI_SET:
			fire(&node->data_watch, ZKL_EVENT_CHANGED, node->path);
			free(step->old_data);
			break;
		case ZKL_MULTI_DELETE:
			fire_deleted(node);
			fire(&parent->child_watch, ZKL_EVENT_CHILDREN, parent->path);
			free_node(zk, node);
			break;
		default:
			fire(&parent->child_watch, ZKL_EVENT_CHILDREN, parent->path);
	}
}

size_t
model_transact(Model *zk, const ZklMultiOp *ops, size_t n, int64_t owner,
			   ModelStep *steps, int32_t *rc)
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
			undo_step(zk, &steps[i]);
	}
	return done;
}

static int32_t
transact_one(Model *zk, const ZklMultiOp *op, bool sequential, int64_t owner,
			 char *created)
{
	ModelStep	step = {.kind = op->kind};
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
	model_tell(zk, &step);
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
	char	   *prefix = model_string(path);
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
