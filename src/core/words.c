/*
 * words.c
 *	  What servers tell each other of their znodes, without ZooKeeper.
 *
 * Owns ZklWords.  Runs in the worker (and in tests), takes no locks, knows neither
 * PostgreSQL nor ZooKeeper.
 *
 * ZooKeeper fixes the order of a queue when it creates a znode, and judges life and
 * death.  A waiter only has to learn that a znode ahead of it is in its way no more,
 * and the server that made that znode can say so itself, before ZooKeeper has deleted
 * it.  A message that is lost or late costs nothing but that time.
 *
 * A word is true for ever: shared memory says that the demand is over before the word
 * is sent, and the next worker has another session.  It takes exactly one znode away, and the ordinary decision follows, with
 * all that it wants: listing, taint, lease.
 *
 * There is no word for the following.  A permit: which of them are held is counted in
 * ZooKeeper.  A lock under which zklock itself reads ZooKeeper: a word overtakes the
 * log, and the new holder would read what was before.  A hold that was broken, as far as
 * this worker knows: its waiters see the end of that in ZooKeeper.  A writer that goes on
 * as a reader: the reader is still in the way of others.  A znode whose id is
 * published for the search for deadlocks: others would look through the new hold to a
 * wait that is over.  A wait: behind it another one may be published, whose server takes
 * that back late if it has lost ZooKeeper, and others would look through both to a holder.
 */
#include "core/actions.h"
#include "core/askers.h"
#include "core/batches.h"
#include "core/contenders.h"
#include "core/departed.h"
#include "core/downgrade.h"
#include "core/hooks.h"
#include "core/lock.h"
#include "core/node.h"
#include "core/words.h"

#define MOST_ASKED	8			/* znodes of one queue at a time */

/* ---- what we ask, and hear ---- */

/* Those that wait already have found nobody to ask. */
void
zkl_words_set_peers(ZklManager *m, bool peers)
{
	uint32_t	i;

	m->words.peers = peers;
	for (i = 0; i < m->config.max_requests && peers; i++)
	{
		ZklLock    *lock = m->requests.all[i].lock;

		if (lock == NULL || lock->queue.waiting != &m->requests.all[i])
			continue;
		zkl_askers_ask_again(lock);
		zkl_lock_touch(m, lock);
	}
}

void
zkl_words_ask(ZklManager *m, ZklLock *lock, const ZklRequest *r)
{
	ZklPeerMessage ask = {.waiter = r->node.uuid};
	size_t		i = lock->foreign.n;
	int			left = MOST_ASKED;

	if (!m->words.peers || r->guard ||
		(!lock->asks_due && lock->ahead.watch != ZKL_WATCH_WANTED))
		return;
	zkl_askers_asked(lock);
	while (i-- > 0 && left > 0)
	{
		const ZklContender *c = &lock->foreign.all[i];

		if (!c->zklock || c->seq >= r->node.seq ||
			!zkl_mode_conflicts(c->mode, r->mode))
			continue;
		ask.znode = c->uuid;
		ask.session = zkl_uuid_session(&c->uuid);
		if (ask.session == m->session.id)
			continue;
		zkl_actions_add(m, ZKL_ACTION_ASK)->peer = ask;
		m->words.asks++;
		left--;
	}
}

/* Only the server that made a znode may say anything about it. */
static bool
is_owner(const ZklPeerMessage *word)
{
	return zkl_uuid_session(&word->znode) == word->session ||
		ZKL_MUTANT(SENDER_NOT_OWNER);
}

void
zkl_words_heard(ZklManager *m, const ZklPeerMessage *word)
{
	ZklRequest *waiter = zkl_node_find(m, &word->waiter);

	if (waiter == NULL || !is_owner(word) ||
		zkl_departed_has(m, waiter->lock, &word->znode))
	{
		m->words.late++;
		return;
	}
	m->words.taken++;
	if (!ZKL_MUTANT(DEPARTED_PER_LOCK))
		zkl_departed_note(m, waiter->lock, &word->znode);
	if (zkl_contenders_depart(waiter->lock, &word->znode))
		zkl_lock_touch(m, waiter->lock);
}

/* ---- what others ask, and we say ---- */

static void
say(ZklManager *m, const ZklPeerMessage *word)
{
	zkl_actions_add(m, ZKL_ACTION_WORD)->peer = *word;
	m->words.said++;
}

ZklRequest *
zkl_words_asked(ZklManager *m, const ZklPeerMessage *ask)
{
	ZklRequest *r = zkl_node_find(m, &ask->znode);

	if (!m->words.peers || r == NULL)
		return NULL;
	zkl_askers_add(r, ask);
	if (r->askers.over)
	{
		say(m, ask);
		zkl_batches_pace_hurry(m, r);
		return NULL;
	}
	if (r->demand == ZKL_DEMAND_GRANTED)
		zkl_actions_add(m, ZKL_ACTION_ASKED)->request = r->id;
	return r;
}

bool
zkl_words_may_be_said(const ZklManager *m, const ZklRequest *r)
{
	return m->words.peers && r->lock->dialect != ZKL_DIALECT_PERMIT &&
		(!r->guard || ZKL_MUTANT(WORD_FOR_GUARD)) &&
		(r->demand == ZKL_DEMAND_GRANTED || ZKL_MUTANT(WORD_FOR_WAIT)) &&
		!r->broken &&
		!zkl_downgrade_is_on(r) &&
		(!zkl_hooks_may_tell(m, &r->node.uuid) || ZKL_MUTANT(WORD_FOR_PUBLISHED));
}

void
zkl_words_say(ZklManager *m, ZklRequest *r)
{
	uint32_t	i;

	ZKL_ASSERT(r->demand != ZKL_DEMAND_GRANTED || ZKL_MUTANT(WORD_BEFORE_EPILOGUE));
	zkl_askers_set_over(r);
	for (i = 0; i < r->askers.n; i++)
		say(m, &r->askers.all[i]);
}
