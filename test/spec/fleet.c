/*
 * fleet.c
 *	  What several servers may do at the same time: their traces, and ZooKeeper's log.
 *
 * Owns the tree as the log tells it, as far as there are contenders in it.  Lines of the
 * log are
 *
 *	  zk create PATH zxid=Z owner=SESSION
 *	  zk delete PATH zxid=Z owner=SESSION session=SESSION
 *	  zk close session=SESSION		it was not left to expire
 *	  zk lost		ZooKeeper has lost what it had acknowledged, or is another one
 *	  zk by-zxid	all of the log comes first
 *
 * and come at their place among the lines of the servers; or ahead of them all.  Then a
 * grant is looked at when its server has sent another batch: what that one's transaction
 * comes behind is past.  Where somebody else's hand has
 * deleted a znode, S1 does not hold, nor where writes were lost: so the rules end there.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "spec.h"

typedef struct Znode
{
	struct Znode *next;
	const char *name;
	int64_t		zxid;
	int64_t		gone;			/* by this one; 0: it exists */
	int64_t		owner;
} Znode;

/* Who got the lock with the greatest token so far */
typedef struct Best
{
	int64_t		token;
	int64_t		session;
	uint64_t	owner;
} Best;

typedef struct Directory
{
	struct Directory *next;
	const char *path;
	Znode	   *znodes;			/* that exist */
	Text	   *deleted;		/* names that others have deleted */
	Best		best[DIALECTS][2];
} Directory;

static Directory *directories;
static Text *closed;			/* sessions */
static bool logged;				/* the log is there */
static bool by_zxid;
static bool lost;
static int64_t first;			/* transaction id of the log; 0: none yet */
static char text[MOST_PATH + 200];

void
fleet_begin(void)
{
	directories = NULL;
	closed = NULL;
	logged = by_zxid = lost = false;
	first = 0;
}

static Directory *
directory_of(const char *path, size_t length)
{
	Directory  *d = directories;
	char		copy[MOST_PATH];

	while (d != NULL && (strncmp(d->path, path, length) != 0 || d->path[length] != '\0'))
		d = d->next;
	if (d != NULL || length >= sizeof(copy))
		return d;
	memcpy(copy, path, length);
	copy[length] = '\0';
	d = spec_take(sizeof(*d));
	d->path = spec_copy(copy);
	d->next = directories;
	directories = d;
	return d;
}

static Znode **
find(Directory *d, const char *name)
{
	Znode	  **where = &d->znodes;

	while (*where != NULL && strcmp((*where)->name, name) != 0)
		where = &(*where)->next;
	return where;
}

static const char *
session_text(int64_t session)
{
	static char buf[24];

	snprintf(buf, sizeof(buf), "%llx", (unsigned long long) session);
	return buf;
}

static void
note_closed(int64_t session)
{
	spec_add_text(&closed, session_text(session));
}

void
fleet_log(const Line *line)
{
	char		path[MOST_PATH];
	const char *slash;
	Directory  *d;
	Znode	  **where;
	Znode	   *z;

	logged = true;
	if (first == 0)
		first = line_number(line, "zxid", 0);
	lost |= line_is(line, 1, "lost");
	by_zxid |= line_is(line, 1, "by-zxid");
	if (line_is(line, 1, "close"))
		note_closed(line_number(line, "session", 0));
	if (!line_path(line, path, sizeof(path)) || (slash = strrchr(path, '/')) == NULL)
		return;
	d = directory_of(path, (size_t) (slash - path));
	if (d == NULL)
		return;
	where = find(d, slash + 1);
	if (*where != NULL)
		(*where)->gone = line_number(line, "zxid", 1);
	if (*where != NULL && !by_zxid)
		*where = (*where)->next;
	if (line_is(line, 1, "create"))
	{
		z = spec_take(sizeof(*z));
		z->name = spec_copy(slash + 1);
		z->zxid = line_number(line, "zxid", 0);
		z->owner = line_number(line, "owner", 0);
		z->next = d->znodes;
		d->znodes = z;
	}
	else if (line_number(line, "owner", 0) != line_number(line, "session", 0))
		spec_add_text(&d->deleted, slash + 1);
}

static const char *
say(const char *format,...)
{
	va_list		args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return text;
}

/* Whether somebody else has deleted a znode of that id */
static bool
is_tampered(const Directory *d, const char *uuid)
{
	const Text *t;

	for (t = d->deleted; uuid[0] != '\0' && t != NULL; t = t->next)
	{
		int			dialect;
		char		of[UUID_TEXT + 1];

		for (dialect = 0; dialect < DIALECTS; dialect++)
			if (name_uuid((Dialect) dialect, t->text, of) && strcmp(of, uuid) == 0)
				return true;
	}
	return false;
}

/* ---- S1 ---- */

/*
 * What its clock shows then at the latest: between two lines it goes 0.1 % faster than
 * that of all at most.
 */
static int64_t
latest(const Server *s, int64_t at)
{
	int64_t		passed = at - s->seen_at;

	return s->clock + passed + passed / 1000 + 1000;
}

static bool
is_hold(const Server *s, const Request *r, int64_t at)
{
	return spec_holds(r) && !r->stays && !r->must_lose &&
		!(r->kept && r->kept_until <= latest(s, at));
}

static const char *
check_holders(const Server *s, const Request *r, const Directory *d, int64_t at)
{
	const Server *o;
	uint32_t	held = 0,
				i;

	for (o = spec_servers(); o != NULL; o = o->next)
	{
		if (o != s && (!o->known || o->session == 0 ||
					   spec_has_text(closed, session_text(o->session)) || latest(o, at) >= o->lease))
			continue;
		for (i = 0; i < o->nrequests; i++)
		{
			const Request *h = &o->requests[i];
			const Node *node;

			if (h->lock == NULL || h->lock->dialect != r->lock->dialect || h == r ||
				strcmp(h->lock->path, r->lock->path) != 0 || !is_hold(o, h, at))
				continue;
			node = spec_node_of(h);
			if (node == NULL || is_tampered(d, node->uuid))
				continue;
			held += h->cover == NULL;
			if (o != s && r->lock->dialect != PERMIT && spec_conflict(h->exclusive, r->exclusive))
				return say("server %d holds it as well, and its lease lasts (S1)", o->id);
		}
	}
	if (r->lock->dialect == PERMIT && held >= r->max)
		return say("%u hold a permit already, of %u (S1)", held, r->max);
	return NULL;
}

/* ---- S2 ---- */

static const char *
check_token(const Server *s, const Request *r, Directory *d)
{
	Best	   *best = d->best[r->lock->dialect];
	int			other;

	for (other = 0; other < 2; other++)
		if (spec_conflict(other == 1, r->exclusive) && best[other].token >= r->token &&
			r->lock->dialect != PERMIT &&
			(best[other].session != s->session || best[other].owner != r->owner))
			return say("another server was granted token %lld before (S2)",
					   (long long) best[other].token);
	if (r->token > best[r->exclusive].token)
		best[r->exclusive] = (Best)
	{
		r->token, s->session, r->owner
	};
	return NULL;
}

/* ---- S6: by the log ---- */

static bool
is_ahead(const Server *s, const Request *r, const Directory *d, const Znode *z, int64_t zxid)
{
	Child		c = {.name = z->name};

	return (z->gone == 0 || z->gone > zxid) && z->zxid < zxid && z->owner != s->session && name_parse(r->lock->dialect, z->name, &c.parsed) &&
		c.parsed.seq <= r->node->seq && spec_conflict(c.parsed.exclusive, r->exclusive) &&
		!spec_departed(r->lock, &c) && !is_tampered(d, c.parsed.uuid);
}

/* At this transaction id; a log that comes line by line ends there. */
static const char *
check_log(const Server *s, const Request *r, Directory *d, int64_t zxid)
{
	const Znode *z;
	bool		found = false;

	for (z = d->znodes; z != NULL; z = z->next)
	{
		char		uuid[UUID_TEXT + 1];

		found |= z->zxid == r->node->czxid && name_uuid(r->lock->dialect, z->name, uuid) &&
			strcmp(uuid, r->node->uuid) == 0 && (z->gone == 0 || z->gone > s->zxid);
		if (r->lock->dialect != PERMIT && is_ahead(s, r, d, z, zxid))
			return say("%s stands ahead in ZooKeeper's log (S6)", z->name);
	}
	return found ? NULL : "its znode does not exist in ZooKeeper's log";
}

/* A batch that was sent behind grants is done. */
const char *
fleet_batch(Server *s, int64_t sent_at, int64_t zxid)
{
	uint32_t	i;

	for (i = 0; by_zxid && !lost && i < s->nrequests; i++)
	{
		Request    *r = &s->requests[i];
		Directory  *d;
		const char *wrong;

		if (!r->unproved || r->unproved_since >= sent_at)
			continue;
		r->unproved = false;
		if (r->node == NULL || r->cover != NULL || r->node->czxid < first)
			continue;
		d = directory_of(r->lock->path, strlen(r->lock->path));
		wrong = d != NULL && !is_tampered(d, r->node->uuid) ? check_log(s, r, d, zxid) : NULL;
		if (wrong != NULL)
			return wrong;
	}
	return NULL;
}

const char *
fleet_grant(const Server *s, Request *r, int64_t at)
{
	Directory  *d = directory_of(r->lock->path, strlen(r->lock->path));
	const char *wrong;

	/* One that leans is worth what the hold is that it leans on. */
	if (lost || d == NULL || r->cover != NULL || is_tampered(d, r->node->uuid))
		return NULL;
	wrong = check_holders(s, r, d, at);
	if (wrong == NULL)
		wrong = check_token(s, r, d);
	if (wrong == NULL && logged && !by_zxid)
		wrong = check_log(s, r, d, INT64_MAX);
	r->unproved = by_zxid;
	r->unproved_since = s->now;
	return wrong;
}
