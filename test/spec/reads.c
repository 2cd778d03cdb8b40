/*
 * reads.c
 *	  What is known to exist: listings, and reads of znodes.
 */
#include <string.h>

#include "spec.h"

/* ---- znodes of ours ---- */

static void
set_must_lose(const Server *s, Request *r)
{
	if (r->demand != GRANTED || (r->kept && r->kept_until <= s->now))
		return;
	if (r->kept || (!r->broken && !r->stays))
		r->must_lose = true;
	else if (r->stays)
	{
		r->demand = r->then;
		r->stays = false;
	}
	else
		r->demand = ANSWERED;
}

/* It does not exist, and never will again. */
void
spec_gone(Server *s, Node *node)
{
	Request    *r = node->request;
	uint32_t	i;

	if (node->state == NODE_GONE)
		return;
	node->state = NODE_GONE;
	node->may_exist[0] = node->may_exist[1] = false;
	node->watched = node->downgrade_sent = node->downgrade_unsettled = false;
	if (r == NULL || r->node != node)
		return;
	set_must_lose(s, r);
	for (i = 0; i < s->nrequests; i++)
		if (s->requests[i].cover == r)
			set_must_lose(s, &s->requests[i]);
}

/* The same, but another read may have to come before it is told. */
void
spec_gone_soon(Server *s, Node *node)
{
	uint32_t	i;

	spec_gone(s, node);
	for (i = 0; i < s->nrequests; i++)
		if (spec_node_of(&s->requests[i]) == node)
			s->requests[i].must_lose = false;
}

void
spec_name_gone(Server *s, Node *node, const char *path)
{
	node->may_exist[name_is_exclusive(node->lock->dialect, strrchr(path, '/') + 1)] = false;
	if (!node->may_exist[0] && !node->may_exist[1])
		spec_gone(s, node);
}

/* Those with numbers from there on are of a directory that is gone. */
void
spec_queue_gone(Server *s, const Lock *lock, int64_t from)
{
	uint32_t	i;

	for (i = 0; i < s->nrequests; i++)
	{
		Request    *r = &s->requests[i];

		if (r->lock == lock && spec_in_queue(r) && r->node->seq >= from)
			spec_gone(s, r->node);
	}
}

/* ---- reads ---- */

/* Whether others may have got the lock while the session's end was lost */
static bool
is_overtaken(const Server *s, const Request *r)
{
	const Lock *lock = r->lock;
	const Child *c;
	uint32_t	n = 0,
				i;

	for (i = 0; i < s->nrequests; i++)
		n += s->requests[i].lock == lock;
	for (c = lock->others; c != NULL; c = c->next)
		n++;
	if (lock->dialect == PERMIT && n + lock->strangers <= r->max)
		return false;
	for (c = lock->others; c != NULL; c = c->next)
		if (c->parsed.seq > r->node->seq &&
			(lock->dialect == PERMIT || spec_conflict(c->parsed.exclusive, r->node->exclusive)))
			return true;
	return false;
}

static void
judge_doubts(Server *s, Lock *lock)
{
	uint32_t	i;

	for (i = 0; i < s->nrequests; i++)
	{
		Request    *r = &s->requests[i];

		if (r->lock != lock || !r->doubt)
			continue;
		r->doubt = false;
		if (!spec_in_queue(r) || r->broken || !is_overtaken(s, r))
			continue;
		r->node->overtaken = true;
		if (r->demand == GRANTED && !r->stays)
			r->must_lose = true;
	}
}

static void
own_listed(Op *op, Node *node, const Name *name)
{
	node->seen = op->order;
	if (node->downgrade_unsettled)
	{
		node->downgrade_unsettled = false;
		node->exclusive = name->exclusive;
		node->may_exist[!name->exclusive] = false;
		node->may_exist[name->exclusive] = true;
	}
	if (node->state != NODE_UNSETTLED)
		return;
	node->state = NODE_EXISTS;
	node->seq = name->seq;
	node->czxid = 0;
	node->lock->number_ended |= name->seq >= NUMBER_LIMIT;
}

/* Takes the children over; the greatest number, -1: there is none. */
static int64_t
take_children(Server *s, Lock *lock, Op *op, Child *children)
{
	int64_t		last = -1;
	Child	   *c,
			   *next;

	lock->others = NULL;
	lock->strangers = 0;
	for (c = children; c != NULL; c = next)
	{
		Node	   *node;

		next = c->next;
		if (!name_parse(lock->dialect, c->name, &c->parsed))
		{
			lock->strangers++;
			continue;
		}
		last = c->parsed.seq > last ? c->parsed.seq : last;
		node = c->parsed.zklock ? spec_node(s, c->parsed.uuid) : NULL;
		if (node != NULL && node->lock == lock && node->state != NODE_GONE)
		{
			own_listed(op, node, &c->parsed);
			continue;
		}
		c->next = lock->others;
		lock->others = c;
	}
	return last;
}

/* What of ours is not listed does not exist. */
static void
settle_unseen(Server *s, Lock *lock, const Op *op)
{
	size_t		i;

	for (i = 0; i < sizeof(s->nodes) / sizeof(s->nodes[0]); i++)
	{
		Node	   *node;

		for (node = s->nodes[i]; node != NULL; node = node->next)
			if (node->lock == lock && node->seen != op->order &&
				(node->state == NODE_EXISTS || node->state == NODE_UNSETTLED))
				spec_gone(s, node);
	}
}

static void
drop_departed(Lock *lock)
{
	Child	  **where = &lock->others;

	while (*where != NULL)
	{
		if (spec_departed(lock, *where))
			*where = (*where)->next;
		else
			where = &(*where)->next;
	}
}

static void
listed(Server *s, Op *op, const Answer *a)
{
	Lock	   *lock = op->lock;
	int64_t		last;
	uint32_t	i;
	bool		alone;

	last = take_children(s, lock, op, a->rc == RC_OK ? a->children : NULL);
	alone = lock->others == NULL;
	settle_unseen(s, lock, op);
	judge_doubts(s, lock);
	drop_departed(lock);
	if (lock->base_known && lock->base_seq > last)
		last = lock->base_seq;
	for (i = 0; i < s->nrequests; i++)
		if (s->requests[i].lock == lock && spec_in_queue(&s->requests[i]) &&
			s->requests[i].node->seq > last)
			last = s->requests[i].node->seq;
	lock->known = last + 1;
	if (op->order > lock->tainted_at)
		lock->tainted = false;
	if (op->watch)
		lock->children_watched = a->rc == RC_OK;
	lock->alone_at = alone && lock->children_watched ? op->order : 0;
	if (!alone && lock->offered != NULL)
		lock->must_recall = true;
}

/* We may not list: what was in doubt stays so no longer, but is lost. */
static void
not_listed(Server *s, Lock *lock)
{
	uint32_t	i;

	for (i = 0; i < s->nrequests; i++)
	{
		Request    *r = &s->requests[i];

		if (r->lock != lock || r->node == NULL)
			continue;
		if (r->doubt || r->node->downgrade_unsettled)
			r->node->unreadable = true;
		if (r->doubt && spec_holds(r) && !r->stays)
			r->must_lose = true;
		r->doubt = false;
		r->node->overtaken |= r->demand == WAITING && r->node->unreadable;
	}
}

void
spec_own_read(Server *s, Op *op, const Answer *a)
{
	Node	   *node = op->node;
	const Request *r = node != NULL ? node->request : NULL;
	bool		marks = node != NULL && node->lock->dialect != LATCH;

	if (node == NULL || node->state != NODE_EXISTS)
		return;
	if (a->rc == RC_NONODE)
	{
		spec_gone_soon(s, node);
		return;
	}
	if (a->rc != RC_OK)
	{
		node->seen_on = 0;
		node->unreadable |= a->rc == RC_NOAUTH;
		if (r != NULL && r->demand == WAITING)
			node->czxid = 0;
		return;
	}
	node->seen_on = s->connection;
	if (!op->watch)
		node->czxid = a->czxid;
	if (!op->watch && !a->breaking)
		node->unmarked = s->acknowledged_at;
	node->watched |= op->watch;

	if (marks && !a->cached && r != NULL && node->lock->offered == r)
		node->lock->must_recall = true;

	/* If this look was not waited for any more, another one tells. */
	if (marks && a->breaking)
		node->marked = true;
	else if (marks && a->revoking)
		node->asked = a->mzxid;
}

static void
ahead_read(Server *s, Lock *lock, Op *op, const Answer *a)
{
	const char *child;
	Watch	   *watch;
	Name		name;
	Child	  **where = &lock->others;

	if (!spec_is_child(lock, op->path, &child) ||
		!name_parse(lock->dialect, child, &name))
		return;
	spec_watch_end(lock, op->path);
	if (a->rc == RC_OK)
	{
		watch = spec_take(sizeof(*watch));
		watch->path = op->path;
		watch->plain = name.zklock && !a->downgrading;
		watch->cached = name.zklock && a->cached;
		watch->next = lock->watches;
		lock->watches = watch;
	}
	while (a->rc == RC_NONODE && *where != NULL && strcmp((*where)->name, child) != 0)
		where = &(*where)->next;
	if (a->rc != RC_NONODE || *where == NULL)
		return;
	if (!spec_departed(lock, *where) && name.exclusive &&
		(lock->dialect == CURATOR_RW || name.zklock))
	{
		lock->tainted = true;
		lock->tainted_at = s->order;
	}
	*where = (*where)->next;
}

static void
probed(Lock *lock, const Op *op, const Answer *a)
{
	Probe	   *p = &lock->probe;
	Child	   *c;

	p->answered = a->rc == RC_OK;
	p->submits = op->submits;
	p->children = a->children;
	p->mark_read = false;
	for (c = p->children; c != NULL; c = c->next)
		if (!name_parse(lock->dialect, c->name, &c->parsed))
			c->parsed.seq = -1;
}

void
spec_lock_read(Server *s, Op *op, const Answer *a)
{
	Lock	   *lock = op->lock;
	bool		proved = op->order > s->proved_at;

	if (strcmp(op->what, "list") == 0 && proved && (a->rc == RC_OK || a->rc == RC_NONODE))
		listed(s, op, a);
	else if (strcmp(op->what, "list") == 0 && proved && a->rc == RC_NOAUTH)
		not_listed(s, lock);
	else if (strcmp(op->what, "watch-ahead") == 0)
		ahead_read(s, lock, op, a);
	else if (strcmp(op->what, "watch-directory") == 0 && a->rc == RC_OK)
	{
		lock->directory_watched = true;
		lock->directory_czxid = a->czxid;
	}
	else if (strcmp(op->what, "probe-sync") == 0)
		lock->probe.fresh = a->rc == RC_OK;
	else if (strcmp(op->what, "probe") == 0)
		probed(lock, op, a);
	else if (strcmp(op->what, "probe-mark") == 0)
	{
		lock->probe.mark_read = a->rc == RC_OK;
		lock->probe.cached = a->cached;
	}
}
