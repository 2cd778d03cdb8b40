/*
 * when.c
 *	  The conditions of the rules: whether what a server does is allowed now.
 *
 * They read what is known, and change nothing but the reason why.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "when.h"

static char why[MOST_PATH + 200];

void
spec_because(const char *format,...)
{
	va_list		args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
}

const char *
spec_why(void)
{
	return why;
}

/* ---- demands ---- */

bool
when_free(Server *s, const Line *line)
{
	(void) line;
	return s->r->demand == UNUSED;
}

bool
when_waits(Server *s, const Line *line)
{
	(void) line;
	return s->r->demand == WAITING;
}

bool
when_granted(Server *s, const Line *line)
{
	(void) line;
	return s->r->demand == GRANTED;
}

bool
when_timed_out(Server *s, const Line *line)
{
	(void) line;
	return s->r->timed_out;
}

bool
when_together(Server *s, const Line *line)
{
	(void) line;
	return s->r->together;
}

/* ---- connection and lease ---- */

bool
when_ready(Server *s, const Line *line)
{
	(void) line;
	return s->state == READY;
}

bool
when_in_lease(Server *s, const Line *line)
{
	(void) line;
	spec_because("it is %lld, and the lease ends at %lld", (long long) s->now,
				 (long long) s->lease);
	return s->now < s->lease;
}

bool
when_down(Server *s, const Line *line)
{
	(void) line;
	return s->state == DOWN;
}

bool
when_same_session(Server *s, const Line *line)
{
	return s->session == 0 || s->session == line_number(line, "session", 0);
}

/* It may have ended unseen, when its time was over: a flush that sends nothing is no line. */
static bool
may_hold(const Server *s, const Request *r)
{
	return spec_holds(r) && !(r->kept && r->kept_until <= s->now);
}

static bool
raises(const Server *s, const Line *line)
{
	return line_number(line, "until", 0) > s->lease;
}

bool
when_bound(Server *s, const Line *line)
{
	spec_because("it may end at %lld", (long long) s->lease_bound);
	return !raises(s, line) || line_number(line, "until", 0) <= s->lease_bound;
}

bool
when_seen(Server *s, const Line *line)
{
	uint32_t	i;

	for (i = 0; raises(s, line) && i < s->nrequests; i++)
	{
		const Request *r = &s->requests[i];

		spec_because("request %u", r->id);
		if (may_hold(s, r) && spec_in_queue(r) && r->node->seen_on != s->connection)
			return false;
	}
	return true;
}

bool
when_unmarked(Server *s, const Line *line)
{
	uint32_t	i;

	for (i = 0; raises(s, line) && i < s->nrequests; i++)
	{
		const Request *r = &s->requests[i];

		if (!may_hold(s, r) || !spec_in_queue(r) ||
			(r->node->watched && !r->node->marked))
			continue;
		spec_because("request %u was unmarked at %lld", r->id, (long long) r->node->unmarked);
		if (line_number(line, "until", 0) > r->node->unmarked + s->timeout - s->timeout / 500)
			return false;
	}
	return true;
}

bool
when_undoubted(Server *s, const Line *line)
{
	uint32_t	i;

	for (i = 0; raises(s, line) && i < s->nrequests; i++)
	{
		const Request *r = &s->requests[i];

		spec_because("request %u", r->id);
		if (r->doubt && (r->demand == WAITING || may_hold(s, r)))
			return false;
	}
	return true;
}

bool
when_no_loss(Server *s, const Line *line)
{
	return !raises(s, line) || !s->lost_now;
}

/* ---- a grant ---- */

static bool
exists(const Node *node)
{
	return node != NULL && node->state == NODE_EXISTS;
}

bool
when_has_node(Server *s, const Line *line)
{
	(void) line;
	return exists(s->r->node);
}

/* Which rule is for a grant: one without a znode of its own leans. */
bool
when_leans(Server *s, const Line *line)
{
	(void) line;
	return s->r->node == NULL;
}

bool
when_stands(Server *s, const Line *line)
{
	(void) line;
	return s->r->node != NULL;
}

bool
when_covered(Server *s, const Line *line)
{
	return spec_covering(s, s->r, line_number(line, "token", 0)) != NULL;
}

bool
when_number_good(Server *s, const Line *line)
{
	(void) line;
	return exists(s->r->node) && s->r->node->seq < NUMBER_LIMIT;
}

bool
when_place_good(Server *s, const Line *line)
{
	const Node *node = s->r->node;

	(void) line;
	spec_because(node->marked ? "an operator has marked it" :
				 "somebody else may have got the lock, or we may not list");
	return !node->marked && !node->overtaken && !node->going && !s->r->doubt;
}

bool
when_all_known(Server *s, const Line *line)
{
	(void) line;
	spec_because("its number is %lld, and those from %lld on are not known",
				 (long long) s->r->node->seq, (long long) s->r->lock->known);
	return s->r->lock->known >= s->r->node->seq;
}

bool
when_not_tainted(Server *s, const Line *line)
{
	const Request *r = s->r;

	(void) line;
	return !r->lock->tainted || !r->exclusive || r->lock->dialect == PERMIT;
}

/* Those of others with no larger number; of a semaphore all count. */
static uint32_t
others_ahead(const Request *r, const char **name)
{
	const Child *c;
	uint32_t	n = 0;

	for (c = r->lock->others; c != NULL; c = c->next)
	{
		if (c->parsed.seq > r->node->seq || spec_departed(r->lock, c) ||
			(r->lock->dialect != PERMIT && !spec_conflict(c->parsed.exclusive, r->exclusive)))
			continue;
		*name = c->name;
		n++;
	}
	return n;
}

static uint32_t
own_ahead(const Server *s, const Request *r, uint32_t *which)
{
	uint32_t	n = 0,
				i;

	for (i = 0; i < s->nrequests; i++)
	{
		const Request *o = &s->requests[i];

		if (o == r || o->lock != r->lock || !spec_in_queue(o) ||
			o->node->seq >= r->node->seq || o->node->going)
			continue;
		if (r->lock->dialect != PERMIT &&
			(spec_same_owner(o, r) || !spec_conflict(o->node->exclusive, r->exclusive)))
			continue;
		*which = i;
		n++;
	}
	return n;
}

bool
when_no_other_ahead(Server *s, const Line *line)
{
	const char *name = "";

	(void) line;
	if (s->r->lock->dialect == PERMIT)
		return true;
	if (others_ahead(s->r, &name) == 0)
		return true;
	spec_because("%s is ahead of number %lld", name, (long long) s->r->node->seq);
	return false;
}

bool
when_no_own_ahead(Server *s, const Line *line)
{
	uint32_t	which = 0;

	(void) line;
	if (s->r->lock->dialect == PERMIT || own_ahead(s, s->r, &which) == 0)
		return true;
	spec_because("request %u is ahead", which);
	return false;
}

bool
when_permits_left(Server *s, const Line *line)
{
	const Request *r = s->r;
	const char *name = "";
	uint32_t	which = 0,
				n;

	(void) line;
	if (r->lock->dialect != PERMIT)
		return true;
	n = own_ahead(s, r, &which) + others_ahead(r, &name) + r->lock->strangers;
	spec_because("%u are ahead, and there are %u permits", n, r->max);
	return n < r->max;
}

bool
when_token_good(Server *s, const Line *line)
{
	const Node *node = s->r->node;
	int64_t		token = node->czxid * s->tokens + node->index;

	spec_because("the token is %lld", (long long) token);
	return node->czxid != 0 && line_number(line, "token", 0) == token;
}

bool
when_token_grows(Server *s, const Line *line)
{
	const Request *r = s->r;
	int64_t		token = line_number(line, "token", 0);
	int			other;

	for (other = 0; other < 2 && r->lock->dialect != PERMIT; other++)
	{
		int64_t		before = r->lock->granted[other];

		spec_because("%lld was granted before", (long long) before);
		if (spec_conflict(other == 1, r->exclusive) && before >= token &&
			r->lock->granted_to[other] != r->owner)
			return false;
	}
	return true;
}

bool
when_recent(Server *s, const Line *line)
{
	const Node *node = s->r->node;

	(void) line;
	spec_because("it was unmarked at %lld", (long long) node->unmarked);
	return node->watched ||
		node->unmarked + s->timeout - s->timeout / 500 >= s->lease;
}

/* ---- other answers to a demand ---- */

static bool
is_live(const Server *s, const Child *c)
{
	uint32_t	i;

	for (i = 0; i < s->nrequests; i++)
	{
		const Request *r = &s->requests[i];

		if (r->node != NULL && strcmp(r->node->uuid, c->parsed.uuid) == 0)
			return r->demand == WAITING || r->demand == GRANTED;
	}
	return true;
}

/* A look, sent behind a sync and behind the try, that shows somebody in its way */
static bool
probe_denies(Server *s, const Request *r)
{
	const Probe *p = &r->lock->probe;
	const Child *c;
	uint32_t	n = 0,
				writers = 0;
	bool		servers = false;

	if (!p->answered || !p->fresh || p->submits < r->submitted)
		return false;
	for (c = p->children; c != NULL; c = c->next)
	{
		if (c->parsed.seq < 0 || spec_departed(r->lock, c) || !is_live(s, c))
			continue;
		n++;
		writers += c->parsed.exclusive;
		servers |= c->parsed.exclusive && c->parsed.zklock &&
			spec_node(s, c->parsed.uuid) == NULL;
	}
	if ((r->exclusive ? n : writers) == 0)
		return false;

	/* If it is only one server's, that may have it cached. */
	return !servers || writers > 1 || (r->exclusive && n > 1) ||
		r->lock->dialect == LATCH || (p->mark_read && !p->cached);
}

static bool
own_denies(const Server *s, const Request *r)
{
	uint32_t	i;
	uint32_t	n = 0;

	for (i = 0; i < s->nrequests; i++)
	{
		const Request *o = &s->requests[i];
		bool		ahead = exists(r->node) ? o->node != NULL && o->node->seq < r->node->seq :
		o->demand == GRANTED;

		if (o == r || o->lock != r->lock || !spec_in_queue(o) || !ahead)
			continue;
		if (r->lock->dialect == PERMIT)
			n++;
		else if (!spec_same_owner(o, r) && spec_conflict(o->node->exclusive, r->exclusive))
			return true;
	}
	return r->lock->dialect == PERMIT && exists(r->node) && n >= r->max;
}

static bool
watched_denies(const Request *r, bool cached)
{
	const Watch *w;

	for (w = r->lock->watches; exists(r->node) && w != NULL; w = w->next)
	{
		Child		c = {.name = w->path + strlen(r->lock->path) + 1};

		if (name_parse(r->lock->dialect, c.name, &c.parsed) &&
			c.parsed.seq <= r->node->seq && w->cached == cached &&
			spec_conflict(c.parsed.exclusive, r->exclusive) && !spec_departed(r->lock, &c))
			return true;
	}
	return false;
}

/* Under a watch that tells of each change */
static bool
permits_deny(const Server *s, const Request *r)
{
	const char *name = "";
	uint32_t	which = 0;

	return r->lock->dialect == PERMIT && exists(r->node) && r->lock->children_watched &&
		own_ahead(s, r, &which) + others_ahead(r, &name) + r->lock->strangers >= r->max;
}

bool
when_in_the_way(Server *s, const Line *line)
{
	(void) line;
	return own_denies(s, s->r) || watched_denies(s->r, false) || permits_deny(s, s->r) ||
		(s->r->node == NULL && probe_denies(s, s->r));
}

bool
when_behind_cached(Server *s, const Line *line)
{
	return line_has(line, "no-longer") ? s->r->behind_cached :
		s->r->demand == WAITING && s->r->timed_out && watched_denies(s->r, true);
}

/* What ZooKeeper refused is what is told. */
bool
when_refused(Server *s, const Line *line)
{
	int32_t		rc = (int32_t) line_number(line, "rc", 0);
	bool		of_session = rc == -112 || rc == -115 || rc == -116 || rc == -118;
	int			i;

	if (!line_has(line, "failure=zookeeper"))
		return true;
	spec_because(rc == RC_NONODE ? "that somebody is gone is no failure" : "no such answer");
	if (rc == RC_NONODE)
		return false;
	for (i = 0; s->op != NULL && i < s->op->nwrites; i++)
		if (s->op->writes[i].rc == rc && rc != 0)
			return !of_session;
	return rc != 0 && !of_session && s->answer.rc == rc;
}

bool
when_no_number(Server *s, const Line *line)
{
	return !line_has(line, "failure=no-number") || s->r->lock->number_ended ||
		(s->r->node != NULL && s->r->node->seq >= NUMBER_LIMIT);
}

/* Whether an exclusive contender of somebody else stands between r and a hold below it */
static bool
is_between(const Server *s, const Request *r, const Request *held)
{
	const Child *c;
	uint32_t	i;

	for (i = 0; i < s->nrequests; i++)
	{
		const Request *o = &s->requests[i];

		if (o->lock == r->lock && spec_in_queue(o) && o->node->exclusive &&
			!spec_same_owner(o, r) && o->node->seq > held->node->seq &&
			o->node->seq < r->node->seq)
			return true;
	}
	for (c = r->lock->others; c != NULL && r->node->seen != 0; c = c->next)
		if (c->parsed.exclusive && c->parsed.seq > held->node->seq &&
			c->parsed.seq <= r->node->seq)
			return true;
	return false;
}

bool
when_deadlock(Server *s, const Line *line)
{
	const Request *r = s->r;
	uint32_t	i;

	if (!line_has(line, "failure=deadlock"))
		return true;
	if (s->answer.op != NULL && (strcmp(s->answer.op->what, "verdict") == 0 ||
								 strcmp(s->answer.op->what, "waits") == 0))
		return true;
	for (i = 0; exists(r->node) && i < s->nrequests; i++)
	{
		const Request *held = &s->requests[i];

		if (held != r && held->lock == r->lock && spec_holds(held) && spec_in_queue(held) &&
			spec_same_owner(held, r) && is_between(s, r, held))
			return true;
	}
	return false;
}
