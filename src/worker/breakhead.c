/*
 * breakhead.c
 *	  Which znode a zk_break_lock() removes.
 *
 * Owns nothing: these are pure functions of names and listings.  The names that
 * they return are palloc'd in TopMemoryContext.  Runs in the worker only; takes
 * no locks.  It must not know how a lock is broken.
 *
 * A holder may have two znodes.  When Curator's InterProcessReadWriteLock (5.5
 * and later) takes the read lock while it holds the write lock, it creates a
 * reader with the number of its writer, but with a new unique id.  The number
 * tells that both belong together, because ZooKeeper gives out each number only
 * once in the life of a directory.
 */
#include "postgres.h"

#include "utils/memutils.h"
#include "worker/breakhead.h"

static bool
parse_head(ZklDialect dialect, const char *name, ZklBreakHead *head)
{
	memset(head, 0, sizeof(*head));
	if (!zkl_znode_parse(dialect, name, &head->mode, &head->seq,
						 &head->has_uuid, &head->uuid))
		return false;
	head->is_zklock = head->has_uuid && zkl_uuid_is_zklock(&head->uuid);
	return true;
}

static void
keep_name(ZklBreakHead *head, const char *name)
{
	head->name = MemoryContextStrdup(TopMemoryContext, name);
}

void
zkl_breakhead_free(ZklBreakHead *head)
{
	if (head->name != NULL)
		pfree(head->name);
	memset(head, 0, sizeof(*head));
}

static bool
is_head_before(const ZklBreakHead *a, const ZklBreakHead *b)
{
	return a->seq < b->seq ||
		(a->seq == b->seq && a->mode == ZKL_EXCLUSIVE &&
		 b->mode != ZKL_EXCLUSIVE);
}

bool
zkl_breakhead_first(ZklDialect dialect, const ZklReply *reply,
					ZklBreakHead *head)
{
	const char *first = NULL;
	size_t		i;

	for (i = 0; i < reply->nchildren; i++)
	{
		ZklBreakHead other;

		if (!parse_head(dialect, reply->children[i], &other) ||
			(first != NULL && !is_head_before(&other, head)))
			continue;
		first = reply->children[i];
		*head = other;
	}
	if (first == NULL)
		return false;
	keep_name(head, first);
	return true;
}

static bool
has_same_id(const ZklBreakHead *a, const ZklBreakHead *b)
{
	return a->has_uuid && b->has_uuid &&
		memcmp(&a->uuid, &b->uuid, sizeof(ZklUuid)) == 0;
}

bool
zkl_breakhead_may_leave(ZklDialect dialect, const ZklBreakHead *head)
{
	return dialect == ZKL_DIALECT_CURATOR_RW &&
		head->mode == ZKL_EXCLUSIVE && !head->is_zklock;
}

static bool
is_reader_of(ZklDialect dialect, const ZklBreakHead *head,
			 const ZklBreakHead *other)
{
	return zkl_breakhead_may_leave(dialect, head) && !other->is_zklock &&
		other->mode == ZKL_SHARED && other->seq == head->seq;
}

bool
zkl_breakhead_find(ZklDialect dialect, const ZklReply *reply,
				   const ZklBreakHead *head, ZklBreakHead *found)
{
	const char *left = NULL;
	size_t		i;

	for (i = 0; i < reply->nchildren; i++)
	{
		const char *child = reply->children[i];
		bool		itself = strcmp(child, head->name) == 0;
		ZklBreakHead other;

		if (!parse_head(dialect, child, &other) ||
			!(itself || has_same_id(head, &other) ||
			  is_reader_of(dialect, head, &other)))
			continue;
		left = child;
		*found = other;
		if (itself)
			break;
	}
	if (left == NULL)
		return false;
	keep_name(found, left);
	return true;
}

bool
zkl_breakhead_is_left(const ZklBreakHead *head, const ZklBreakHead *found,
					  bool same_directory)
{
	return strcmp(head->name, found->name) == 0 || has_same_id(head, found) ||
		same_directory ||
		(found->session != 0 && found->session == head->session);
}
