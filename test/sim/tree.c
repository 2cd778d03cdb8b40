/*
 * tree.c
 *	  The trees of the simulated ensemble: one at the head of the log, which
 *	  decides, and one of each server, which follows.
 *
 * Owns the paths and what each tree has at them.  Must not know connections,
 * but for handing them their watch events, nor locks.
 */
#include <stdio.h>
#include <string.h>

#include "ensemble.h"

#define BUCKETS		256

static Path *buckets[BUCKETS];
static Path *all_paths;
static Path *ever_paths;
static uint64_t generation;

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

Path *
path_intern(const char *text)
{
	uint32_t	hash = hash_text(text);
	Path	   *path;
	const char *slash;
	char		parent[512];

	for (path = buckets[hash % BUCKETS]; path; path = path->in_bucket)
		if (path->hash == hash && strcmp(path->text, text) == 0)
			return path;
	path = take(sizeof(Path));
	path->text = take_string(text);
	path->hash = hash;
	path->in_bucket = buckets[hash % BUCKETS];
	buckets[hash % BUCKETS] = path;
	path->ever = ever_paths;
	ever_paths = path;
	slash = strrchr(path->text, '/');
	path->name = slash != NULL ? slash + 1 : path->text;
	if (slash != NULL)
	{
		snprintf(parent, sizeof(parent), "%.*s", (int) (slash - path->text),
				 path->text);
		path->parent = path_intern(parent);
	}
	return path;
}

uint64_t
path_generation(void)
{
	return generation;
}

Path *
path_first(void)
{
	return all_paths;
}

void
tree_begin(void)
{
	int			tree;
	Path	   *root;

	memset(buckets, 0, sizeof(buckets));
	all_paths = ever_paths = NULL;
	generation++;
	root = path_intern("");
	for (tree = 0; tree <= HEAD; tree++)
		root->node[tree].exists = true;
}

void
tree_clear(void)
{
	Path	   *path;

	for (path = ever_paths; path != NULL; path = path->ever)
		memset(path->node, 0, sizeof(path->node));
	tree_begin();
}

/* Another tree has it: then it is among its parent's children. */
static void
add_tree(Path *path)
{
	Path	   *parent = path->parent;

	if (path->trees++ > 0)
		return;
	path->sibling = parent->children;
	path->sibling_before = NULL;
	if (parent->children != NULL)
		parent->children->sibling_before = path;
	parent->children = path;
	path->all = all_paths;
	path->all_before = NULL;
	if (all_paths != NULL)
		all_paths->all_before = path;
	all_paths = path;
}

/* Its own links stay: somebody may be walking along them. */
static void
remove_tree(Path *path)
{
	if (--path->trees > 0)
		return;
	*(path->sibling_before ? &path->sibling_before->sibling :
	  &path->parent->children) = path->sibling;
	if (path->sibling != NULL)
		path->sibling->sibling_before = path->sibling_before;
	*(path->all_before ? &path->all_before->all : &all_paths) = path->all;
	if (path->all != NULL)
		path->all->all_before = path->all_before;
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

static int32_t
decide_create(Entry *entry, const Op *op, bool single, Effect *effect)
{
	Path	   *path = NULL;
	Path	   *parent;
	char		text[512];
	int32_t		number;
	int32_t		counter;
	size_t		length = (size_t) (strrchr(op->path, '/') - op->path);

	snprintf(text, sizeof(text), "%.*s", (int) length, op->path);
	parent = path_intern(text);
	if (!parent->node[HEAD].exists)
		return ZKL_RC_NONODE;
	number = next_number(&parent->node[HEAD], single, &counter);
	if (op->sequential)
	{
		snprintf(text, sizeof(text), "%s%010d", op->path, (int) number);
		path = path_intern(text);
	}
	else
		path = path_intern(op->path);
	if (path->node[HEAD].exists)
		return ZKL_RC_NODEEXISTS;
	effect->path = path;
	effect->container = op->container;
	effect->owner = op->ephemeral ? entry->session : 0;
	effect->counter_before = parent->node[HEAD].counter;
	effect->counter = counter;
	effect->data = op->data;
	effect->length = op->length;
	return ZKL_RC_OK;
}

static int32_t
decide_other(const Op *op, Effect *effect)
{
	Path	   *path = path_intern(op->path);
	Node	   *node = &path->node[HEAD];

	if (!node->exists)
		return ZKL_RC_NONODE;
	if (op->version != -1 && op->version != node->version)
		return ZKL_RC_BADVERSION;
	if (op->kind == OP_DELETE && node->nchildren > 0)
		return ZKL_RC_NOTEMPTY;
	effect->path = path;
	effect->owner = node->stat.ephemeral_owner;
	effect->data = op->data;
	effect->length = op->length;
	return ZKL_RC_OK;
}

static void
make(Node *node, const Effect *effect, int64_t zxid)
{
	uint64_t	watch = node->data_watch;

	memset(node, 0, sizeof(*node));
	node->data_watch = watch;
	node->exists = true;
	node->container = effect->container;
	node->stat.czxid = node->stat.mzxid = zxid;
	node->stat.ephemeral_owner = effect->owner;
	node->data = effect->data;
	node->length = effect->length;
}

/* One effect on one tree, without telling anybody */
static void
do_effect(int tree, const Effect *effect, int64_t zxid)
{
	Node	   *node = &effect->path->node[tree];
	Node	   *parent = &effect->path->parent->node[tree];

	switch (effect->kind)
	{
		case OP_CREATE:
			make(node, effect, zxid);
			add_tree(effect->path);
			parent->counter = effect->counter;
			parent->nchildren++;
			break;
		case OP_DELETE:
			node->exists = false;
			remove_tree(effect->path);
			parent->nchildren--;
			break;
		case OP_SET:
			node->data = effect->data;
			node->length = effect->length;
			node->stat.mzxid = zxid;
			node->stat.version = ++node->version;
			break;
	}
}

static void
undo_effect(const Effect *effect)
{
	Node	   *parent = &effect->path->parent->node[HEAD];

	if (effect->kind == OP_CREATE)
	{
		parent->counter = effect->counter_before;
		parent->nchildren--;
		remove_tree(effect->path);
	}
	else if (effect->kind == OP_DELETE)
	{
		parent->nchildren++;
		add_tree(effect->path);
	}
	effect->path->node[HEAD] = effect->before;
}

void
tree_decide(Entry *entry, const Op *ops, size_t n, bool single)
{
	ZklMultiResult *results = take((n + 1) * sizeof(ZklMultiResult));
	int32_t		rc = ZKL_RC_OK;
	size_t		done;
	size_t		i;

	entry->effects = take((n + 1) * sizeof(Effect));
	for (done = 0; done < n; done++)
	{
		Effect	   *effect = &entry->effects[done];

		effect->kind = ops[done].kind;
		rc = ops[done].kind == OP_CREATE ?
			decide_create(entry, &ops[done], single, effect) :
			decide_other(&ops[done], effect);
		if (rc != ZKL_RC_OK)
			break;
		effect->before = effect->path->node[HEAD];
		do_effect(HEAD, effect, entry->zxid);
		if (effect->kind == OP_CREATE)
			results[done].path = effect->path->text;
		else if (effect->kind == OP_SET && done == 0)
			entry->reply.stat = effect->path->node[HEAD].stat;
	}
	if (rc != ZKL_RC_OK)
	{
		for (i = 0; i < n; i++)
		{
			results[i].path = NULL;
			results[i].rc = i < done ? ZKL_RC_OK :
				i > done ? RC_PASSED_OVER : rc;
		}
		for (i = done; i-- > 0;)
			undo_effect(&entry->effects[i]);
		memset(&entry->reply.stat, 0, sizeof(ZklStat));
		done = 0;
	}
	entry->neffects = done;
	entry->reply.rc = rc;
	entry->reply.results = results;
	entry->reply.nresults = single ? 0 : n;
}

/* ---- following ---- */

/* One-shot watches of a server's connections fire. */
static void
fire(uint64_t watchers, ZklEventKind kind, const Path *path)
{
	int			i;

	for (i = 0; watchers != 0; i++, watchers >>= 1)
		if (watchers & 1)
			conn_event(&ens.conns[i], kind, path->text);
}

static void
fire_effect(int server, const Effect *effect)
{
	Node	   *node = &effect->path->node[server];
	Node	   *parent = &effect->path->parent->node[server];
	uint64_t	watchers = node->data_watch;

	if (effect->kind != OP_CREATE)
		node->data_watch = 0;
	if (effect->kind == OP_SET)
		fire(watchers, ZKL_EVENT_CHANGED, effect->path);
	else if (effect->kind == OP_DELETE)
	{
		watchers |= node->child_watch;
		node->child_watch = 0;
		fire(watchers, ZKL_EVENT_DELETED, effect->path);
	}
	if (effect->kind != OP_SET)
	{
		watchers = parent->child_watch;
		parent->child_watch = 0;
		fire(watchers, ZKL_EVENT_CHILDREN, effect->path->parent);
	}
}

void
tree_apply(int server, const Entry *entry)
{
	size_t		i;

	for (i = 0; i < entry->neffects; i++)
	{
		do_effect(server, &entry->effects[i], entry->zxid);
		fire_effect(server, &entry->effects[i]);
	}
}
