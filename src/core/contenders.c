/*
 * contenders.c
 *	  What a lock knows of the other contenders in its directory: continuity
 *	  of the numbers, the last listing, and taint.
 *
 * Owns what a lock's last listing told (foreign to tainted_at, and strangers),
 * and the base of its continuity (base_known to base_zxid).  Two other files
 * write there: lock.c makes a new lock and keeps the base of an idle one;
 * reads_reply.c takes base_known back when the directory changes.  The watches
 * and directory_czxid, which lie between these fields, belong to reads.c and
 * reads_reply.c.  Runs in the worker (and in tests), takes no locks, knows
 * neither PostgreSQL nor ZooKeeper.
 */
#include <string.h>

#include "core/contenders.h"
#include "core/memory.h"
#include "core/queue.h"

bool
zkl_contenders_continuous(const ZklLock *lock)
{
	if (ZKL_MUTANT(CONTINUITY_WITHOUT_WATCH))
		return lock->base_known;
	return lock->base_known && lock->directory_watch == ZKL_WATCH_ARMED &&
		lock->directory_czxid < lock->base_zxid;
}

static void
forget_foreign(ZklManager *m, ZklLock *lock)
{
	if (lock->foreign != NULL)
	{
		zkl_memory_release(m, lock->foreign);
		zkl_memory_release(m, lock->names);
	}
	lock->foreign = NULL;
	lock->names = NULL;
	lock->nforeign = 0;
}

void
zkl_contenders_forget(ZklManager *m, ZklLock *lock)
{
	forget_foreign(m, lock);
	lock->strangers = 0;
	lock->unknown_from = 0;
	lock->passed = 0;
	lock->tainted = false;
	lock->base_known = false;
}

bool
zkl_contenders_account(ZklManager *m, ZklLock *lock, ZklSeq seq, int64_t zxid)
{
	bool		next = false;

	if (seq == 0)
	{
		zkl_contenders_forget(m, lock);
		lock->unknown_from = ZKL_SEQ_NONE;
	}
	else if (!zkl_contenders_continuous(lock) || seq <= lock->base_seq)
		lock->unknown_from = 0;
	else if (seq > lock->base_seq + 1 && !ZKL_MUTANT(IGNORE_GAP))
	{
		if (lock->unknown_from > lock->base_seq + 1)
			lock->unknown_from = lock->base_seq + 1;
	}
	else
		next = true;
	m->counters.continuous += next;
	lock->base_known = true;
	lock->base_seq = seq;
	lock->base_zxid = zxid;
	return next;
}

void
zkl_contenders_ahead_gone(ZklManager *m, ZklLock *lock, bool plain)
{
	size_t		i;

	for (i = 0; i < lock->nforeign; i++)
	{
		ZklContender *c = &lock->foreign[i];

		if (strcmp(lock->names + c->name, lock->ahead_name) == 0)
		{
			memmove(c, c + 1, (lock->nforeign - i - 1) * sizeof(*c));
			lock->nforeign--;
			break;
		}
	}
	if (lock->ahead.seq > lock->passed)
		lock->passed = lock->ahead.seq;

	/*
	 * If a writer of Curator or zklock downgrades, it leaves a reader of the
	 * same number behind, created just before the writer goes.
	 */
	if ((lock->dialect == ZKL_DIALECT_CURATOR_RW || lock->ahead.zklock) &&
		lock->ahead.mode == ZKL_EXCLUSIVE && !plain && !ZKL_MUTANT(NO_TAINT))
	{
		lock->tainted = true;
		lock->tainted_at = m->operations.order;
	}
}

void
zkl_contenders_disconnected(ZklLock *lock)
{
	lock->base_known &= ZKL_MUTANT(CONTINUITY_RECONNECT);
}

/* ---- a listing ---- */

void
zkl_contenders_begin(ZklManager *m, ZklLock *lock, const ZklReply *reply)
{
	size_t		bytes = 0,
				i;

	forget_foreign(m, lock);
	lock->strangers = 0;
	for (i = 0; i < reply->nchildren; i++)
		bytes += strlen(reply->children[i]) + 1;
	if (reply->nchildren > 0)
	{
		lock->foreign = zkl_memory_alloc(m, reply->nchildren *
										 sizeof(ZklContender));
		lock->names = zkl_memory_alloc(m, bytes);
	}
}

void
zkl_contenders_add(ZklLock *lock, const ZklContender *contender,
				   const char *name)
{
	ZklContender *c = &lock->foreign[lock->nforeign];
	size_t		at = 0;

	if (lock->nforeign > 0)
		at = c[-1].name + strlen(lock->names + c[-1].name) + 1;
	*c = *contender;
	c->name = (uint32_t) at;
	memcpy(lock->names + at, name, strlen(name) + 1);
	lock->nforeign++;
}

void
zkl_contenders_add_stranger(ZklLock *lock)
{
	lock->strangers++;
}

static ZklSeq
last_own(const ZklLock *lock)
{
	if (zkl_list_empty(&lock->own))
		return -1;
	return zkl_container(ZklRequest, queued, lock->own.head.prev)->node.seq;
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
	zkl_queue_sort(lock->foreign, lock->nforeign);
	last = last_own(lock);
	if (lock->base_known && lock->base_seq > last)
		last = lock->base_seq;
	if (ZKL_MUTANT(CONTINUITY_FROM_LISTED) && lock->nforeign > 0 &&
		lock->foreign[lock->nforeign - 1].seq > lock->base_seq)
		lock->base_seq = lock->foreign[lock->nforeign - 1].seq;
	while (lock->nforeign > 0 && lock->foreign[lock->nforeign - 1].seq > last)
		lock->nforeign--;
	if (lock->nforeign == 0)
		forget_foreign(m, lock);
	lock->unknown_from = last >= 0 ? ZKL_SEQ_NONE : 0;
	lock->passed = 0;
	if (order > lock->tainted_at)
		lock->tainted = false;
}
