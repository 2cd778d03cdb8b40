/*
 * answers.c
 *	  What ZooKeeper's answers change, but for reads.
 *
 * An answer's results and children are lines of their own behind it: so it counts when
 * the next other line comes.
 */
#include <stdlib.h>
#include <string.h>

#include "spec.h"

#define ELECTIONS(n)	((int64_t) (n) << 32)

/* ---- an answer, line by line ---- */

void
then_reply(Server *s, const Line *line)
{
	Answer	   *a = &s->answer;
	int			i;

	s->now = line_number(line, "now", s->now);
	memset(a, 0, sizeof(*a));
	a->op = s->state == DOWN ? NULL : spec_op(s, line_number(line, "tag", -1));
	a->rc = (int32_t) line_number(line, "rc", 0);
	a->culprit = -1;
	a->czxid = line_number(line, "czxid", 0);
	a->mzxid = line_number(line, "mzxid", 0);
	a->version = line_number(line, "version", 0);
	a->owner = line_number(line, "owner", 0);
	a->breaking = line_has(line, "breaking");
	a->downgrading = line_has(line, "downgrading");
	a->cached = line_has(line, "cached");
	a->revoking = line_has(line, "revoking");
	s->answering = true;
	for (i = 0; a->op != NULL && i < a->op->nwrites; i++)
		a->op->writes[i].rc = RC_OK;
}

void
then_result(Server *s, const Line *line)
{
	Answer	   *a = &s->answer;
	int			i = (int) line_number(line, "operation", -1);
	char		path[MOST_PATH];

	if (a->op == NULL || i < 0 || i >= a->op->nwrites)
		return;
	a->nresults++;
	a->op->writes[i].rc = (int32_t) line_number(line, "rc", 0);
	if (a->op->writes[i].rc != RC_OK && a->culprit < 0)
		a->culprit = i;
	if (line_path(line, path, sizeof(path)))
		a->op->writes[i].made = spec_copy(path);
}

void
then_child(Server *s, const Line *line)
{
	char		name[MOST_PATH];
	Child	   *c = spec_take(sizeof(*c));

	line_rest(line, 2, name, sizeof(name));
	c->name = spec_copy(name);
	c->next = s->answer.children;
	s->answer.children = c;
}

/* ---- creates ---- */

static bool
is_continuous(const Lock *lock)
{
	return lock->base_known && lock->directory_watched &&
		lock->directory_czxid < lock->base_zxid;
}

/* What a number of ours tells of others' */
static void
account(Lock *lock, int64_t seq, int64_t zxid)
{
	if (seq == 0)
	{
		lock->others = NULL;
		lock->strangers = 0;
		lock->tainted = false;
		lock->known = 1;
	}
	else if (!is_continuous(lock) || seq <= lock->base_seq)
		lock->known = 0;
	else if (seq > lock->base_seq + 1)
		lock->known = lock->known < lock->base_seq + 1 ? lock->known : lock->base_seq + 1;
	else if (lock->known > lock->base_seq)
		lock->known = seq + 1;
	lock->base_known = true;
	lock->base_seq = seq;
	lock->base_zxid = zxid;
}

static void
created(Server *s, Write *w, int64_t zxid, int64_t sent_at)
{
	Node	   *node = w->node;
	Name		name;

	if (node == NULL)
		return;
	if (w->made == NULL ||
		!name_parse(node->lock->dialect, strrchr(w->made, '/') + 1, &name))
	{
		node->state = NODE_UNSETTLED;
		s->chain = false;
		return;
	}
	if (name.seq < NUMBER_LIMIT)
	{
		node->lock->number_ended = false;
		spec_queue_gone(s, node->lock, name.seq);
		account(node->lock, name.seq, zxid);
	}
	else
		node->lock->number_ended = true;
	node->state = NODE_EXISTS;
	node->seq = name.seq;
	node->czxid = zxid;
	node->unmarked = sent_at;
}

/* ---- batches ---- */

static bool
is_create(const Write *w)
{
	return strcmp(w->kind, "create") == 0;
}

static bool
is_delete(const Write *w)
{
	return strcmp(w->kind, "delete") == 0;
}

/* A downgrade is a set, a create and a delete: the create has the reader's name. */
static bool
is_downgrade(const Write *w)
{
	return strcmp(w->kind, "create-ephemeral") == 0 && w->node != NULL;
}

static void
write_done(Server *s, Op *op, int i, int64_t zxid)
{
	Write	   *w = &op->writes[i];

	if (is_create(w))
		created(s, w, zxid, op->sent_at);
	else if (is_downgrade(w))
	{
		w->node->exclusive = w->node->downgrade_sent = false;
		w->node->may_exist[0] = true;
		w->node->watched = false;
		w->node->unmarked = op->sent_at;
	}
	else if (is_delete(w) && w->node != NULL)
		spec_name_gone(s, w->node, w->path);
}

/* Nothing was done. */
static void
write_refused(Server *s, Write *w, bool culprit)
{
	Node	   *node = w->node;

	if (is_create(w) && node != NULL && node->state == NODE_SENT)
	{
		node->state = NODE_NAMED;
		node->may_exist[node->exclusive] = false;
	}
	if (is_downgrade(w))
	{
		node->downgrade_sent = false;
		node->may_exist[0] = false;
	}
	if (!culprit || w->rc != RC_NONODE)
		return;
	if (is_create(w) && node != NULL)
		spec_queue_gone(s, node->lock, 0);
	else if (is_delete(w) && node != NULL)
		spec_name_gone(s, node, w->path);
	else if (node != NULL && strcmp(w->kind, "set") == 0)
		spec_gone(s, node);
}

/* Of transactions that publish waits, or take that back */
static void
publish(Server *s, Op *op, const Answer *a)
{
	bool		refused = a->rc != RC_OK && a->culprit >= 0;
	int			i;

	for (i = 0; i < op->nwrites; i++)
	{
		Write	   *w = &op->writes[i];
		bool		gone = is_delete(w) && (a->rc == RC_OK || (refused && i == a->culprit && w->rc == RC_NONODE));

		if (w->node != NULL)
			continue;
		if (gone || (refused && !is_delete(w)))
			spec_drop_text(&s->published, w->path);
		if (refused && !is_delete(w))
			spec_drop_text(&s->publications, w->path);
		else if (a->rc != RC_OK && (!refused || i == a->culprit))
			spec_doubt_text(s->published, w->path);
	}
}

static void
batch_unknown(Server *s, Op *op)
{
	int			i;

	for (i = 1; i < op->nwrites; i++)
	{
		Node	   *node = op->writes[i].node;

		if (is_create(&op->writes[i]) && node != NULL && node->state == NODE_SENT)
			node->state = NODE_UNSETTLED;
		if (is_downgrade(&op->writes[i]))
		{
			node->downgrade_sent = false;
			node->downgrade_unsettled = true;
		}
	}
	s->chain = false;
	s->refused = true;
}

/* An id that is far ahead of all others counts only if the next answer says the like. */
static bool
is_absurd(Server *s, int64_t zxid)
{
	int64_t		near = s->zxid != 0 ? ELECTIONS(64) : ELECTIONS(65536);
	bool		confirmed = s->unbelieved != 0 && zxid >= s->unbelieved &&
	zxid - s->unbelieved < ELECTIONS(64);

	s->unbelieved = 0;
	if (zxid <= 0 || zxid > INT64_MAX / s->tokens)
		return true;
	if (zxid < s->zxid || zxid - s->zxid < near || confirmed)
		return false;
	s->unbelieved = zxid;
	return true;
}

/* All that stands in queues is in doubt, if the lease had ended. */
static void
elected(Server *s, int64_t zxid)
{
	uint32_t	i;

	spec_forget_all(s);
	for (i = 0; i < s->nrequests && s->lapsed; i++)
	{
		Request    *r = &s->requests[i];
		const Node *node = r->node;

		if (r->demand == WAITING && node != NULL && !node->going)
			r->doubt = node->state == NODE_UNSETTLED ||
				(node->state == NODE_EXISTS && node->czxid != zxid);
		else if (spec_holds(r))
			r->doubt = true;
	}
}

/* Lemma 3: until when the session lives, if a batch that was sent then is applied */
static int64_t
lease_of(Server *s, int64_t sent_at)
{
	int64_t		longest = sent_at + s->timeout * 2 / 3;
	int64_t		expiry;

	while (s->taken < s->ncontacts &&
		   s->contacts[s->taken % MOST_CONTACTS].answered_at <= sent_at - s->timeout * 7 / 24)
	{
		int64_t		at = s->contacts[s->taken++ % MOST_CONTACTS].sent_at;

		s->heard = at > s->heard ? at : s->heard;
	}
	expiry = s->heard + s->timeout - s->timeout / 500;
	return expiry < longest ? expiry : longest;
}

static void
batch_done(Server *s, Op *op, const Answer *a)
{
	int			i;

	s->lease_bound = lease_of(s, op->sent_at);
	s->acknowledged_at = op->sent_at;
	s->acknowledged = op->version + 1;
	for (i = 1; i < op->nwrites; i++)
		write_done(s, op, i, a->mzxid);
	if (a->owner != s->session)
	{
		s->chain = false;
		s->lease_bound = 0;
		return;
	}
	if (s->state == PROVING && a->mzxid / ELECTIONS(1) > s->zxid / ELECTIONS(1))
		elected(s, a->mzxid);
	s->wrong = fleet_batch(s, op->sent_at, a->mzxid);
	s->zxid = a->mzxid;
	if (s->state != PROVING)
		return;
	s->state = READY;
	s->checked = true;
	s->proved_at = s->order;
}

static bool
is_definite(int32_t rc)
{
	return rc == -8 || (rc <= RC_NONODE && rc != -112 && rc != -115 && rc != -116 && rc != -118);
}

static void
batch_refused(Server *s, Op *op, const Answer *a)
{
	int			i;

	for (i = 1; i < op->nwrites; i++)
		write_refused(s, &op->writes[i], i == a->culprit);
	if (a->culprit == 0 && !s->refused)
		s->chain = false;
	else if (a->culprit > 0)
		s->version = op->version;
	s->refused = true;
}

/* Whether another batch is under way */
static bool
has_batch(const Server *s)
{
	const Op   *op;

	for (op = s->ops; op != NULL; op = op->next)
		if (strcmp(op->what, "batch") == 0)
			return true;
	return false;
}

/* ZooKeeper answers in order. */
static bool
overtakes(const Server *s, const Op *answered)
{
	const Op   *op;

	for (op = s->ops; op != NULL && op != answered; op = op->next)
		if (strcmp(op->what, "batch") == 0)
			return true;
	return false;
}

static void
batch_answered(Server *s, Op *op, const Answer *a)
{
	bool		overtook = overtakes(s, op);

	spec_op_end(s, op);
	publish(s, op, a);
	if (overtook)
		s->must_reconnect = true;
	else if (a->rc == RC_OK && (is_absurd(s, a->mzxid) || a->mzxid < s->zxid))
	{
		batch_unknown(s, op);
		s->must_reconnect = true;
	}
	else if (a->rc == RC_OK)
		batch_done(s, op, a);
	else if (a->culprit >= 0 && is_definite(op->writes[a->culprit].rc) &&
			 (a->culprit > 0 || op->writes[0].rc == RC_BADVERSION))
		batch_refused(s, op, a);
	else
		batch_unknown(s, op);
	if (!has_batch(s))
		s->refused = false;
}

/* ---- the chain ---- */

static void
chain_answered(Server *s, Op *op, const Answer *a)
{
	int			create = op->nwrites - 1;

	if (a->rc == RC_OK)
	{
		s->beat = s->next_beat;
		s->chain = true;
		s->version = s->acknowledged = 0;
		s->refused = false;
		s->state = PROVING;
	}
	else if (a->nresults > 0 && is_definite(a->rc) &&
			 op->writes[create].rc != RC_NODEEXISTS)
		spec_drop_text(&s->beats, s->next_beat);
}

static void
beat_read(Server *s, const Answer *a)
{
	if (a->rc != RC_OK)
		return;
	s->checked = true;
	if (a->version < s->acknowledged)
	{
		s->lost_writes = true;
		spec_forget_all(s);
	}
	s->acknowledged = a->version;
}

/* Whether a later one of this session took its place */
static bool
is_later(const char *name, const char *beat)
{
	const char *dot = strrchr(beat, '.');
	size_t		stem = (size_t) (dot - beat) + 1;

	return strncmp(name, beat, stem) == 0 &&
		strtoll(name + stem, NULL, 10) > strtoll(dot + 1, NULL, 10);
}

/* The one in use is gone.  If no later one is there, ZooKeeper has lost writes. */
static void
beats_listed(Server *s, const Answer *a)
{
	const Child *c = a->children;

	if (a->rc != RC_OK && a->rc != RC_NONODE && a->rc != RC_NOAUTH)
		return;
	s->checked = true;
	while (c != NULL && s->beat != NULL && !is_later(c->name, strrchr(s->beat, '/') + 1))
		c = c->next;
	s->lost_writes |= c == NULL;
}

/* ---- all ---- */

static void
other_answered(Server *s, Op *op, const Answer *a)
{
	if (strcmp(op->what, "chain") == 0)
		chain_answered(s, op, a);
	else if (strcmp(op->what, "chain-in-use") == 0)
		beat_read(s, a);
	else if (strcmp(op->what, "chain-list") == 0)
		beats_listed(s, a);
	else if (strcmp(op->what, "watch-own") == 0 || strcmp(op->what, "token") == 0)
		spec_own_read(s, op, a);
	else if (strcmp(op->send, "list") == 0 && op->path != NULL &&
			 (a->rc == RC_OK || a->rc == RC_NONODE) &&
			 strcmp(op->path + strlen(s->root), "/.waits") == 0)
		spec_drop_doubted(&s->published);
	else if (op->nwrites > 0)
		publish(s, op, a);
	else if (strcmp(op->send, "delete") == 0 && (a->rc == RC_OK || a->rc == RC_NONODE) &&
			 op->node != NULL)
		spec_name_gone(s, op->node, op->path);
	else if (op->lock != NULL)
		spec_lock_read(s, op, a);
}

void
spec_answer_over(Server *s)
{
	Answer	   *a = &s->answer;
	Op		   *op = a->op;

	s->answering = false;
	if (op == NULL)
		return;
	if (a->rc == RC_OK)
	{
		Contact    *c = &s->contacts[s->ncontacts % MOST_CONTACTS];

		*c = (Contact)
		{
			op->sent_at, s->now
		};
		s->ncontacts++;
	}
	if (strcmp(op->what, "batch") == 0)
	{
		batch_answered(s, op, a);
		return;
	}
	spec_op_end(s, op);
	other_answered(s, op, a);
}
