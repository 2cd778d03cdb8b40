/*
 * hold.c
 *	  The table of locks that this backend holds, and how often.
 *
 * Owns the table, which is private to the backend: a hash table of locks, and
 * a list of holds for each lifetime.  Run by backends.  Takes no locks of its
 * own; of shared memory it only looks at slots.
 *
 * Must not know when a hold ends, nor how a lock is requested.
 *
 * What removes or lessens a hold runs in transaction callbacks and on exit: it
 * allocates nothing and cannot fail.  A hold that has not begun is prepared and
 * not held; if an error leaves it behind, the next request uses it again.
 */
#include "postgres.h"

#include "access/xact.h"
#include "backend/backend_slot.h"
#include "backend/hold.h"
#include "backend/refusal.h"
#include "common/hashfn.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#define MAX_COUNT	PG_INT32_MAX

dlist_head	zkl_holds[ZKL_HELD_LIFETIMES] = {
	DLIST_STATIC_INIT(zkl_holds[0]),
	DLIST_STATIC_INIT(zkl_holds[1])
};

static HTAB *table = NULL;
static int	nholds = 0;			/* in both lists */

static void
make_key(ZklHeldKey *key, const ZklTarget *lock, uint32 permit)
{
	memset(key, 0, sizeof(*key));
	strlcpy(key->path, lock->path, sizeof(key->path));
	key->dialect = lock->dialect;
	key->permit = permit;
}

int
zkl_hold_count(void)
{
	return nholds;
}

/* The head of a list stands before its first node, and behind its last one. */
ZklHold *
zkl_hold_next(const ZklHold *hold)
{
	const dlist_node *node = hold == NULL ? &zkl_holds[ZKL_LIFETIME_SESSION].head :
	&hold->link;

	if (node->next == &zkl_holds[ZKL_LIFETIME_SESSION].head)
		node = &zkl_holds[ZKL_LIFETIME_TRANSACTION].head;
	return node->next == &zkl_holds[ZKL_LIFETIME_TRANSACTION].head ? NULL :
		dlist_container(ZklHold, link, node->next);
}

ZklHeldLock *
zkl_hold_lookup(const ZklTarget *lock)
{
	ZklHeldKey	key;

	if (table == NULL)
		return NULL;
	make_key(&key, lock, 0);
	return hash_search(table, &key, HASH_FIND, NULL);
}

ZklHold *
zkl_hold_find(const ZklTarget *lock, ZklLockMode mode, ZklLifetime lifetime)
{
	return zkl_hold_in(zkl_hold_lookup(lock), mode, lifetime);
}

void
zkl_hold_check_lock(ZklHeldLock *held)
{
	int			i;

	for (i = 0; i < ZKL_HOLDS_PER_LOCK; i++)
	{
		ZklHold    *hold = zkl_hold_nth(held, i);
		ZklError	error;

		if (hold != NULL && !zkl_hold_is_good(hold, &error))
			zkl_hold_raise_lost(hold, error);
	}
}

int
zkl_hold_sibling(ZklHeldLock *held)
{
	int			i;

	for (i = 0; i < ZKL_HOLDS_PER_LOCK; i++)
	{
		ZklHold    *hold = zkl_hold_nth(held, i);
		ZklError	error;

		if (hold != NULL && zkl_hold_is_good(hold, &error))
			return hold->grant.slotno;
	}
	return -1;
}

/* Names are short, the room for them is not. */
static uint32
hash_held_key(const void *key, Size keysize)
{
	const ZklHeldKey *k = key;

	return hash_bytes((const unsigned char *) k->path,
					  (int) strlen(k->path)) + k->dialect + k->permit * 16;
}

static void
make_held_table(void)
{
	HASHCTL		ctl = {0};

	ctl.keysize = sizeof(ZklHeldKey);
	ctl.entrysize = sizeof(ZklHeldLock);
	ctl.hash = hash_held_key;
	ctl.match = memcmp;
	ctl.hcxt = TopMemoryContext;
	table = hash_create("zklock held locks", 16, &ctl, HASH_ELEM | HASH_FUNCTION |
						HASH_COMPARE | HASH_CONTEXT);
}

/* Sees to it that the current subtransaction has a place to count in. */
static void
open_scope(ZklHold *hold)
{
	SubTransactionId subid = GetCurrentSubTransactionId();
	ZklScope   *scope;

	if (hold->lifetime != ZKL_LIFETIME_TRANSACTION ||
		(hold->scope != NULL && hold->scope->subid == subid))
		return;
	scope = MemoryContextAlloc(TopMemoryContext, sizeof(ZklScope));
	scope->subid = subid;
	scope->count = 0;
	scope->outer = hold->scope;
	hold->scope = scope;
}

static void
close_scope(ZklHold *hold)
{
	ZklScope   *scope = hold->scope;

	hold->scope = scope->outer;
	pfree(scope);
}

static void
free_parts(ZklHold *hold)
{
	while (hold->scope != NULL)
		close_scope(hold);
	if (hold->name != NULL)
		pfree(hold->name);
	hold->name = NULL;
}

/* Each permit of a semaphore has a number of its own; locks have none. */
static uint32
next_permit_number(const ZklTarget *lock)
{
	static uint32 last = 0;

	if (lock->dialect != ZKL_DIALECT_PERMIT)
		return 0;
	if (++last == 0)
		last = 1;
	return last;
}

ZklHold *
zkl_hold_prepare(const ZklLockRequest *request)
{
	ZklHeldKey	key;
	ZklHeldLock *held;
	ZklHold    *hold;
	bool		found;

	if (table == NULL)
		make_held_table();
	make_key(&key, &request->lock, next_permit_number(&request->lock));
	held = hash_search(table, &key, HASH_ENTER, &found);
	if (!found)
		memset(held->holds, 0, sizeof(held->holds));
	hold = &held->holds[ZKL_HOLD_NUMBER(request->mode, request->lifetime)];
	Assert(!hold->begun);
	free_parts(hold);
	memset(hold, 0, sizeof(*hold));
	hold->lock = held;
	hold->mode = request->mode;
	hold->lifetime = request->lifetime;
	hold->within_call = request->within_call;
	hold->lost = ZKL_ERROR_NONE;
	hold->name = MemoryContextStrdup(TopMemoryContext, request->lock.name);
	open_scope(hold);
	return hold;
}

static void
count_once(ZklHold *hold)
{
	hold->count++;
	if (hold->scope != NULL)
		hold->scope->count++;
}

void
zkl_hold_begin(ZklHold *hold, const ZklGrant *grant)
{
	Assert(!hold->begun);
	hold->grant = *grant;
	hold->begun = true;
	nholds++;
	count_once(hold);
	dlist_push_head(&zkl_holds[hold->lifetime], &hold->link);
}

void
zkl_hold_open(ZklHold *hold)
{
	if (hold->count >= MAX_COUNT)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("distributed lock \"%s\" was acquired too many times",
						hold->name)));
	open_scope(hold);
}

void
zkl_hold_again(ZklHold *hold)
{
	count_once(hold);
	zkl_backend_slot_set_holds(hold->grant.slotno, hold->count);
}

/* Takes a hold, begun or only prepared, off the table and frees it. */
static void
drop_hold(ZklHold *hold)
{
	ZklHeldLock *held = hold->lock;
	ZklHeldKey	key = held->key;
	int			i;

	if (hold->begun)
	{
		dlist_delete(&hold->link);
		nholds--;
	}
	hold->begun = false;
	free_parts(hold);
	for (i = 0; i < ZKL_HOLDS_PER_LOCK; i++)
	{
		if (held->holds[i].name != NULL)
			return;
	}
	(void) hash_search(table, &key, HASH_REMOVE, NULL);
}

void
zkl_hold_drop_prepared(ZklHold **holds, int n)
{
	while (n > 0)
		drop_hold(holds[--n]);
}

void
zkl_hold_end(ZklHold *hold)
{
	(void) zkl_backend_slot_release(hold->grant.slotno);
	drop_hold(hold);
}

void
zkl_hold_uncount(ZklHold *hold)
{
	if (hold->count == 1)
	{
		zkl_hold_end(hold);
		return;
	}
	hold->count--;
	if (hold->scope != NULL)
		hold->scope->count--;
	zkl_backend_slot_set_holds(hold->grant.slotno, hold->count);
}

void
zkl_hold_end_all(ZklLifetime lifetime)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &zkl_holds[lifetime])
		zkl_hold_end(dlist_container(ZklHold, link, iter.cur));
}

/* Counted as any loss, so that the checks look at what is held. */
void
zkl_hold_lose(ZklHold *hold, ZklError error)
{
	hold->lost = error;
	pg_atomic_fetch_add_u64(&zkl_control->ctl_losses, 1);
}

bool
zkl_hold_is_good(const ZklHold *hold, ZklError *error)
{
	if (hold->lost != ZKL_ERROR_NONE)
	{
		*error = hold->lost;
		return false;
	}
	return zkl_backend_slot_is_held(hold->grant.slotno, hold->grant.generation,
									error) &&
		zkl_lease_is_current(hold->grant.generation);
}

void
zkl_hold_raise_lost(ZklHold *hold, ZklError error)
{
	hold->told = true;
	zkl_refusal_raise_lost(hold->name, zkl_hold_release_function(hold), error);
}

/* Of several holds on one lock, the latest grant has the highest token */
bool
zkl_hold_token(const ZklTarget *lock, int64 *token)
{
	ZklHeldLock *held = zkl_hold_lookup(lock);
	bool		found = false;
	int			i;

	for (i = 0; i < ZKL_HOLDS_PER_LOCK; i++)
	{
		ZklHold    *hold = zkl_hold_nth(held, i);
		ZklError	error;

		if (hold == NULL || !zkl_hold_is_good(hold, &error))
			continue;
		if (!found || hold->grant.token > *token)
			*token = hold->grant.token;
		found = true;
	}
	return found;
}

bool
zkl_hold_has_lapsed(const ZklHold *hold)
{
	return !zkl_lease_is_valid(hold->grant.generation);
}

ZklHold *
zkl_hold_named(const char *name)
{
	dlist_iter	iter;

	dlist_foreach(iter, &zkl_holds[ZKL_LIFETIME_SESSION])
	{
		ZklHold    *hold = dlist_container(ZklHold, link, iter.cur);

		if (strcmp(hold->name, name) == 0)
			return hold;
	}
	return NULL;
}

const char *
zkl_hold_release_function(const ZklHold *hold)
{
	if (hold->lifetime == ZKL_LIFETIME_TRANSACTION)
		return NULL;
	switch ((ZklDialect) hold->lock->key.dialect)
	{
		case ZKL_DIALECT_LATCH:
			return "zk_resign";
		case ZKL_DIALECT_PERMIT:
			return "zk_release_permits";
		case ZKL_DIALECT_MEMBER:
			return "zk_barrier_leave";
		default:
			if (hold->within_call)
				return NULL;
			return hold->mode == ZKL_SHARED ? "zk_unlock_shared" : "zk_unlock";
	}
}

bool
zkl_hold_is_covered(const ZklHold *hold)
{
	int			i;

	for (i = 0; i < ZKL_HOLDS_PER_LOCK; i++)
	{
		ZklHold    *other = zkl_hold_nth(hold->lock, i);
		ZklError	error;

		if (other != NULL && other != hold &&
			(other->mode == ZKL_EXCLUSIVE || other->mode == hold->mode) &&
			zkl_hold_is_good(other, &error))
			return true;
	}
	return false;
}

void
zkl_hold_commit_scopes(SubTransactionId subid, SubTransactionId parent)
{
	dlist_iter	iter;

	dlist_foreach(iter, &zkl_holds[ZKL_LIFETIME_TRANSACTION])
	{
		ZklHold    *hold = dlist_container(ZklHold, link, iter.cur);
		ZklScope   *scope = hold->scope;

		if (scope == NULL || scope->subid != subid)
			continue;
		if (scope->outer != NULL && scope->outer->subid == parent)
		{
			scope->outer->count += scope->count;
			close_scope(hold);
		}
		else
			scope->subid = parent;
	}
}

void
zkl_hold_abort_scopes(SubTransactionId subid)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &zkl_holds[ZKL_LIFETIME_TRANSACTION])
	{
		ZklHold    *hold = dlist_container(ZklHold, link, iter.cur);

		if (hold->scope == NULL || hold->scope->subid != subid)
			continue;
		hold->count -= hold->scope->count;
		close_scope(hold);
		if (hold->count == 0)
			zkl_hold_end(hold);
		else
			zkl_backend_slot_set_holds(hold->grant.slotno, hold->count);
	}
}
