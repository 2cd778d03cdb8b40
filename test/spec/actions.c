/*
 * actions.c
 *	  What changes when a server acts, if the rules allow it.
 */
#include <string.h>

#include "spec.h"

/* ---- what is sent ---- */

static Lock *
lock_of(Server *s, const char *path)
{
	Lock	   *lock;
	const char *child;

	for (lock = s->locks; lock != NULL; lock = lock->next)
		if (strcmp(lock->path, path) == 0 || spec_is_child(lock, path, &child))
			return lock;
	return NULL;
}

/*
 * One directory can have locks of several dialects.  Then a read is for the one that
 * has requests, or for each.
 */
static Lock *
lock_read(Server *s, const Op *op)
{
	Lock	   *lock = op->path != NULL ? lock_of(s, op->path) : NULL;
	uint32_t	i;

	for (i = 0; lock != NULL && i < s->nrequests; i++)
		if (s->requests[i].lock != NULL &&
			strcmp(s->requests[i].lock->path, lock->path) == 0)
			return s->requests[i].lock;
	return lock;
}

static void
watch_ends(Server *s, const char *path)
{
	Lock	   *lock;

	for (lock = s->locks; lock != NULL; lock = lock->next)
	{
		if (strcmp(lock->path, path) == 0)
			lock->directory_watched = false;
		spec_watch_end(lock, path);
	}
}

void
then_send(Server *s, const Line *line)
{
	Op		   *op = spec_take(sizeof(*op));
	Op		  **end = &s->ops;
	char		path[MOST_PATH];

	op->tag = line_number(line, "tag", 0);
	line_value(line, "for", 0, op->what, sizeof(op->what));
	if (line->n > 2 && line->words[2].length < sizeof(op->send))
		memcpy(op->send, line->words[2].text, line->words[2].length);
	if (line_path(line, path, sizeof(path)))
		op->path = spec_copy(path);
	op->watch = line_has(line, "watch");
	op->order = ++s->order;
	op->sent_at = s->now;
	op->submits = s->submits;
	op->lock = lock_read(s, op);
	if (op->path != NULL)
		op->node = spec_node_at(s, op->path);
	op->most_writes = (int) line_number(line, "operations", 0);
	op->writes = spec_take((size_t) (op->most_writes + 1) * sizeof(Write));
	while (*end != NULL)
		end = &(*end)->next;
	*end = op;
	s->sending = op->most_writes > 0 ? op : NULL;
	if (strcmp(op->send, "unwatch") == 0)
		watch_ends(s, op->path);
	if (strcmp(op->what, "chain") == 0 || strcmp(op->what, "chain-fence") == 0)
		s->state = OPENING;
	if (strcmp(op->what, "probe") == 0 && op->lock != NULL)
		op->lock->probe.answered = false;
}

/* The id in the name of what is created; NULL: it is no znode of a request. */
static Node *
created_node(Server *s, const char *path)
{
	Lock	   *lock;

	for (lock = s->locks; lock != NULL; lock = lock->next)
	{
		const char *child;
		char		uuid[UUID_TEXT + 1];

		if (spec_is_child(lock, path, &child) && name_uuid(lock->dialect, child, uuid))
			return spec_node(s, uuid);
	}
	return NULL;
}

static void
node_write(Server *s, const Op *op, Write *w)
{
	Node	   *node = w->node;
	bool		exclusive = name_is_exclusive(node->lock->dialect, strrchr(w->path, '/') + 1);

	if (strcmp(w->kind, "create") == 0)
	{
		node->state = NODE_SENT;
		node->index = op->nwrites - 1;
		node->exclusive = exclusive;
		node->may_exist[exclusive] = true;
		node->unmarked = op->sent_at;
	}
	else if (strcmp(w->kind, "create-ephemeral") == 0)
	{
		node->downgrade_sent = true;
		node->may_exist[exclusive] = true;
	}
	(void) s;
}

/* An operation of a transaction: "operation" */
void
then_write(Server *s, const Line *line)
{
	Op		   *op = s->sending;
	Write	   *w;
	char		path[MOST_PATH] = "";

	if (op == NULL || op->nwrites >= op->most_writes)
		return;
	w = &op->writes[op->nwrites++];
	if (line->n > 2 && line->words[2].length < sizeof(w->kind))
		memcpy(w->kind, line->words[2].text, line->words[2].length);
	line_path(line, path, sizeof(path));
	w->path = spec_copy(path);
	w->version = line_number(line, "version", -1);
	w->node = created_node(s, path);
	if (w->node != NULL)
		node_write(s, op, w);
	else if (strcmp(op->what, "chain") == 0 && strcmp(w->kind, "create-ephemeral") == 0)
	{
		s->next_beat = w->path;
		spec_add_text(&s->beats, w->path);
	}
	else if (strncmp(w->kind, "create", 6) == 0)
	{
		spec_add_text(&s->published, w->path);
		spec_add_text(&s->publications, w->path);
	}
	if (strcmp(op->what, "batch") == 0 && op->nwrites == 1)
	{
		op->version = w->version;
		s->version = w->version + 1;
	}
}

/* ---- requests ---- */

void
then_record(Server *s, const Line *line)
{
	Request    *r = s->r;
	char		uuid[UUID_TEXT + 1];
	Node	   *node;

	if (r->lock == NULL)
		return;
	r->nobodys = line_has(line, "disowned");
	if (!line_value(line, "uuid", 0, uuid, sizeof(uuid)))
		return;
	node = spec_node(s, uuid);
	if (node == NULL)
	{
		node = spec_node_new(s, uuid);
		node->lock = r->lock;
		node->request = r;
		node->exclusive = line_has(line, "exclusive");
		r->node = node;
		r->doubt = false;
	}
	if (node->request == r)
		node->going = line_has(line, "going");
}

static void
note_token(const Server *s, Request *r)
{
	Lock	   *lock = r->lock;

	if (r->token > lock->granted[r->exclusive])
	{
		lock->granted[r->exclusive] = r->token;
		lock->granted_to[r->exclusive] = r->owner;
	}
	(void) s;
}

void
then_grant(Server *s, const Line *line)
{
	Request    *r = s->r;

	r->demand = GRANTED;
	r->together = r->timed_out = false;
	r->token = line_number(line, "token", 0);
	if (r->node != NULL)
		r->node->seen_on = s->connection;
	note_token(s, r);
}

void
then_cover(Server *s, const Line *line)
{
	Request    *r = s->r;

	r->cover = spec_covering(s, r, line_number(line, "token", 0));
	r->cover->guard |= r->guard;
	r->demand = GRANTED;
	r->token = r->cover->token;
}

void
then_blocked(Server *s, const Line *line)
{
	(void) line;
	s->r->together = false;
}

void
then_behind_cached(Server *s, const Line *line)
{
	s->r->behind_cached = !line_has(line, "no-longer");
}

void
then_deny(Server *s, const Line *line)
{
	(void) line;
	s->r->demand = ANSWERED;
}

void
then_fail(Server *s, const Line *line)
{
	then_deny(s, line);
}

static bool
keeps_node(const Line *line)
{
	return line_has(line, "failure=broken") || line_has(line, "failure=unreadable") ||
		line_has(line, "failure=overtaken");
}

void
then_lose(Server *s, const Line *line)
{
	Request    *r = s->r;

	s->lost_now = true;
	r->must_lose = false;
	if (r->lock->offered == r)
		r->lock->offered = NULL;
	if (keeps_node(line))
	{
		r->broken = true;
		if (r->cover != NULL && r->cover->stays)
			r->cover->broken = true;
		return;
	}
	r->kept = false;
	r->demand = r->stays ? r->then : ANSWERED;
	r->stays = false;
	r->cover = NULL;
}

void
then_asks(Server *s, const Line *line)
{
	s->r->told_zxid = line_number(line, "zxid", 0);
}

void
then_free(Server *s, const Line *line)
{
	if (s->r->node != NULL)
		s->r->node->request = NULL;
	spec_request_clear(s->r);
	(void) line;
}

void
then_offer(Server *s, const Line *line)
{
	s->r->lock->offered = s->r;
	(void) line;
}

/* ---- the server ---- */

void
then_lease(Server *s, const Line *line)
{
	s->lease = line_number(line, "until", 0);
}

void
then_lost_writes(Server *s, const Line *line)
{
	spec_forget_all(s);
	(void) line;
}

void
then_reconnect(Server *s, const Line *line)
{
	s->must_reconnect = false;
	s->state = DOWN;
	(void) line;
}
