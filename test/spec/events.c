/*
 * events.c
 *	  What changes when something happens to a server, but for answers.
 */
#include <string.h>

#include "spec.h"

static void
set_time(Server *s, const Line *line)
{
	s->now = line_number(line, "now", s->now);
}

void
then_begin(Server *s, const Line *line)
{
	spec_server_anew(s);
	line_value(line, "root", 0, s->root, sizeof(s->root));
	s->tokens = line_number(line, "tokens", 4096);
}

void
then_nothing(Server *s, const Line *line)
{
	set_time(s, line);
}

/* ---- the ends of requests ---- */

/* It has no holder any more: with its owner's last hold it is nobody's. */
static void
disown(Server *s, const Request *of)
{
	uint32_t	i;

	for (i = 0; i < s->nrequests; i++)
	{
		const Request *r = &s->requests[i];

		if (r->lock == of->lock && r->owner == of->owner && !r->nobodys && !r->disowned &&
			!r->kept && !r->stays && !r->epilogue &&
			(r->demand == WAITING || spec_holds(r)))
			return;
	}
	for (i = 0; i < s->nrequests; i++)
	{
		Request    *r = &s->requests[i];

		if (r->lock == of->lock && r->owner == of->owner && r->demand == GRANTED &&
			(r->kept || r->epilogue || r->stays))
			r->disowned = true;
	}
}

/* Whether others may read in ZooKeeper what names this znode */
static bool
is_published(const Server *s, const Node *node)
{
	const Text *t;

	for (t = s->published; t != NULL; t = t->next)
		if (strstr(t->text, node->uuid) != NULL)
			return true;
	return false;
}

bool
spec_may_tell(const Server *s, const Request *r)
{
	return r->demand == GRANTED && s->peers && r->lock->dialect != PERMIT && !r->guard &&
		!r->broken && !r->node->downgrade_sent && !r->node->downgrade_unsettled &&
		!is_published(s, r->node);
}

static void
end(Server *s, Request *r, Demand demand)
{
	Node	   *node = r->node;

	if (node != NULL && node->state == NODE_EXISTS)
		node->word = spec_may_tell(s, r);
	if (r->lock->offered == r)
		r->lock->offered = NULL;
	r->demand = demand;
	r->kept = r->epilogue = r->together = false;
	r->cover = NULL;
}

static void
let_go(Server *s, Request *r, Demand demand)
{
	Request    *cover = r->cover;

	if (spec_leaning(s, r) != NULL)
	{
		r->stays = true;
		r->then = demand;
		r->kept = r->epilogue = false;
		return;
	}
	end(s, r, demand);
	if (cover == NULL || !cover->stays || spec_leaning(s, cover) != NULL)
		return;
	cover->stays = false;
	end(s, cover, cover->then);
}

void
spec_release(Server *s, Request *r)
{
	r->kept = r->epilogue = false;
	if (r->stays)
		r->then = RELEASED;
	else if (r->demand == WAITING)
		end(s, r, RELEASED);
	else if (r->demand == GRANTED)
		let_go(s, r, RELEASED);
	else
		r->demand = RELEASED;
	if (r->lock != NULL)
		disown(s, r);
}

/* What is kept ends when its time is over, at the next event behind that. */
void
spec_due(Server *s)
{
	uint32_t	i;

	for (i = 0; i < s->nrequests; i++)
		if (s->requests[i].kept && s->requests[i].kept_until <= s->now)
			spec_release(s, &s->requests[i]);
}

/* ---- backends ---- */

void
then_submit(Server *s, const Line *line)
{
	Request    *r = s->r;
	char		path[MOST_PATH];

	set_time(s, line);
	spec_due(s);
	if (r->id >= s->nrequests)
		s->nrequests = r->id + 1;
	spec_request_clear(r);
	line_path(line, path, sizeof(path));
	r->lock = spec_lock(s, path, name_dialect(line));
	r->demand = WAITING;
	r->exclusive = line_has(line, "exclusive");
	r->owner = (uint64_t) line_number(line, "owner", 0);
	r->max = (uint32_t) line_number(line, "max", 1);
	r->timed_out = line_has(line, "timed-out");
	r->together = line_has(line, "together");
	r->plain = line_has(line, "plain");
	r->guard = line_has(line, "guard");
	r->submitted = ++s->submits;
	r->lock->must_recall = r->lock->offered != NULL;
}

void
then_time_out(Server *s, const Line *line)
{
	set_time(s, line);
	s->r->timed_out = true;
}

void
then_release(Server *s, const Line *line)
{
	Request    *r = s->r;
	int64_t		until = line_number(line, "keep_until", 0);

	set_time(s, line);
	if (line_has(line, "epilogue"))
	{
		r->epilogue = r->demand == GRANTED && !r->stays;
		if (r->lock != NULL)
			disown(s, r);
	}
	else if (r->demand == GRANTED && until > s->now && !r->stays)
	{
		r->kept = true;
		r->kept_until = until;
		disown(s, r);
	}
	else
		spec_release(s, r);
}

void
then_overdue(Server *s, const Line *line)
{
	set_time(s, line);
	if (s->r->demand == GRANTED && !s->r->kept && !s->r->stays)
		let_go(s, s->r, ANSWERED);
}

/* What a recall finds: whose the lock is, and with which token */
void
then_recalled(Server *s, const Line *line)
{
	Request    *r = s->r;
	uint64_t	owner = (uint64_t) line_number(line, "owner", 0);

	if (r->lock == NULL)
		return;
	if (r->lock->offered == r)
		r->lock->offered = NULL;
	r->lock->must_recall = false;
	r->token = line_number(line, "token", r->token);
	if (owner != r->owner && !r->kept && !r->epilogue)
		r->nobodys = r->disowned = false;
	r->owner = owner;
	if (line_has(line, "cached") && r->demand == GRANTED)
		spec_release(s, r);
}

/* ---- other servers ---- */

void
then_peers(Server *s, const Line *line)
{
	set_time(s, line);
	s->peers = line_has(line, "on");
}

void
then_asked_for(Server *s, const Line *line)
{
	char		uuid[UUID_TEXT + 1] = "";
	char		waiter[UUID_TEXT + 1] = "";
	char		text[128];

	set_time(s, line);
	line_value(line, "uuid", 0, uuid, sizeof(uuid));
	line_value(line, "uuid", 1, waiter, sizeof(waiter));
	text[0] = '\0';
	line_value(line, "session", 0, text, 40);
	strcat(strcat(strcat(text, " "), uuid), waiter);
	spec_add_text(&s->asks, text);
}

/* A word takes one znode away, in the lock of the waiter alone. */
void
then_heard(Server *s, const Line *line)
{
	char		uuid[UUID_TEXT + 1] = "";
	char		waiter[UUID_TEXT + 1] = "";
	Node	   *node;
	Departed   *d;

	set_time(s, line);
	line_value(line, "uuid", 0, uuid, sizeof(uuid));
	line_value(line, "uuid", 1, waiter, sizeof(waiter));
	node = spec_node(s, waiter);
	if (node == NULL || node->state == NODE_GONE || node->request == NULL ||
		name_session(uuid) != line_number(line, "session", 0))
		return;
	d = spec_take(sizeof(*d));
	strcpy(d->uuid, uuid);
	d->next = node->lock->departed;
	node->lock->departed = d;
}

/* ---- connection and session ---- */

void
spec_forget_all(Server *s)
{
	Lock	   *lock;

	for (lock = s->locks; lock != NULL; lock = lock->next)
	{
		lock->others = NULL;
		lock->known = 0;
		lock->strangers = 0;
		lock->tainted = false;
		lock->base_known = false;
	}
}

void
then_connected(Server *s, const Line *line)
{
	int64_t		session = line_number(line, "session", 0);

	set_time(s, line);
	s->lapsed = session == s->session && s->now >= s->lease;
	if (session != s->session)
	{
		s->beat = NULL;
		s->beats = NULL;
		s->chain = false;
	}
	s->session = session;
	s->generation = line_number(line, "generation", 0);
	s->timeout = line_number(line, "timeout_ms", 0) * 1000;
	if (line_number(line, "zxid_seen", 0) < s->zxid)
	{
		Lock	   *lock;

		for (lock = s->locks; lock != NULL; lock = lock->next)
			lock->granted[0] = lock->granted[1] = 0;
	}
	s->zxid = line_number(line, "zxid_seen", 0);
	s->begun = s->heard = line_number(line, "begun", 0);
	s->ncontacts = s->taken = 0;
	s->lease_most = s->begun + s->timeout - s->timeout / 500;
	s->checked = false;
	s->connection++;
	s->state = s->chain ? PROVING : OPENING;
}

static void
disconnect_lock(Lock *lock)
{
	lock->base_known = lock->directory_watched = lock->children_watched = false;
	lock->alone_at = 0;
	lock->watches = NULL;
	lock->number_ended = false;
	lock->probe.answered = false;
	lock->must_recall |= lock->offered != NULL;
}

static void
disconnect_node(Server *s, Node *node)
{
	const Request *r = node->request;

	if (node->state == NODE_SENT)
		node->state = NODE_UNSETTLED;
	if (node->downgrade_sent)
		node->downgrade_unsettled = true;
	node->downgrade_sent = false;
	if (node->watched && !node->marked)
		node->unmarked = s->acknowledged_at;
	node->watched = false;

	/* A mark may come unseen: it is read again before the grant. */
	if (r != NULL && r->demand == WAITING)
		node->czxid = 0;
}

/* No answer comes to what is under way. */
void
spec_down(Server *s)
{
	const Op   *op;
	Lock	   *lock;
	uint32_t	i;
	int			j;

	s->state = DOWN;
	for (op = s->ops; op != NULL; op = op->next)
	{
		if (strcmp(op->what, "batch") == 0)
			s->chain = false;
		for (j = 0; j < op->nwrites; j++)
			spec_doubt_text(s->published, op->writes[j].path);
	}
	s->ops = NULL;
	s->refused = false;
	for (lock = s->locks; lock != NULL; lock = lock->next)
		disconnect_lock(lock);
	for (i = 0; i < sizeof(s->nodes) / sizeof(s->nodes[0]); i++)
	{
		Node	   *node;

		for (node = s->nodes[i]; node != NULL; node = node->next)
			disconnect_node(s, node);
	}
}

void
then_disconnected(Server *s, const Line *line)
{
	set_time(s, line);
	spec_down(s);
}

/* And all its znodes with it */
void
then_session_lost(Server *s, const Line *line)
{
	uint32_t	i;

	then_disconnected(s, line);
	s->session = 0;
	s->chain = false;
	s->lease_most = 0;
	s->published = NULL;
	spec_forget_all(s);
	for (i = 0; i < sizeof(s->nodes) / sizeof(s->nodes[0]); i++)
	{
		Node	   *node;

		for (node = s->nodes[i]; node != NULL; node = node->next)
			spec_gone(s, node);
	}
	for (i = 0; i < s->nrequests; i++)
		s->requests[i].doubt = false;
}

/* ---- watches ---- */

static void
directory_event(Lock *lock, bool children)
{
	lock->children_watched = false;
	lock->alone_at = 0;
	lock->must_recall |= lock->offered != NULL;
	if (children)
		return;
	lock->directory_watched = lock->base_known = false;
}

/* Whether a read is under way that sets a watch there */
static bool
is_asked_for(const Server *s, const char *path)
{
	const Op   *op;

	for (op = s->ops; op != NULL; op = op->next)
		if (op->watch && op->path != NULL && strcmp(op->path, path) == 0)
			return true;
	return false;
}

/* The one ahead is gone: if it was a writer, it may have left a reader. */
static void
other_gone(Server *s, Lock *lock, const char *path, const char *child)
{
	const Watch *watch = spec_watch(lock, path);
	Child	  **where = &lock->others;
	Child	   *c;

	while (*where != NULL && strcmp((*where)->name, child) != 0)
		where = &(*where)->next;
	c = *where;
	if (c == NULL || (watch == NULL && !is_asked_for(s, path)))
		return;
	*where = c->next;
	if (spec_departed(lock, c) || !c->parsed.exclusive || (watch != NULL && watch->plain) ||
		(lock->dialect != CURATOR_RW && !c->parsed.zklock))
		return;
	lock->tainted = true;
	lock->tainted_at = s->order;
}

static void
own_event(Server *s, Node *node, bool deleted)
{
	bool		watched = node->watched;

	if (watched && !node->marked)
		node->unmarked = s->acknowledged_at;
	node->watched = false;
	if (!deleted || node->state != NODE_EXISTS || node->downgrade_sent ||
		node->downgrade_unsettled)
		return;
	if (watched)
		spec_gone(s, node);
	else
		spec_gone_soon(s, node);
}

/* "deleted", "changed", "children" */
void
then_node_event(Server *s, const Line *line)
{
	bool		deleted = line_is(line, 1, "deleted");
	char		path[MOST_PATH];
	const char *child;
	Lock	   *lock;
	Node	   *node;

	set_time(s, line);
	line_path(line, path, sizeof(path));
	node = spec_node_at(s, path);
	if (node != NULL)
		own_event(s, node, deleted);
	for (lock = s->locks; lock != NULL; lock = lock->next)
	{
		if (strcmp(lock->path, path) == 0)
			directory_event(lock, line_is(line, 1, "children"));
		else if (spec_is_child(lock, path, &child))
		{
			if (deleted)
				other_gone(s, lock, path, child);
			spec_watch_end(lock, path);
		}
	}
}

/* ---- time ---- */

void
then_flush(Server *s, const Line *line)
{
	set_time(s, line);
	spec_due(s);
}
