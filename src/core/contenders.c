/*
 * contenders.c
 *	  What a lock knows of the other contenders in its directory.
 *
 * Owns ZklForeign, ZklBase and ZklDeparted: continuity of the numbers, the last
 * listing, and taint; znodes that are in nobody's way; and for people, what is ahead
 * of a request.  Runs in the worker (and in tests), takes no locks, knows neither
 * PostgreSQL nor ZooKeeper.
 */
#include <string.h>

#include "core/contenders.h"
#include "core/host.h"
#include "core/queue.h"

bool
zkl_contenders_continuous(const ZklLock *lock)
{
	if (ZKL_MUTANT(CONTINUITY_WITHOUT_WATCH))
		return lock->base.known;
	return lock->base.known && lock->directory.watch == ZKL_WATCH_ARMED &&
		lock->directory.czxid < lock->base.zxid;
}

static void
forget_foreign(ZklManager *m, ZklLock *lock)
{
	if (lock->foreign.all != NULL)
	{
		zkl_memory_release(m, lock->foreign.all);
		zkl_memory_release(m, lock->foreign.names);
	}
	lock->foreign.all = NULL;
	lock->foreign.names = NULL;
	lock->foreign.n = 0;
}

void
zkl_contenders_forget(ZklManager *m, ZklLock *lock)
{
	forget_foreign(m, lock);
	lock->foreign.strangers = 0;
	lock->foreign.departed = false;
	lock->foreign.unknown_from = 0;
	lock->foreign.passed = 0;
	lock->foreign.tainted = false;
	lock->base.known = false;
}

bool
zkl_contenders_account(ZklManager *m, ZklLock *lock, ZklSeq seq, int64_t zxid)
{
	bool		next = false;
	bool		gap = false;

	if (seq == 0 || (lock->parents.guessed && ZKL_MUTANT(GRANT_AT_ANY_NUMBER)))
	{
		zkl_contenders_forget(m, lock);
		lock->foreign.unknown_from = ZKL_SEQ_NONE;
	}
	else if (!zkl_contenders_continuous(lock) || seq <= lock->base.seq)
		lock->foreign.unknown_from = 0;
	else if (seq > lock->base.seq + 1 && !ZKL_MUTANT(IGNORE_GAP))
	{
		gap = true;
		if (lock->foreign.unknown_from > lock->base.seq + 1)
			lock->foreign.unknown_from = lock->base.seq + 1;
	}
	else
		next = true;
	lock->base = (ZklBase)
	{
		true, seq, zxid, gap
	};
	return next;
}

static void
drop_contender(ZklLock *lock, size_t i)
{
	ZklContender *c = &lock->foreign.all[i];

	ZKL_ASSERT(i < lock->foreign.n);
	memmove(c, c + 1, (lock->foreign.n - i - 1) * sizeof(*c));
	lock->foreign.n--;
}

/* A writer that went on as a reader may be listed under both names. */
bool
zkl_contenders_depart(ZklLock *lock, const ZklUuid *uuid)
{
	size_t		i = lock->foreign.n;
	bool		found = false;

	while (i-- > 0)
	{
		const ZklContender *c = &lock->foreign.all[i];

		if (!c->zklock || !zkl_uuid_equal(&c->uuid, uuid))
			continue;
		drop_contender(lock, i);
		lock->foreign.departed = found = true;
	}
	return found;
}

void
zkl_contenders_ahead_gone(ZklManager *m, ZklLock *lock, bool plain)
{
	const ZklContender *gone = &lock->ahead.contender;
	size_t		i;

	ZKL_ASSERT(lock->ahead.name != NULL);
	for (i = 0; i < lock->foreign.n; i++)
	{
		if (strcmp(lock->foreign.names + lock->foreign.all[i].name,
				   lock->ahead.name) == 0)
		{
			drop_contender(lock, i);
			break;
		}
	}

	/* It was dropped when its word came, and has left no reader behind. */
	if (zkl_departed_is(m, lock, gone))
		return;
	if (gone->seq > lock->foreign.passed)
		lock->foreign.passed = gone->seq;

	/*
	 * If a writer of Curator or zklock downgrades, it leaves a reader of the
	 * same number behind, created just before the writer goes.
	 */
	if ((lock->dialect == ZKL_DIALECT_CURATOR_RW || gone->zklock) &&
		gone->mode == ZKL_EXCLUSIVE && !plain && !ZKL_MUTANT(NO_TAINT))
	{
		lock->foreign.tainted = true;
		lock->foreign.tainted_at = m->operations.order;
	}
}

void
zkl_contenders_disconnected(ZklLock *lock)
{
	lock->base.known &= ZKL_MUTANT(CONTINUITY_RECONNECT);
}

void
zkl_contenders_directory_changed(ZklLock *lock)
{
	lock->base.known &= ZKL_MUTANT(CONTINUITY_WITHOUT_WATCH);
}

void
zkl_contenders_simplify(ZklManager *m, ZklLock *lock)
{
	ZklBase		base = lock->base;

	if (lock->foreign.n == 0 && lock->foreign.strangers == 0 &&
		!lock->foreign.departed &&
		lock->foreign.unknown_from == ZKL_SEQ_NONE && !lock->foreign.tainted)
		return;
	zkl_contenders_forget(m, lock);
	lock->base = base;
}

void
zkl_contenders_untaint(ZklLock *lock)
{
	lock->foreign.tainted = false;
}

/* ---- a listing ---- */

void
zkl_contenders_begin(ZklManager *m, ZklLock *lock, const ZklReply *reply)
{
	size_t		bytes = 0,
				i;

	forget_foreign(m, lock);
	lock->foreign.strangers = 0;
	lock->foreign.departed = false;
	for (i = 0; i < reply->nchildren; i++)
		bytes += strlen(reply->children[i]) + 1;
	if (reply->nchildren > 0)
	{
		lock->foreign.all = zkl_memory_alloc(m, reply->nchildren *
											 sizeof(ZklContender));
		lock->foreign.names = zkl_memory_alloc(m, bytes);
	}
}

void
zkl_contenders_add(ZklLock *lock, const ZklContender *contender,
				   const char *name)
{
	ZklContender *c = &lock->foreign.all[lock->foreign.n];
	size_t		at = 0;

	if (lock->foreign.n > 0)
		at = c[-1].name + strlen(lock->foreign.names + c[-1].name) + 1;
	*c = *contender;
	c->name = (uint32_t) at;
	memcpy(lock->foreign.names + at, name, strlen(name) + 1);
	lock->foreign.n++;
}

void
zkl_contenders_add_stranger(ZklLock *lock)
{
	lock->foreign.strangers++;
}

void
zkl_contenders_drop_departed(const ZklManager *m, ZklLock *lock)
{
	size_t		i,
				n = 0;

	if (ZKL_MUTANT(LISTING_BRINGS_BACK))
		return;
	for (i = 0; i < lock->foreign.n; i++)
	{
		if (zkl_departed_is(m, lock, &lock->foreign.all[i]))
			lock->foreign.departed = true;
		else
			lock->foreign.all[n++] = lock->foreign.all[i];
	}
	lock->foreign.n = n;
}

static ZklSeq
last_own(const ZklLock *lock)
{
	const ZklList *own = &lock->queue.own;

	return zkl_list_empty(own) ? -1 :
		zkl_container(ZklRequest, place.link, own->head.prev)->node.seq;
}

void
zkl_contenders_end(ZklManager *m, ZklLock *lock, uint64_t order)
{
	ZklSeq		last;

	/*
	 * Contenders behind our last create do not concern it, and the next
	 * create learns of them by the gap: a listed name is no base for
	 * continuity.  The last create counts even if its node is gone, because
	 * the next one continues from its number.
	 */
	zkl_queue_sort(lock->foreign.all, lock->foreign.n);
	last = last_own(lock);
	if (lock->base.known && lock->base.seq > last)
		last = lock->base.seq;
	if (ZKL_MUTANT(CONTINUITY_FROM_LISTED) && lock->foreign.n > 0 &&
		lock->foreign.all[lock->foreign.n - 1].seq > lock->base.seq)
		lock->base.seq = lock->foreign.all[lock->foreign.n - 1].seq;
	while (lock->foreign.n > 0 &&
		   lock->foreign.all[lock->foreign.n - 1].seq > last)
		lock->foreign.n--;
	if (lock->foreign.n == 0)
		forget_foreign(m, lock);
	lock->foreign.unknown_from = last >= 0 ? ZKL_SEQ_NONE : 0;
	lock->foreign.passed = 0;
	if (order > lock->foreign.tainted_at)
		lock->foreign.tainted = false;
}

/* ---- what is ahead of a request that waits, as far as it is known ---- */

/* The nearest local request that r waits for, or NULL; counts all ahead. */
static const ZklRequest *
find_own(const ZklRequest *r, int64_t *ahead)
{
	const ZklList *own = &r->lock->queue.own;
	const ZklRequest *nearest = NULL;
	const ZklLink *link;

	for (link = r->place.link.prev; link != &own->head; link = link->prev)
	{
		const ZklRequest *other = zkl_container(ZklRequest, place.link, link);

		++*ahead;
		if (nearest == NULL && other->ring.owner != r->ring.owner &&
			(r->lock->dialect == ZKL_DIALECT_PERMIT ||
			 zkl_mode_conflicts(other->node.mode, r->mode)))
			nearest = other;
	}
	return nearest;
}

/* The same of other clients' */
static const ZklContender *
find_foreign(const ZklRequest *r, int64_t *ahead)
{
	const ZklForeign *foreign = &r->lock->foreign;
	ZklLockMode mode = r->lock->dialect == ZKL_DIALECT_PERMIT ?
	ZKL_EXCLUSIVE : r->mode;
	ptrdiff_t	nearest = zkl_queue_nearest(foreign->all, foreign->n, mode,
											r->node.seq);
	size_t		i;

	for (i = 0; i < foreign->n && foreign->all[i].seq < r->node.seq; i++)
		++* ahead;
	return nearest < 0 ? NULL : &foreign->all[nearest];
}

static void
tell_queued(const ZklLock *lock, const ZklRequest *own, const ZklContender *foreign,
			ZklQueued *queued)
{
	memset(queued, 0, sizeof(*queued));
	queued->request = foreign == NULL && own != NULL ? (int64_t) own->id : -1;
	if (foreign == NULL)
		return;
	queued->znode = lock->foreign.names + foreign->name;
	if (lock->ahead.data == NULL || strcmp(queued->znode, lock->ahead.name) != 0)
		return;
	queued->data = lock->ahead.data;
	queued->data_length = lock->ahead.data_length;
}

/* The one that has the lock, if the queue is known */
static void
tell_first(const ZklLock *lock, ZklQueued *first)
{
	const ZklRequest *own = zkl_list_empty(&lock->queue.own) ? NULL :
	zkl_container(ZklRequest, place.link, lock->queue.own.head.next);
	const ZklContender *foreign = lock->foreign.n > 0 ? lock->foreign.all : NULL;

	if (own != NULL && foreign != NULL && own->node.seq < foreign->seq)
		foreign = NULL;
	tell_queued(lock, own, foreign, first);
}

bool
zkl_contenders_nearest(const ZklRequest *r, ZklNearest *nearest)
{
	const ZklRequest *own;
	const ZklContender *foreign;

	if (r->demand != ZKL_DEMAND_WAITING || !zkl_list_linked(&r->place.link))
		return false;
	nearest->place = 1;
	own = find_own(r, &nearest->place);
	foreign = find_foreign(r, &nearest->place);
	if (own != NULL && foreign != NULL && foreign->seq < own->node.seq)
		foreign = NULL;
	tell_queued(r->lock, own, foreign, &nearest->nearest);
	tell_first(r->lock, &nearest->first);
	return nearest->nearest.znode != NULL || nearest->nearest.request >= 0;
}

/* ---- departed ---- */

/*
 * Znodes of other servers that support no hold, and never will again.
 *
 * The ids belong to the manager and not to a lock: a lock forgets all with its last
 * request, and the next try would be denied for the remains.  But somebody may copy
 * a name into the directory of another lock, so each counts only in the lock whose
 * waiter heard the word.  No znode has the id of another one; if ZooKeeper gave a
 * session id twice, the numbers of the workers' starts would still differ, except
 * once in 262 144 cases.  So an entry stays true, through elections too.  If the
 * table is full, the oldest entry goes: if that znode is listed again, it counts as
 * ahead until it is gone.
 */

static ZklList *
departed_bucket(const ZklManager *m, const ZklUuid *uuid)
{
	return zkl_table_bucket(&m->departed->by_uuid,
							zkl_table_hash(uuid->bytes, ZKL_UUID_BYTES));
}

/* One directory can have locks of several dialects. */
static uint64_t
hash_lock(const ZklLock *lock)
{
	return zkl_table_hash(lock->path, lock->path_length) + lock->dialect;
}

static void
make_departed(ZklManager *m)
{
	m->departed = zkl_memory_alloc(m, sizeof(ZklDeparted));
	memset(m->departed, 0, sizeof(ZklDeparted));
	zkl_memory_make_table(m, &m->departed->by_uuid, ZKL_MAX_DEPARTED);
}

void
zkl_departed_free(ZklManager *m)
{
	if (m->departed == NULL)
		return;
	zkl_memory_release(m, m->departed->by_uuid.buckets);
	zkl_memory_release(m, m->departed);
	m->departed = NULL;
}

bool
zkl_departed_has(const ZklManager *m, const ZklLock *lock, const ZklUuid *uuid)
{
	ZklLink    *link,
			   *after;

	if (m->departed == NULL)
		return false;
	zkl_foreach(link, after, departed_bucket(m, uuid))
	{
		const ZklDepartedId *id = zkl_container(ZklDepartedId, by_uuid, link);

		if (zkl_uuid_equal(&id->uuid, uuid) &&
			(id->lock == hash_lock(lock) || ZKL_MUTANT(DEPARTED_ANYWHERE)))
			return true;
	}
	return false;
}

void
zkl_departed_note(ZklManager *m, const ZklLock *lock, const ZklUuid *uuid)
{
	ZklDepartedId *id;

	if (m->departed == NULL)
		make_departed(m);
	id = &m->departed->all[m->departed->next];
	m->departed->next = (m->departed->next + 1) % ZKL_MAX_DEPARTED;
	zkl_list_remove(&id->by_uuid);
	id->uuid = *uuid;
	id->lock = hash_lock(lock);
	zkl_list_append(departed_bucket(m, uuid), &id->by_uuid);
}
