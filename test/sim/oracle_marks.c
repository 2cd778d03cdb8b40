/*
 * oracle_marks.c
 *	  Of the rules, those on the data of nodes: a node names its holder, and its
 *	  holder is told once of each question.
 *
 * Owns what is known of the questions.  Must not know how the core reads.
 *
 * A question is put by a write of somebody else.  It may be put again by a write of
 * the server's own, which takes the mark of a cached lock away, and it is gone when
 * somebody else writes over it.
 */
#include <stdlib.h>
#include <string.h>

#include "oracle.h"
#include "seen.h"
#include "sight.h"

/* ---- names ---- */

/* While a lock may be cached, its node tells nobody who has it. */
static void
check_name(Host *h, const Effect *effect, const Slot *s)
{
	static const char key[] = "\"owner\":";
	char		data[ZKL_MAX_NODE_DATA + 1];
	const char *owner;

	if (s == NULL || effect->length > ZKL_MAX_NODE_DATA ||
		zkl_node_data_is_cached(effect->data, effect->length))
		return;
	memcpy(data, effect->data, effect->length);
	data[effect->length] = '\0';
	owner = strstr(data, key);
	if (owner == NULL ||
		strtoull(owner + strlen(key), NULL, 10) != s->owner)
		broken("S8", "%s names another session than %" PRIu64 ", which has host %d slot"
			   " %d: %s", effect->path->text, s->owner, h->id, (int) (s - h->slots), data);
	if (s->token % ZKL_TOKENS_PER_ZXID != s->record.index && effect->kind == OP_SET)
		SEEN(TAKER_NAMED);
}

/* ---- marks of operators ---- */

/* Who marks a node goes by the mark: it must not go before its server has seen it. */
static void
check_mark(const Host *h, const Effect *effect, const Slot *s)
{
	if (s == NULL || s->tampered ||
		(s->state != SLOT_GRANTED && s->state != SLOT_WAITING) || s->record.going ||
		!zkl_node_data_breaking(effect->before.data, effect->before.length) ||
		zkl_node_data_breaking(effect->data, effect->length))
		return;
	broken("S8", "host %d slot %d writes over the mark of an operator", h->id,
		   (int) (s - h->slots));
}

/* ---- questions ---- */

static bool
is_question(const Effect *effect)
{
	char		asker[ZKL_MAX_NODE_DATA];

	return zkl_node_data_revoking(effect->data, effect->length, asker,
								  sizeof(asker));
}

/* Who has it, or waits for it, may still be told. */
static bool
can_be_told(const Host *h, const Slot *s)
{
	return s != NULL && (s->state == SLOT_GRANTED || s->state == SLOT_WAITING) &&
		!s->record.going && !s->tampered && !s->breaking &&
		!s->node_gone && s->record.generation == h->worker.session.generation;
}

static void
put_by_others(Contender *c, const Effect *effect, int64_t zxid)
{
	c->question = c->first_put = is_question(effect) ? zxid : 0;
	c->told = false;
}

/* The server writes over it. */
static void
put_by_server(const Host *h, const Slot *s, Contender *c, const Effect *effect,
			  int64_t zxid)
{
	if (c->question == 0)
		return;
	if (is_question(effect))
	{
		c->question = zxid;
		SEEN(QUESTION_REWRITTEN);
		return;
	}
	if (!c->told && can_be_told(h, s))
		broken("S8", "host %d slot %d takes a question away of which nobody is told",
			   h->id, (int) (s - h->slots));
	c->question = 0;
}

/* ZooKeeper has lost a write: what was to be told by it is not told. */
void
oracle_mark_lost(const Effect *effect)
{
	(void) contender_of(effect->path);
	effect->path->contender->question = 0;
}

static Contender *
contender_of_slot(const Slot *s)
{
	Path	   *path;

	if (!s->record.sent)
		return NULL;
	for (path = lock_path(s->lock)->children; path != NULL; path = path->sibling)
		if (path->node[HEAD].exists && contender_of(path)->counts &&
			same_uuid(s, &path->contender->uuid))
			return path->contender;
	return NULL;
}

/* A hold that leans on the node of another is told for that, too. */
void
oracle_asked(Host *h, int i, int64_t zxid)
{
	Path	   *path = lock_path(h->slots[i].lock)->children;

	SEEN(ASKED);
	for (; path != NULL; path = path->sibling)
	{
		const Contender *c = contender_of(path);

		if (c->question != 0 && (zxid == c->first_put || zxid == c->question))
			path->contender->told = true;
	}
}

bool
oracle_is_asked(Host *h, int i)
{
	const Slot *s = &h->slots[i];
	const Contender *c = contender_of_slot(s);

	return s->state == SLOT_GRANTED && c != NULL && c->question != 0 && !c->told && can_be_told(h, s) &&
		zkl_dialect_marks(lock_dialect(s->lock));
}

/* ---- what others write ---- */

/* Who waits and is to be broken goes to the end of the queue. */
static void
note_breaking(Host *h, Slot *s)
{
	int			i;

	s->breaking = true;

	/* What leans on it is not kept, either. */
	for (i = 0; i < MAX_SLOTS; i++)
		if (h->slots[i].owner == s->owner && h->slots[i].lock == s->lock &&
			h->slots[i].token == s->token && s->token != 0)
			h->slots[i].breaking = true;
}

/* All slots whose node it is: one may just be handing it on to another. */
static void
note_written(Host *h, const Entry *entry, const Effect *effect, const Contender *c)
{
	bool		breaking = zkl_node_data_breaking(effect->data, effect->length);
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
	{
		Slot	   *s = &h->slots[i];

		if (!same_uuid(s, &c->uuid))
			continue;
		if (entry->tx.session != h->worker.session.id)
			s->overwritten = entry->tx.zxid;
		if (breaking)
			note_breaking(h, s);
		if (s->state == SLOT_WAITING && is_question(effect))
			SEEN(ASKED_BEFORE_GRANT);
	}
}

void
oracle_marks(const Entry *entry)
{
	size_t		i;

	for (i = 0; i < entry->tx.neffects; i++)
	{
		const Effect *effect = &entry->tx.effects[i];
		const Contender *c = contender_of(effect->path);
		Host	   *h = host_of_session(effect->owner);
		bool		own = h != NULL && entry->tx.session == h->worker.session.id;

		if (!c->counts || h == NULL)
			continue;
		if (own && (effect->kind == OP_SET || effect->kind == OP_CREATE))
			check_name(h, effect, slot_of(h, &c->uuid));
		if (effect->kind != OP_SET)
			continue;
		if (own)
			check_mark(h, effect, slot_of(h, &c->uuid));
		note_written(h, entry, effect, c);
		if (own)
		{
			oracle_told(h, &c->uuid, effect);
			put_by_server(h, slot_of(h, &c->uuid), effect->path->contender, effect,
						  entry->tx.zxid);
		}
		else
			put_by_others(effect->path->contender, effect, entry->tx.zxid);
	}
}

void
oracle_read(Host *h, const Frame *frame)
{
	int			i;

	if (frame->is_event || frame->reply.rc != ZKL_RC_OK ||
		!zkl_manager_ready(h->worker.m))
		return;
	for (i = 0; i < MAX_SLOTS; i++)
	{
		Slot	   *s = &h->slots[i];

		if (s->overwritten == 0 || frame->reply.stat.mzxid != s->overwritten)
			continue;
		s->overwritten = 0;
		s->overwritten_until = base.now;
		if (s->state == SLOT_CACHED)
			SEEN(MARK_OVERWRITTEN);
	}
}
