/*
 * departed.c
 *	  Znodes of other servers that support no hold, and never will again.
 *
 * Owns ZklDeparted.  Runs in the worker (and in tests), takes no locks, knows
 * neither PostgreSQL nor ZooKeeper.  words.c hears of them.
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
#include <string.h>

#include "core/departed.h"
#include "core/memory.h"

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
