/*
 * hold.c
 *	  The locks that this backend holds: how often, and what calls do with them.
 *
 * Owns the table, which is private to the backend: a hash table of locks, and a list
 * of holds for each lifetime; s_promised_until of slots, with worker_slot.c, which
 * shortens it.  Run by backends.  Takes no locks of its own, but slots' mutexes, one
 * at a time; a release may wait for a lease, as commit.c does.
 *
 * Must not know when a hold ends, nor how a lock is requested.
 *
 * What removes or lessens a hold runs in transaction callbacks and on exit: it
 * allocates nothing and cannot fail.  A hold that has not begun is prepared and
 * not held; if an error leaves it behind, the next request uses it again.
 */
#include "postgres.h"

#include <unistd.h>

#include "access/xact.h"
#include "backend/backend_slot.h"
#include "backend/commit.h"
#include "backend/hold.h"
#include "backend/refusal.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "replication/walsender.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "storage/ipc.h"
#include "storage/pmsignal.h"
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

/*
 * Counts a hold once less, in the current subtransaction, or ends it if that was the last
 * time.  Cannot fail.
 */
static void
hold_uncount(ZklHold *hold)
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

/*
 * Whether the lock would still be held without this hold, as another one covers
 * it.
 */
static bool
hold_is_covered(const ZklHold *hold)
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

/* ---- promise: times that are told: until then nobody else gets the lock ---- */

/*
 * Takes s_mutex, a spinlock, one slot at a time.
 *
 * Must not know what is promised, nor how the slot is released.
 *
 * ARGUMENT.md says why a promise holds (lemma 9).  Here it is decided by whose hand a
 * hold ends: the client's own ends a promise, any other keeps it.
 */

/* Of libpq/libpq.h, which includes headers of GSSAPI that need not be installed */
extern bool pq_check_connection(void);

static bool made_any = false;	/* this backend has told a time, ever */
static bool client_is_gone = false;
static int	exit_code = 0;

/* ---- told ---- */

/* A reservation has no holder; a lock whose end has been set earlier goes on. */
bool
zkl_promise_make(int slotno, uint32 generation, int64 token, int64 *until)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	int64		now = zkl_boottime_ms();
	bool		held;

	SpinLockAcquire(&slot->s_mutex);
	held = slot->s_answer.token == token &&
		zkl_lease_same_generation(slot->s_record.generation, generation);
	if (slot->s_state == ZKL_SLOT_RELEASED)
	{
		held = held && zkl_slot_is_reservation(slot) &&
			!zkl_slot_is_lost_kept(slot);
		*until = Min(*until, slot->s_keep_until);
	}
	else
	{
		held = held && slot->s_state == ZKL_SLOT_GRANTED;
		if (slot->s_until != 0)
			*until = Min(*until, slot->s_until);
	}
	held = held && *until > now;
	if (held)
		slot->s_promised_until = Max(slot->s_promised_until, *until);
	SpinLockRelease(&slot->s_mutex);
	made_any |= held;
	return held;
}

void
zkl_promise_tell_loss(int slotno, const ZklSlot *lost)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	if (zkl_slot_is_untold(slot) && slot->s_serial == lost->s_serial)
		slot->s_lost_until = 0;
	SpinLockRelease(&slot->s_mutex);
	zkl_dirty_set(slotno, ZKL_WAKE_AT_LEISURE);
}

/* ---- by whose hand a hold ends ---- */

/*
 * COPY takes the loss of its client for an error, and aborts the transaction before the
 * process ends.  Looked at only if a time was told: it asks the kernel.
 */
void
zkl_promise_note_abort(void)
{
	if (made_any && !client_is_gone && MyProcPort != NULL && !proc_exit_inprogress)
		client_is_gone = !pq_check_connection();
}

void
zkl_promise_check_client(void)
{
	if (MyProcPort == NULL || pq_check_connection())
		return;
	ClientConnectionLost = true;
	InterruptPending = true;
	CHECK_FOR_INTERRUPTS();
}

void
zkl_promise_note_exit(int code)
{
	exit_code = code;
}

/*
 * The client releases a lock, ends its transaction, or says good-bye.  Nobody who means
 * to do the last leaves a transaction open: that is a pooler, whose client has gone.  A
 * walsender ends like a client that says good-bye, whatever has happened.
 */
bool
zkl_promise_ends_by_holder(int slotno)
{
	if (client_is_gone)
		return false;
	if (!proc_exit_inprogress)
		return true;
	return pgStatSessionEndCause == DISCONNECT_NORMAL && exit_code == 0 && !am_walsender &&
		zkl_slots[slotno].s_request.lifetime != ZKL_LIFETIME_TRANSACTION &&
		PostmasterIsAlive();
}

/* ---- held ---- */

/*
 * What a call does with locks that the session holds: it releases them, extends
 * their time, or asserts them.
 *
 * It looks at this backend's holds, and changes their slots.  Takes the slots'
 * mutexes through backend_slot.h, one at a time; a release may wait for a lease, as
 * commit.c does.
 *
 * Must not know how a lock is requested, nor anything of ZooKeeper.
 */

/* ---- releasing ---- */

/*
 * What a user may have meant instead: the hold of the other lifetime, the one of the
 * other mode, or one of another kind, such as a semaphore's of that name
 */
static int
hint_at_other_hold(ZklHeldLock *held, const ZklTarget *lock, ZklLockMode mode)
{
	ZklHold    *other;

	if (zkl_hold_in(held, mode, ZKL_LIFETIME_TRANSACTION) != NULL)
		return errhint("A lock of transaction lifetime is released when the transaction ends.");
	if (zkl_hold_in(held, ZKL_SHARED, ZKL_LIFETIME_SESSION) != NULL)
		return errhint("Release your shared lock with zk_unlock_shared().");
	if (zkl_hold_in(held, ZKL_EXCLUSIVE, ZKL_LIFETIME_SESSION) != NULL)
		return errhint("Release your exclusive lock with zk_unlock().");
	other = zkl_hold_named(lock->name);
	if (other != NULL)
		return errhint("Release the other hold of that name with %s().",
					   zkl_hold_release_function(other));
	return 0;
}

static void
warn_not_held(const ZklTarget *lock, ZklLockMode mode, ZklHeldLock *held)
{
	const char *name = zkl_text_for_client(lock->name);

	ereport(WARNING,
			(lock->dialect == ZKL_DIALECT_LATCH ?
			 errmsg("you are not the leader of \"%s\"", name) :
			 mode == ZKL_EXCLUSIVE ?
			 errmsg("you do not hold distributed lock \"%s\" in exclusive mode",
					name) :
			 errmsg("you do not hold distributed lock \"%s\" in shared mode",
					name),
			 hint_at_other_hold(held, lock, mode)));
}

static void
warn_lost(const char *name, ZklError error)
{
	ereport(WARNING,
			(errmsg("distributed lock \"%s\" was already lost", name),
			 errdetail("%s", zkl_slot_lost_detail(error))));
}

static void
warn_lapsed(const char *name)
{
	ereport(WARNING,
			(errmsg("distributed lock \"%s\" may have been lost", name),
			 errdetail("Its lease has ended.")));
}

static void
warn_early(const char *name)
{
	ereport(WARNING,
			(errmsg("distributed lock \"%s\" is released before the changes of this transaction are visible",
					name),
			 errhint("Release it after the transaction, or use a lock that lasts until its end, such as zk_xact_lock().")));
}

/*
 * Whether others can have the lock before what the transaction has written is
 * visible.  A barrier protects nothing that its members write.
 */
static bool
is_early(const ZklHold *hold)
{
	return hold->lock->key.dialect != ZKL_DIALECT_MEMBER &&
		!hold_is_covered(hold) && zkl_commit_warn_release();
}

/*
 * The worker may just have cancelled this statement because of the loss.  Without
 * the hold, nobody could tell why.
 */
static void
await_cancel(void)
{
	(void) getppid();			/* a signal arrives by the end of any call */
	CHECK_FOR_INTERRUPTS();
}

/*
 * Ends a hold; false, with a warning, if it was lost or may have been.  If it
 * was lost since the transaction began, the commit check made here raises an
 * error, so that the transaction cannot commit.  The warning comes after the end:
 * whatever becomes of it, the loss is acknowledged.
 */
bool
zkl_held_release(ZklHold *hold)
{
	ZklError	error;
	bool		known = zkl_commit_check_release(hold);
	bool		good = zkl_hold_is_good(hold, &error);
	bool		early = good && known && is_early(hold);
	const char *name = pstrdup(zkl_text_for_client(hold->name));

	if (!good)
		await_cancel();
	zkl_hold_end(hold);
	if (!good)
		warn_lost(name, error);
	else if (!known)
		warn_lapsed(name);
	else if (early)
		warn_early(name);
	return good && known;
}

bool
zkl_held_release_lock(const ZklTarget *lock, ZklLockMode mode)
{
	ZklHeldLock *held;
	ZklHold    *hold;
	ZklError	error;
	bool		known;

	zkl_lifetime_check();
	held = zkl_hold_lookup(lock);
	hold = zkl_hold_in(held, mode, ZKL_LIFETIME_SESSION);
	if (hold == NULL)
	{
		warn_not_held(lock, mode, held);
		return false;
	}
	if (hold->count == 1 || !zkl_hold_is_good(hold, &error))
		return zkl_held_release(hold);
	known = zkl_commit_check_release(hold);
	hold_uncount(hold);
	if (!known)
		warn_lapsed(zkl_text_for_client(hold->name));
	return known;
}

void
zkl_held_abandon(const ZklTarget *lock, ZklLockMode mode, ZklLifetime lifetime)
{
	ZklHold    *hold = zkl_hold_find(lock, mode, lifetime);

	if (hold != NULL)
		hold_uncount(hold);
}

void
zkl_held_release_all(const char *prefix)
{
	dlist_mutable_iter iter;

	zkl_lifetime_check();
	dlist_foreach_modify(iter, &zkl_holds[ZKL_LIFETIME_SESSION])
	{
		ZklHold    *hold = dlist_container(ZklHold, link, iter.cur);

		if (!hold->within_call &&
			strncmp(hold->lock->key.path, prefix, strlen(prefix)) == 0)
			(void) zkl_held_release(hold);
	}
}

/* ---- extending ---- */

static void
extend_hold(ZklHold *hold, int64 at_most_ms)
{
	ZklError	error = ZKL_ERROR_OVERDUE;

	if (zkl_lease_is_current(hold->grant.generation) &&
		zkl_backend_slot_extend(hold->grant.slotno, hold->grant.generation,
								at_most_ms))
		return;
	(void) zkl_hold_is_good(hold, &error);
	zkl_hold_raise_lost(hold, error);
}

/*
 * All holds on the lock: their holder cannot tell which of them would let it
 * go.
 */
bool
zkl_held_extend(const ZklTarget *lock, int64 at_most_ms)
{
	ZklHeldLock *held;
	bool		found = false;
	int			i;

	zkl_gate_check();
	held = zkl_hold_lookup(lock);
	for (i = 0; i < ZKL_HOLDS_PER_LOCK; i++)
	{
		ZklHold    *hold = zkl_hold_nth(held, i);

		if (hold == NULL)
			continue;
		extend_hold(hold, at_most_ms);
		found = true;
	}
	if (!found)
		ereport(WARNING,
				(errmsg("you do not hold distributed lock \"%s\"",
						zkl_text_for_client(lock->name))));
	return found;
}

/* ---- asserting ---- */

/*
 * The lease is read before the clock: so the time that is left is not too long.  What
 * is told is a promise, and so stands in the slot before.
 */
int64
zkl_held_assert(ZklHold *hold)
{
	ZklError	error = ZKL_ERROR_NONE;
	uint32		generation;
	int64		until;
	int64		now;

	zkl_lease_read(&generation, &until);
	now = zkl_boottime_ms();
	if (!zkl_hold_is_good(hold, &error) ||
		!zkl_lease_same_generation(generation, hold->grant.generation))
		zkl_hold_raise_lost(hold, error);
	if (now >= until)
		zkl_refusal_raise_lease_ended(hold->name);
	if (!zkl_promise_make(hold->grant.slotno, generation, hold->grant.token, &until))
	{
		if (zkl_hold_is_good(hold, &error))
			zkl_refusal_raise_lease_ended(hold->name);
		zkl_hold_raise_lost(hold, error);
	}
	return Max(until - now, 1);
}

bool
zkl_held_assert_lock(const ZklTarget *lock, int64 *left_ms)
{
	ZklHeldLock *held = zkl_hold_lookup(lock);
	bool		found = false;
	int			i;

	for (i = 0; i < ZKL_HOLDS_PER_LOCK; i++)
	{
		ZklHold    *hold = zkl_hold_nth(held, i);

		if (hold == NULL)
			continue;
		*left_ms = Min(*left_ms, zkl_held_assert(hold));
		found = true;
	}
	return found;
}
