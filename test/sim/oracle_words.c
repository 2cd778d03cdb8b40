/*
 * oracle_words.c
 *	  Of the rules, those on words: a word is true for ever, and what a server was
 *	  told, it knows.
 *
 * Owns of which znodes a word was said, and who heard it.  Must not know how the core
 * decides.
 */
#include <string.h>

#include "oracle.h"
#include "sight.h"

typedef struct Word
{
	struct Word *next;
	ZklUuid		znode;
	Time		heard_at[MAX_HOSTS][MAX_LOCKS]; /* for a waiter there; NEVER:
												 * not by this host's worker */
} Word;

#define BUCKETS		256

static Word *words[BUCKETS];

void
oracle_words_begin(void)
{
	memset(words, 0, sizeof(words));
}

static Word *
find(const ZklUuid *znode)
{
	Word	   *w = words[znode->bytes[ZKL_UUID_BYTES - 1]];

	while (w != NULL && !zkl_uuid_equal(&w->znode, znode))
		w = w->next;
	return w;
}

/* Whether its backend may still commit with it, or somebody rely on what he was told */
static bool
is_relied_on(const Host *h, const Slot *s)
{
	return !s->overdue || s->quiet || s->promised_until > host_clock(h);
}

/* Nothing is held by the znode, nor waits there; what is kept or cached is held. */
static void
check_word(const Host *h, int i)
{
	const Slot *s = &h->slots[i];

	if (s->guard || s->guarded || s->lock == hosts.semaphore)
		broken("S11", "host %d says a word of slot %d, of whose kind there is none",
			   h->id, i);
	if (!s->was_granted)
		broken("S11", "host %d says a word of slot %d, which only waited", h->id, i);
	if (s->state == SLOT_WAITING || s->state == SLOT_GRANTED ||
		s->state == SLOT_CACHED || (s->state == SLOT_LOST && is_relied_on(h, s)) ||
		holds(h, i))
		broken("S11", "host %d says a word of slot %d, which is in state %d", h->id,
			   i, (int) s->state);
}

/* Others would look through the new hold to what the old holder waited for. */
static void
check_unpublished(const Host *h, const ZklUuid *znode)
{
	const Path *path = tree_children(SIM_ROOT ZKL_WAITS_DIRECTORY);
	ZklUuid		held;

	for (; path != NULL; path = path->sibling)
		if (path->node[HEAD].exists && zkl_znode_parse_wait(path->name, &held) &&
			zkl_uuid_equal(&held, znode))
			broken("S11", "host %d says a word of a znode that %s tells of", h->id,
				   path->text);
}

void
oracle_word(const Host *h, const ZklUuid *znode)
{
	Word	   *w = find(znode);
	int			i,
				j;

	check_unpublished(h, znode);

	for (i = 0; i < MAX_SLOTS; i++)
		if (same_uuid(&h->slots[i], znode))
			check_word(h, i);
	if (w != NULL)
		return;
	w = take(sizeof(Word));
	w->znode = *znode;
	for (i = 0; i < MAX_HOSTS; i++)
		for (j = 0; j < MAX_LOCKS; j++)
			w->heard_at[i][j] = NEVER;
	w->next = words[znode->bytes[ZKL_UUID_BYTES - 1]];
	words[znode->bytes[ZKL_UUID_BYTES - 1]] = w;
}

void
oracle_heard(Host *h, const ZklPeerMessage *word)
{
	const Slot *waiter = slot_of(h, &word->waiter);
	Word	   *w = find(&word->znode);

	if (w != NULL && waiter != NULL)
		w->heard_at[h->id][waiter->lock] = base.now;
}

void
oracle_hears_nothing(const Host *h)
{
	Word	   *w;
	int			i,
				j;

	for (i = 0; i < BUCKETS; i++)
		for (w = words[i]; w != NULL; w = w->next)
			for (j = 0; j < MAX_LOCKS; j++)
				w->heard_at[h->id][j] = NEVER;
}

Time
oracle_heard_at(const Host *h, const Contender *c)
{
	const Word *w = find(&c->uuid);

	return w != NULL ? w->heard_at[h->id][c->lock] : NEVER;
}

void
oracle_word_holds(const Host *h, int i)
{
	if (find(&h->slots[i].record.uuid) != NULL)
		broken("S11", "host %d slot %d was granted after a word of its znode", h->id, i);
}
