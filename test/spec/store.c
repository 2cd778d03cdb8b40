/*
 * store.c
 *	  What is known, and how to find it.
 *
 * Owns all memory of the reader, which it gives back at once when a reading begins.
 */
#include <stdlib.h>
#include <string.h>

#include "spec.h"

#define CHUNK	(1024 * 1024)

typedef struct Chunk
{
	struct Chunk *next;
	size_t		used;
	char		bytes[CHUNK];
} Chunk;

static Chunk *chunks;
static Chunk *spare;
static Server *servers;

void *
spec_take(size_t size)
{
	void	   *memory;

	size = (size + 15) & ~(size_t) 15;
	if (size > CHUNK)
		abort();
	if (chunks == NULL || CHUNK - chunks->used < size)
	{
		Chunk	   *chunk = spare;

		if (chunk != NULL)
			spare = chunk->next;
		else if ((chunk = malloc(sizeof(Chunk))) == NULL)
			abort();
		chunk->used = 0;
		chunk->next = chunks;
		chunks = chunk;
	}
	memory = chunks->bytes + chunks->used;
	chunks->used += size;
	return memset(memory, 0, size);
}

void
spec_begin(void)
{
	while (chunks != NULL)
	{
		Chunk	   *chunk = chunks;

		chunks = chunk->next;
		chunk->next = spare;
		spare = chunk;
	}
	servers = NULL;
	fleet_begin();
}

const char *
spec_copy(const char *text)
{
	size_t		size = strlen(text) + 1;

	return memcpy(spec_take(size), text, size);
}

/* ---- servers ---- */

Server *
spec_servers(void)
{
	return servers;
}

Server *
spec_server(int id)
{
	Server	   *s;

	for (s = servers; s != NULL; s = s->next)
		if (s->id == id)
			return s;
	s = spec_take(sizeof(Server));
	s->id = id;
	s->requests = spec_take(MOST_REQUESTS * sizeof(Request));
	s->contacts = spec_take(MOST_CONTACTS * sizeof(Contact));
	s->next = servers;
	servers = s;
	return s;
}

/* Its worker begins: nothing is known. */
void
spec_server_anew(Server *s)
{
	Server		old = *s;
	uint32_t	i;

	for (i = 0; i < old.nrequests; i++)
		memset(&old.requests[i], 0, sizeof(Request));
	memset(s, 0, sizeof(*s));
	s->next = old.next;
	s->id = old.id;
	s->requests = old.requests;
	s->contacts = old.contacts;
	s->clock = old.clock;
	s->seen_at = old.seen_at;
	s->known = true;
}

void
spec_request_clear(Request *r)
{
	uint32_t	id = r->id;

	memset(r, 0, sizeof(*r));
	r->id = id;
}

/* ---- locks, znodes, operations ---- */

Lock *
spec_lock(Server *s, const char *path, Dialect dialect)
{
	Lock	   *lock;

	for (lock = s->locks; lock != NULL; lock = lock->next)
		if (lock->dialect == dialect && strcmp(lock->path, path) == 0)
			return lock;
	lock = spec_take(sizeof(Lock));
	lock->path = spec_copy(path);
	lock->dialect = dialect;
	lock->next = s->locks;
	s->locks = lock;
	return lock;
}

static Node **
bucket(Server *s, const char *uuid)
{
	unsigned	hash = 0;

	while (*uuid != '\0')
		hash = hash * 31 + (unsigned char) *uuid++;
	return &s->nodes[hash % (sizeof(s->nodes) / sizeof(s->nodes[0]))];
}

Node *
spec_node(Server *s, const char *uuid)
{
	Node	   *node = *bucket(s, uuid);

	while (node != NULL && strcmp(node->uuid, uuid) != 0)
		node = node->next;
	return node;
}

Node *
spec_node_new(Server *s, const char *uuid)
{
	Node	   *node = spec_take(sizeof(Node));
	Node	  **list = bucket(s, uuid);

	strcpy(node->uuid, uuid);
	node->seq = -1;
	node->next = *list;
	*list = node;
	return node;
}

bool
spec_is_child(const Lock *lock, const char *path, const char **child)
{
	size_t		n = strlen(lock->path);

	*child = path + n + 1;
	return strncmp(path, lock->path, n) == 0 && path[n] == '/' &&
		path[n + 1] != '\0' && strchr(path + n + 1, '/') == NULL;
}

Node *
spec_node_at(Server *s, const char *path)
{
	Lock	   *lock;

	for (lock = s->locks; lock != NULL; lock = lock->next)
	{
		const char *child;
		char		uuid[UUID_TEXT + 1];
		Node	   *node;

		if (!spec_is_child(lock, path, &child) || !name_uuid(lock->dialect, child, uuid))
			continue;
		node = spec_node(s, uuid);
		if (node != NULL && node->lock == lock)
			return node;
	}
	return NULL;
}

Op *
spec_op(Server *s, int64_t tag)
{
	Op		   *op = s->ops;

	while (op != NULL && op->tag != tag)
		op = op->next;
	return op;
}

void
spec_op_end(Server *s, Op *op)
{
	Op		  **where = &s->ops;

	while (*where != NULL && *where != op)
		where = &(*where)->next;
	if (*where != NULL)
		*where = op->next;
}

Watch *
spec_watch(const Lock *lock, const char *path)
{
	Watch	   *watch = lock->watches;

	while (watch != NULL && strcmp(watch->path, path) != 0)
		watch = watch->next;
	return watch;
}

void
spec_watch_end(Lock *lock, const char *path)
{
	Watch	  **where = &lock->watches;

	while (*where != NULL && strcmp((*where)->path, path) != 0)
		where = &(*where)->next;
	if (*where != NULL)
		*where = (*where)->next;
}

/* ---- texts ---- */

bool
spec_has_text(const Text *list, const char *text)
{
	while (list != NULL && strcmp(list->text, text) != 0)
		list = list->next;
	return list != NULL;
}

void
spec_add_text(Text **list, const char *text)
{
	Text	   *t;

	if (spec_has_text(*list, text))
		return;
	t = spec_take(sizeof(Text));
	t->text = spec_copy(text);
	t->next = *list;
	*list = t;
}

void
spec_drop_text(Text **list, const char *text)
{
	while (*list != NULL && strcmp((*list)->text, text) != 0)
		list = &(*list)->next;
	if (*list != NULL)
		*list = (*list)->next;
}

void
spec_doubt_text(Text *list, const char *text)
{
	for (; list != NULL; list = list->next)
		list->unsure |= strcmp(list->text, text) == 0;
}

void
spec_drop_doubted(Text **list)
{
	while (*list != NULL)
	{
		if ((*list)->unsure)
			*list = (*list)->next;
		else
			list = &(*list)->next;
	}
}

/* ---- what follows from others ---- */

bool
spec_departed(const Lock *lock, const Child *c)
{
	const Departed *d = lock->departed;

	if (!c->parsed.zklock)
		return false;
	while (d != NULL && strcmp(d->uuid, c->parsed.uuid) != 0)
		d = d->next;
	return d != NULL;
}

/* Of two modes: whether each is exclusive */
bool
spec_conflict(bool a, bool b)
{
	return a || b;
}

/* What is kept belongs to nobody, at last. */
bool
spec_same_owner(const Request *a, const Request *b)
{
	bool		nobodys_a = a->nobodys || a->disowned;
	bool		nobodys_b = b->nobodys || b->disowned;

	return a->owner == b->owner && nobodys_a == nobodys_b;
}

/* The znode by which it has, or wants, the lock */
Node *
spec_node_of(const Request *r)
{
	return r->cover != NULL ? r->cover->node : r->node;
}

bool
spec_in_queue(const Request *r)
{
	return (r->demand == WAITING || r->demand == GRANTED) && r->node != NULL &&
		r->node->state == NODE_EXISTS;
}

bool
spec_holds(const Request *r)
{
	return r->demand == GRANTED && !r->broken;
}

/* A hold that shares r's znode; NULL: none */
Request *
spec_leaning(const Server *s, const Request *r)
{
	uint32_t	i;

	for (i = 0; i < s->nrequests; i++)
		if (s->requests[i].cover == r && s->requests[i].demand == GRANTED)
			return &s->requests[i];
	return NULL;
}

/*
 * The hold of r's owner that gives it all that r wants, and has this token.  It is as good
 * as long as it is not lost.
 */
Request *
spec_covering(const Server *s, const Request *r, int64_t token)
{
	Request    *best = NULL;
	uint32_t	i;

	for (i = 0; i < s->nrequests; i++)
	{
		Request    *c = &s->requests[i];

		if (c == r || c->lock != r->lock || !spec_holds(c) || c->node == NULL ||
			!spec_same_owner(c, r) || c->token != token ||
			(r->exclusive && !c->node->exclusive))
			continue;
		if (best == NULL || c->node->seq < best->node->seq)
			best = c;
	}
	return best;
}
