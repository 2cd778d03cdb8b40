/*
 * lock.c
 *	  One lock, its local queue, and what servers tell each other of its znodes.
 *
 * Owns ZklLocks, ZklQueue, ZklPlace, ZklWords, and the fields of ZklLock that are in
 * no group, but for cached, checks_holds, pins and reader: the locks of a manager,
 * and the local queue of each.  contenders.c keeps what we know of a directory;
 * decide.c draws the conclusions from both.  Runs in the worker (and in tests),
 * takes no locks, knows neither PostgreSQL nor ZooKeeper.
 */
#include <string.h>

#include "core/contenders.h"
#include "core/host.h"
#include "core/lock.h"
#include "core/node.h"
#include "core/owner.h"
#include "core/reads.h"
#include "core/write.h"

void
zkl_lock_init_all(ZklManager *m)
{
	zkl_memory_make_table(m, &m->locks.by_path,
						  (size_t) m->config.max_requests +
						  m->config.max_directories);
	zkl_list_init(&m->locks.dirty);
	zkl_list_init(&m->locks.idle);
}

void
zkl_lock_free_all(ZklManager *m)
{
	size_t		i;
	ZklLock    *lock;
	ZklLink    *link,
			   *after;

	for (i = 0; i < m->locks.by_path.nbuckets; i++)
	{
		zkl_foreach(link, after, &m->locks.by_path.buckets[i])
		{
			lock = zkl_container(ZklLock, by_path, link);
			zkl_contenders_forget(m, lock);
			zkl_reads_forget(m, lock);
			zkl_memory_release(m, lock);
		}
	}
	while ((lock = m->locks.spare) != NULL)
	{
		m->locks.spare = (ZklLock *) (void *) lock->by_path.next;
		zkl_memory_release(m, lock);
	}
	zkl_memory_release(m, m->locks.by_path.buckets);
}

ZklLock *
zkl_lock_find(ZklManager *m, const char *path, size_t length,
			  ZklDialect dialect)
{
	ZklList    *bucket = zkl_table_bucket(&m->locks.by_path,
										  zkl_table_hash(path, length));
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, bucket)
	{
		ZklLock    *lock = zkl_container(ZklLock, by_path, link);

		if (lock->path_length == length && lock->dialect == dialect &&
			memcmp(lock->path, path, length) == 0)
			return lock;
	}
	return NULL;
}

static ZklLock *
make_lock(ZklManager *m, const char *path, size_t length, ZklDialect dialect)
{
	ZklLock    *lock = m->locks.spare;

	if (lock != NULL)
		m->locks.spare = (ZklLock *) lock->by_path.next;
	else
		lock = zkl_memory_alloc(m, sizeof(ZklLock));
	memset(lock, 0, sizeof(ZklLock));
	memcpy(lock->path, path, length + 1);
	lock->path_length = length;
	lock->dialect = dialect;
	zkl_list_init(&lock->requests.all);
	zkl_list_init(&lock->queue.own);
	zkl_list_init(&lock->tries.all);
	zkl_list_append(zkl_table_bucket(&m->locks.by_path, zkl_table_hash(path, length)),
					&lock->by_path);
	return lock;
}

ZklLock *
zkl_lock_get(ZklManager *m, const char *name, ZklDialect dialect)
{
	char		path[ZKL_MAX_DIRECTORY + 1];
	size_t		root = strlen(m->root);
	size_t		length = root + strlen(name);
	ZklLock    *lock;

	memcpy(path, m->root, root);
	memcpy(path + root, name, length - root + 1);
	lock = zkl_lock_find(m, path, length, dialect);
	if (lock == NULL)
	{
		lock = make_lock(m, path, length, dialect);
		zkl_directories_return(m, lock);
		return lock;
	}
	if (zkl_list_linked(&lock->idle))
	{
		zkl_list_remove(&lock->idle);
		m->locks.nidle--;
	}
	return lock;
}

/*
 * Whether a lock in another dialect has the same directory.  If so, its watch
 * must stay.  A watch that no lock needs does no harm.
 */
static bool
is_shared(ZklManager *m, const ZklLock *lock)
{
	ZklDialect	other;

	for (other = 0; other < ZKL_DIALECTS; other++)
	{
		if (other != lock->dialect &&
			zkl_lock_find(m, lock->path, lock->path_length, other) != NULL)
			return true;
	}
	return false;
}

static void
free_lock(ZklManager *m, ZklLock *lock)
{
	ZKL_ASSERT(lock->requests.n == 0 && lock->pins == 0);
	ZKL_ASSERT(lock->queue.waiting == NULL && lock->queue.nheld == 0);
	ZKL_ASSERT(lock->cached == NULL);
	zkl_directories_leave(m, lock);
	zkl_reads_unwatch_directory(m, lock, is_shared(m, lock));
	zkl_reads_forget(m, lock);
	zkl_contenders_forget(m, lock);
	if (zkl_list_linked(&lock->idle))
		m->locks.nidle--;
	zkl_list_remove(&lock->idle);
	zkl_list_remove(&lock->dirty);
	zkl_list_remove(&lock->by_path);
	lock->by_path.next = (ZklLink *) (void *) m->locks.spare;
	m->locks.spare = lock;
}

void
zkl_lock_settle_idle(ZklManager *m, ZklLock *lock)
{
	if (lock->requests.n > 0)
		return;
	zkl_reads_unwatch_ahead(m, lock);
	if (lock->pins > 0)
		return;
	if (!zkl_contenders_continuous(lock))
	{
		free_lock(m, lock);
		return;
	}

	/*
	 * Only the simple case is worth its memory: no other client was there. In
	 * any other case the next request lists.
	 */
	zkl_contenders_simplify(m, lock);
	zkl_reads_stop(lock);
	if (!zkl_list_linked(&lock->idle))
	{
		zkl_list_append(&m->locks.idle, &lock->idle);
		m->locks.nidle++;
	}
	if (m->locks.nidle > m->config.max_directories)
		free_lock(m, zkl_container(ZklLock, idle, m->locks.idle.head.next));
}

void
zkl_lock_touch(ZklManager *m, ZklLock *lock)
{
	if (!zkl_list_linked(&lock->dirty))
		zkl_list_append(&m->locks.dirty, &lock->dirty);
}

ZklLock *
zkl_lock_next_touched(ZklManager *m)
{
	ZklLink    *link = m->locks.dirty.head.next;

	if (zkl_list_empty(&m->locks.dirty))
		return NULL;
	zkl_list_remove(link);
	return zkl_container(ZklLock, dirty, link);
}

/* ---- the end of the directory's counter ---- */

void
zkl_lock_counter_ended(ZklLock *lock)
{
	lock->counter = ZKL_COUNTER_ENDED;
}

void
zkl_lock_counter_good(ZklLock *lock)
{
	lock->counter = ZKL_COUNTER_GOOD;
}

bool
zkl_lock_has_node(const ZklLock *lock)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &lock->requests.all)
	{
		if (zkl_node_was_sent(zkl_container(ZklRequest, all, link)))
			return true;
	}
	return false;
}

void
zkl_lock_left(ZklManager *m, ZklLock *lock)
{
	if (lock->counter != ZKL_COUNTER_ENDED || zkl_lock_has_node(lock))
		return;
	lock->counter = ZKL_COUNTER_RESET;
	zkl_operations_send(m, ZKL_OP_RESET, lock, NULL, ZKL_SEND_DELETE,
						zkl_actions_join(m, lock->path, "", ""));
}

/* ---- the local queue ---- */

static ZklRequest *
next_waiting(ZklLock *lock, ZklLink *from)
{
	for (; from != &lock->queue.own.head; from = from->next)
	{
		ZklRequest *r = zkl_container(ZklRequest, place.link, from);

		if (r->demand == ZKL_DEMAND_WAITING)
			return r;
	}
	return NULL;
}

/*
 * The first that waits watches its own node; the others do so once they are
 * first.
 */
static void
set_waiting(ZklManager *m, ZklLock *lock, ZklRequest *r)
{
	m->locks.nwaiting += (r != NULL) - (lock->queue.waiting != NULL);
	lock->queue.waiting = r;
	zkl_askers_ask_again(lock);
	if (r != NULL && r->look.watch == ZKL_WATCH_NONE &&
		!zkl_list_linked(&r->look.unwatched))
		zkl_look_later(m, r, r->look.unseen_since);
}

/* If r is the first that waits, the next one is so from now on. */
static void
leave_front(ZklManager *m, ZklLock *lock, const ZklRequest *r)
{
	if (lock->queue.waiting != r)
		return;
	if (ZKL_MUTANT(TAINT_PER_REQUEST))
		zkl_contenders_untaint(lock);
	set_waiting(m, lock, next_waiting(lock, r->place.link.next));
}

static void
count_hold(ZklLock *lock, const ZklRequest *r)
{
	lock->queue.nheld++;
	lock->queue.nexclusive += r->node.mode == ZKL_EXCLUSIVE;
}

void
zkl_lock_enqueue(ZklManager *m, ZklLock *lock, ZklRequest *r)
{
	ZklLink    *where = lock->queue.own.head.prev;

	ZKL_ASSERT(r->lock == lock && r->node.state == ZKL_NODE_EXISTS);
	ZKL_ASSERT(r->demand == ZKL_DEMAND_WAITING || r->demand == ZKL_DEMAND_GRANTED);
	while (where != &lock->queue.own.head &&
		   zkl_container(ZklRequest, place.link, where)->node.seq > r->node.seq)
		where = where->prev;
	zkl_list_insert_after(&r->place.link, where);
	m->locks.nqueued++;
	if (r->demand == ZKL_DEMAND_GRANTED)
	{
		count_hold(lock, r);
		return;
	}
	if (lock->queue.waiting == NULL ||
		r->node.seq < lock->queue.waiting->node.seq)
		set_waiting(m, lock, r);
	r->place.upgrade = zkl_siblings_upgraded(r) != NULL;
	if (r->place.upgrade)
		lock->queue.nupgrades++;
	ZKL_HOOKS(m, queued, r);
}

void
zkl_lock_dequeue(ZklManager *m, ZklLock *lock, ZklRequest *r)
{
	ZKL_ASSERT(r->lock == lock && zkl_list_linked(&r->place.link));
	ZKL_ASSERT(m->locks.nqueued > 0);
	ZKL_ASSERT(r->demand != ZKL_DEMAND_GRANTED || lock->queue.nheld > 0);
	ZKL_ASSERT(!r->place.upgrade || lock->queue.nupgrades > 0);
	if (r->demand == ZKL_DEMAND_GRANTED)
	{
		lock->queue.nheld--;
		lock->queue.nexclusive -= r->node.mode == ZKL_EXCLUSIVE;
	}
	else if (r->place.upgrade)
		lock->queue.nupgrades--;
	r->place.upgrade = false;
	leave_front(m, lock, r);
	zkl_list_remove(&r->place.link);
	zkl_look_left_queue(r);
	ZKL_HOOKS(m, waited, r);
	ZKL_HOOKS(m, hold_ended, r);
	m->locks.nqueued--;
}

void
zkl_lock_hold(ZklManager *m, ZklLock *lock, ZklRequest *r)
{
	ZKL_ASSERT(r->lock == lock && zkl_list_linked(&r->place.link));
	count_hold(lock, r);
	if (r->place.upgrade)
		lock->queue.nupgrades--;
	r->place.upgrade = false;
	leave_front(m, lock, r);
	ZKL_HOOKS(m, waited, r);
}

void
zkl_lock_downgrade(ZklLock *lock, ZklRequest *r)
{
	ZKL_ASSERT(r->demand == ZKL_DEMAND_GRANTED && lock->queue.nexclusive > 0);
	lock->queue.nexclusive--;
	zkl_node_set_shared(r);
}

bool
zkl_lock_blocked_by_holder(const ZklManager *m, const ZklLock *lock,
						   const ZklRequest *r)
{
	const ZklLink *link;

	if (lock->dialect == ZKL_DIALECT_PERMIT)
		return false;
	if (r->mode == ZKL_EXCLUSIVE)
		return lock->queue.nheld > zkl_siblings_count(m, r);
	if (lock->queue.nexclusive == 0)
		return false;
	for (link = lock->queue.own.head.next; link != &lock->queue.own.head;
		 link = link->next)
	{
		const ZklRequest *other = zkl_container(ZklRequest, place.link, link);

		if (other->demand == ZKL_DEMAND_GRANTED &&
			other->ring.owner != r->ring.owner &&
			zkl_node_mode(other) == ZKL_EXCLUSIVE)
			return true;
	}
	return false;
}

/* ---- words: what servers tell each other of their znodes, without ZooKeeper ---- */

/*
 * ZooKeeper fixes the order of a queue when it creates a znode, and judges life and
 * death.  A waiter only has to learn that a znode ahead of it is in its way no more,
 * and the server that made that znode can say so itself, before ZooKeeper has deleted
 * it.  A message that is lost or late costs nothing but that time.
 *
 * A word is true for ever: shared memory says that the demand is over before the word
 * is sent, and the next worker has another session.  It takes exactly one znode away,
 * and the ordinary decision follows, with all that it wants: listing, taint, lease.
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
