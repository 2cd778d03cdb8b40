/*
 * tree.c
 *	  ZooKeeper's rules: a tree of znodes, transactions on it, and watches.
 *
 * Owns the paths and what each copy of the tree has at them.  Must not know
 * connections, but for handing them their watch events, nor locks.
 */
#include <stdio.h>

#include "memory.h"
#include "tree.h"

#define BUCKETS		1024
#define LONGEST		512

static int	ncopies;			/* the head is one */
static Path *buckets[BUCKETS];
static Path *newest;
static Path *oldest;
static uint64_t generation;

/* ---- paths ---- */

static uint32_t
hash_text(const char *text)
{
	size_t		length = strlen(text);
	uint64_t	hash = length;
	uint64_t	word;

	for (; length >= sizeof(word); length -= sizeof(word))
	{
		memcpy(&word, text, sizeof(word));
		hash = (hash ^ word) * 0x9E3779B97F4A7C15;
		hash ^= hash >> 32;
		text += sizeof(word);
	}
	word = 0;
	memcpy(&word, text, length);
	hash = (hash ^ word) * 0x9E3779B97F4A7C15;
	return (uint32_t) (hash >> 32);
}

static Path *
find_path(const char *text, uint32_t hash)
{
	Path	   *path = buckets[hash % BUCKETS];

	while (path && (path->hash != hash || strcmp(path->text, text) != 0))
		path = path->in_bucket;
	return path;
}

/* The text of a path's parent: false, if it has none. */
static bool
parent_text(const char *path, char *parent)
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL)
		return false;
	snprintf(parent, LONGEST, "%.*s", (int) (slash - path), path);
	return true;
}

Path *
tree_path(const char *text)
{
	uint32_t	hash = hash_text(text);
	Path	   *path = find_path(text, hash);
	char		parent[LONGEST];

	if (path != NULL)
		return path;
	path = take(sizeof(Path) + (size_t) ncopies * sizeof(Node));
	path->text = path->name = take_string(text);
	path->hash = hash;
	path->in_bucket = buckets[hash % BUCKETS];
	buckets[hash % BUCKETS] = path;
	if (parent_text(text, parent))
	{
		path->name = strrchr(path->text, '/') + 1;
		path->parent = tree_path(parent);
	}
	return path;
}

Node *
tree_copy(const char *text, int copy)
{
	Path	   *path = find_path(text, hash_text(text));

	return path != NULL && path->node[copy].exists ? &path->node[copy] : NULL;
}

Node *
tree_find(const char *text)
{
	return tree_copy(text, HEAD);
}

Path *
tree_children(const char *text)
{
	const Path *path = find_path(text, hash_text(text));

	return path != NULL ? path->children : NULL;
}

Path *
tree_newest(void)
{
	return newest;
}

Path *
tree_oldest(void)
{
	return oldest;
}

uint64_t
tree_generation(void)
{
	return generation;
}

void
tree_begin(int copies)
{
	Path	   *root;
	int			copy;

	memset(buckets, 0, sizeof(buckets));
	newest = oldest = NULL;
	generation++;
	ncopies = 1 + copies;
	root = tree_path("");
	for (copy = 0; copy < ncopies; copy++)
		root->node[copy].exists = true;
}

/* Another copy has it: then it is among its parent's children. */
static void
add_copy(Path *path)
{
	Path	   *parent = path->parent;

	if (path->copies++ > 0)
		return;
	path->sibling = parent->children;
	path->sibling_before = NULL;
	if (parent->children != NULL)
		parent->children->sibling_before = path;
	parent->children = path;
	path->all = newest;
	path->all_before = NULL;
	*(newest != NULL ? &newest->all_before : &oldest) = path;
	newest = path;
}

/* Its own links stay: somebody may be walking along them. */
static void
remove_copy(Path *path)
{
	if (--path->copies > 0)
		return;
	*(path->sibling_before ? &path->sibling_before->sibling :
	  &path->parent->children) = path->sibling;
	if (path->sibling != NULL)
		path->sibling->sibling_before = path->sibling_before;
	*(path->all_before ? &path->all_before->all : &newest) = path->all;
	*(path->all ? &path->all->all_before : &oldest) = path->all_before;
}

/* ---- watches ---- */

void
tree_forget_watcher(int copy, Watcher *who)
{
	Path	   *path;

	for (path = newest; path != NULL; path = path->all)
	{
		(void) watch_remove(&path->node[copy].data_watch, who);
		(void) watch_remove(&path->node[copy].child_watch, who);
	}
}

static void
fire_effects(int copy, const Transaction *t)
{
	size_t		i;

	for (i = 0; i < t->neffects; i++)
	{
		Path	   *path = t->effects[i].path;

		if (t->effects[i].kind == OP_SET)
			watch_fire(&path->node[copy].data_watch, ZKL_EVENT_CHANGED,
					   path->text);
		else if (t->effects[i].kind == OP_DELETE)
			watch_fire_both(&path->node[copy].data_watch,
							&path->node[copy].child_watch, path->text);
		if (t->effects[i].kind == OP_DELETE ||
			t->effects[i].kind == OP_CREATE)
			watch_fire(&path->parent->node[copy].child_watch,
					   ZKL_EVENT_CHILDREN, path->parent->text);
	}
}

/* ---- deciding ---- */

/*
 * The number of a sequential child.  At its end the counter sticks for single
 * creates, and goes on at the negative end in a multi.
 */
static int32_t
next_number(const Node *parent, bool single, int32_t *counter)
{
	int32_t		number = parent->counter;

	*counter = (int32_t) ((uint32_t) number + 1);
	if (single && number == INT32_MAX)
		*counter = INT32_MAX;
	return number;
}

/* Rights are asked for once it is clear what is there to have a right to. */
static int32_t
decide_create(const Transaction *t, const Op *op, bool single, Effect *effect)
{
	char		text[LONGEST];
	const Node *parent;
	int32_t		number;

	if (!parent_text(op->path, text) || (parent = tree_find(text)) == NULL)
		return ZKL_RC_NONODE;
	if (op->denied)
		return ZKL_RC_NOAUTH;
	number = next_number(parent, single, &effect->counter);
	snprintf(text, sizeof(text), op->sequential ? "%s%010d" : "%s", op->path,
			 (int) number);
	if (tree_find(text) != NULL)
		return ZKL_RC_NODEEXISTS;
	effect->path = tree_path(text);
	effect->container = op->container;
	effect->owner = op->ephemeral ? t->session : 0;
	effect->counter_before = parent->counter;
	return ZKL_RC_OK;
}

static int32_t
decide_other(const Op *op, Effect *effect)
{
	Path	   *path = find_path(op->path, hash_text(op->path));
	const Node *node;

	if (path == NULL || !path->node[HEAD].exists)
		return ZKL_RC_NONODE;
	node = &path->node[HEAD];
	if (op->denied)
		return ZKL_RC_NOAUTH;
	if (op->version != -1 && op->version != node->stat.version)
		return ZKL_RC_BADVERSION;
	if (op->kind == OP_DELETE && node->nchildren > 0)
		return ZKL_RC_NOTEMPTY;
	effect->path = path;
	effect->owner = node->stat.ephemeral_owner;
	return ZKL_RC_OK;
}

static void
make(Node *node, const Effect *effect, int64_t zxid)
{
	node->exists = true;
	node->container = effect->container;
	node->counter = node->nchildren = 0;
	node->stat.czxid = node->stat.mzxid = zxid;
	node->stat.ephemeral_owner = effect->owner;
	node->stat.version = 0;
	node->data = effect->data;
	node->length = effect->length;
}

/* One effect on one copy, without telling anybody */
static void
do_effect(int copy, const Effect *effect, int64_t zxid)
{
	Node	   *node = &effect->path->node[copy];
	Node	   *parent = &effect->path->parent->node[copy];

	switch (effect->kind)
	{
		case OP_CREATE:
			make(node, effect, zxid);
			add_copy(effect->path);
			parent->counter = effect->counter;
			parent->nchildren++;
			break;
		case OP_DELETE:
			node->exists = false;
			remove_copy(effect->path);
			parent->nchildren--;
			break;
		case OP_SET:
			node->data = effect->data;
			node->length = effect->length;
			node->stat.mzxid = zxid;
			node->stat.version++;
			break;
		case OP_CHECK:
			break;
	}
}

/* With the head alone, only paths of nodes are kept. */
static void
drop_path(Path *path)
{
	Path	  **link = &buckets[path->hash % BUCKETS];

	if (path->copies > 0 || ncopies > 1)
		return;
	while (*link != path)
		link = &(*link)->in_bucket;
	*link = path->in_bucket;
	put_back(path->text);
	put_back(path);
}

/* A copy is as it was before; its watches stay. */
static void
revert_effect(int copy, const Effect *effect)
{
	Node	   *node = &effect->path->node[copy];
	Node	   *parent = &effect->path->parent->node[copy];
	Watch	   *data_watch = node->data_watch;
	Watch	   *child_watch = node->child_watch;

	if (effect->kind == OP_CHECK)
		return;
	*node = effect->before;
	node->data_watch = data_watch;
	node->child_watch = child_watch;
	if (effect->kind == OP_CREATE)
	{
		parent->counter = effect->counter_before;
		parent->nchildren--;
		remove_copy(effect->path);
	}
	else if (effect->kind == OP_DELETE)
	{
		parent->nchildren++;
		add_copy(effect->path);
	}
}

static void
undo_effect(const Effect *effect)
{
	revert_effect(HEAD, effect);
	put_back(effect->data);
	if (effect->kind == OP_CREATE)
		drop_path(effect->path);
}

static void
undo(Transaction *t, size_t done, ZklMultiResult *results, size_t n)
{
	size_t		i;

	for (i = 0; i < n; i++)
	{
		put_back(results[i].path);
		results[i].path = NULL;
		results[i].rc = i < done ? ZKL_RC_OK :
			i > done ? RC_PASSED_OVER : t->reply.rc;
	}
	for (i = done; i-- > 0;)
		undo_effect(&t->effects[i]);
	memset(&t->reply.stat, 0, sizeof(ZklStat));
}

void
tree_decide(Transaction *t, const Op *ops, size_t n, bool single)
{
	ZklMultiResult *results = take((n + 1) * sizeof(ZklMultiResult));
	size_t		done;

	t->effects = take((n + 1) * sizeof(Effect));
	for (done = 0; done < n; done++)
	{
		const Op   *op = &ops[done];
		Effect	   *effect = &t->effects[done];

		effect->kind = op->kind;
		t->reply.rc = op->kind == OP_CREATE ?
			decide_create(t, op, single, effect) : decide_other(op, effect);
		if (t->reply.rc != ZKL_RC_OK)
			break;
		if (op->kind == OP_SET || op->kind == OP_CREATE)
			effect->data = take_copy(op->data, op->length);
		effect->length = op->length;
		effect->before = effect->path->node[HEAD];
		do_effect(HEAD, effect, t->zxid);
		if (op->kind == OP_CREATE && !single)
			results[done].path = take_string(effect->path->text);
		else if (op->kind == OP_SET && done == 0)
			t->reply.stat = effect->path->node[HEAD].stat;
	}
	if (done < n)
		undo(t, done, results, n);
	else
		t->neffects = n;
	t->reply.results = results;
	t->reply.nresults = single ? 0 : n;
}

/* ---- following ---- */

void
tree_apply(int copy, const Transaction *t)
{
	size_t		i;

	for (i = 0; i < t->neffects; i++)
		do_effect(copy, &t->effects[i], t->zxid);
	fire_effects(copy, t);
}

void
tree_revert(const Transaction *t, const bool *applied)
{
	size_t		i;
	int			copy;

	for (copy = 0; copy < ncopies; copy++)
		for (i = t->neffects; applied[copy] && i-- > 0;)
			revert_effect(copy, &t->effects[i]);
}

void
tree_settle(Transaction *t)
{
	size_t		i;

	fire_effects(HEAD, t);
	for (i = 0; i < t->neffects; i++)
	{
		const Effect *effect = &t->effects[i];

		if (effect->kind == OP_SET || effect->kind == OP_DELETE)
			put_back(effect->before.data);
		if (effect->kind == OP_DELETE)
			drop_path(effect->path);
	}
	put_back(t->effects);
	t->effects = NULL;
}

Op *
tree_end_of_session(int64_t session, size_t *n)
{
	Op		   *ops;
	Path	   *path;
	size_t		room = 1;

	for (path = newest; path != NULL; path = path->all)
		room += path->node[HEAD].exists &&
			path->node[HEAD].stat.ephemeral_owner == session;
	ops = take(room * sizeof(Op));
	*n = 0;
	for (path = newest; path != NULL; path = path->all)
	{
		if (!path->node[HEAD].exists ||
			path->node[HEAD].stat.ephemeral_owner != session)
			continue;
		ops[*n].kind = OP_DELETE;
		ops[*n].path = path->text;
		ops[(*n)++].version = -1;
	}
	return ops;
}

/* The root has neither siblings nor watches. */
void
tree_finish(void)
{
	int			i;

	for (i = 0; i < BUCKETS; i++)
		while (buckets[i] != NULL)
		{
			Path	   *path = buckets[i];
			Node	   *node = &path->node[HEAD];

			watch_drop(&node->data_watch);
			watch_drop(&node->child_watch);
			put_back(node->data);
			path->copies = 0;
			drop_path(path);
		}
	newest = oldest = NULL;
}
