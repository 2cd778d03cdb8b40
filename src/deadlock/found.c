/*
 * found.c
 *	  What a search has read: publications, and the directories in which waits
 *	  stand.
 *
 * Owns ZklFound, and what it leads to.  Runs in the worker (and in tests), takes
 * no locks, knows neither PostgreSQL nor ZooKeeper.
 *
 * What is read says what is to be read next.  A publication leads to the directory
 * where its wait stands, a directory to the publications of those ahead of a wait.
 */
#include <string.h>

#include "deadlock/found.h"
#include "deadlock/publication.h"

#define READS_UNDER_WAY		16

void
zkl_found_init(ZklDeadlock *d)
{
	memset(&d->search.found, 0, sizeof(ZklFound));
	zkl_list_init(&d->search.found.directories);
	zkl_list_init(&d->search.found.to_get);
	zkl_list_init(&d->search.found.to_list);
}

void
zkl_found_forget(ZklDeadlock *d)
{
	zkl_arena_free(d->m, &d->search.found.arena);
	zkl_found_init(d);
}

void *
zkl_found_alloc(ZklDeadlock *d, size_t size)
{
	return zkl_arena_alloc(d->m, &d->search.found.arena, size);
}

/* ---- entries and directories ---- */

static ZklEntry *
find_listed(const ZklDeadlock *d, const ZklUuid *uuid)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after,
				zkl_table_bucket(&d->search.found.by_uuid,
								 zkl_table_hash(uuid->bytes, ZKL_UUID_BYTES)))
	{
		ZklEntry   *entry = zkl_container(ZklEntry, by_uuid, link);

		if (zkl_uuid_equal(&entry->uuid, uuid))
			return entry;
	}
	return NULL;
}

static const char *
copy_name(ZklDeadlock *d, const char *name)
{
	size_t		size = strlen(name) + 1;

	return memcpy(zkl_found_alloc(d, size), name, size);
}

static void
make_entries(ZklDeadlock *d, const ZklReply *reply)
{
	size_t		size = (reply->nchildren + 1) * sizeof(ZklEntry);
	size_t		nbuckets = zkl_table_size(reply->nchildren);
	size_t		i;

	d->search.found.entries = zkl_found_alloc(d, size);
	memset(d->search.found.entries, 0, size);
	zkl_table_init(&d->search.found.by_uuid,
				   zkl_found_alloc(d, nbuckets * sizeof(ZklList)), nbuckets);
	for (i = 0; i < reply->nchildren; i++)
	{
		ZklEntry   *entry = &d->search.found.entries[d->search.found.nentries];

		if (!zkl_znode_parse_wait(reply->children[i], &entry->uuid))
			continue;
		entry->name = copy_name(d, reply->children[i]);
		d->search.found.nentries++;
		zkl_list_append(zkl_table_bucket(&d->search.found.by_uuid,
										 zkl_table_hash(entry->uuid.bytes,
														ZKL_UUID_BYTES)),
						&entry->by_uuid);
	}
}

ZklFoundDirectory *
zkl_found_directory(const ZklDeadlock *d, const char *path, ZklDialect dialect)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &d->search.found.directories)
	{
		ZklFoundDirectory *directory = zkl_container(ZklFoundDirectory, link, link);

		if (directory->dialect == dialect && strcmp(directory->path, path) == 0)
			return directory;
	}
	return NULL;
}

static ZklFoundDirectory *
get_directory(ZklDeadlock *d, const char *path, ZklDialect dialect)
{
	ZklFoundDirectory *directory = zkl_found_directory(d, path, dialect);
	size_t		length = strlen(path) + 1;

	if (directory != NULL)
		return directory;
	directory = zkl_found_alloc(d, sizeof(ZklFoundDirectory) + length);
	memset(directory, 0, sizeof(ZklFoundDirectory));
	memcpy(directory->path, path, length);
	directory->dialect = dialect;
	directory->state = ZKL_READ_WANTED;
	zkl_list_append(&d->search.found.directories, &directory->link);
	zkl_list_append(&d->search.found.to_list, &directory->to_list);
	return directory;
}

ZklStanding *
zkl_found_standing(const ZklFoundDirectory *directory, const ZklUuid *uuid)
{
	size_t		i;

	for (i = 0; i < directory->n; i++)
	{
		ZklStanding *c = &directory->all[i];

		if (c->has_uuid && zkl_uuid_equal(&c->uuid, uuid))
			return c;
	}
	return NULL;
}

void
zkl_found_begin(ZklDeadlock *d, const ZklReply *reply)
{
	ZklLink    *link,
			   *after;

	make_entries(d, reply);
	zkl_foreach(link, after, &d->search.asked)
	{
		const ZklLock *lock = zkl_container(ZklWait, wanted, link)->r->lock;

		(void) get_directory(d, lock->path, lock->dialect);
	}
}

/* ---- what is to be read ---- */

/*
 * A wait stands there: the publications of all those ahead that can be in its way
 * are wanted.  A writer is behind everybody; a reader is behind the nearest
 * writer and, with that one, behind all ahead of it.
 */
static void
look_ahead(ZklDeadlock *d, ZklFoundDirectory *directory, const ZklUuid *wait)
{
	const ZklStanding *c = zkl_found_standing(directory, wait);
	size_t		at,
				ahead;

	if (c == NULL)
		return;
	at = (size_t) (c - directory->all);
	ahead = c->mode == ZKL_EXCLUSIVE ? at : (size_t) (c->writer + 1);
	ZKL_ASSERT(at < directory->n && ahead <= at);
	if (directory->matter < at + 1)
		directory->matter = at + 1;
	for (; directory->wanted < ahead; directory->wanted++)
	{
		ZklEntry   *entry = directory->all[directory->wanted].entry;

		if (entry == NULL || entry->state != ZKL_READ_NONE)
			continue;
		entry->state = ZKL_READ_WANTED;
		zkl_list_append(&d->search.found.to_get, &entry->to_get);
	}
}

static void
note_entry(ZklDeadlock *d, ZklEntry *entry, const char *text, size_t length,
		   int64_t czxid)
{
	ZklWaitData data;
	const char *path;

	entry->state = ZKL_READ_GONE;
	if (!zkl_node_data_parse_wait(text, length, &data))
		return;
	entry->state = ZKL_READ_DONE;
	entry->czxid = czxid;
	entry->data = zkl_found_alloc(d, sizeof(ZklWaitData));
	*entry->data = data;
	path = zkl_actions_join(d->m, d->m->root, data.lock, "");
	entry->directory = get_directory(d, path, data.dialect);
	if (entry->directory->state == ZKL_READ_DONE)
		look_ahead(d, entry->directory, &data.wait);
}

static void
note_directory(ZklDeadlock *d, ZklFoundDirectory *directory, const ZklReply *reply)
{
	ZklContender *sorted;
	ptrdiff_t	writer = -1;
	size_t		bytes = 1,
				i,
				n = 0;

	for (i = 0; i < reply->nchildren; i++)
		bytes += strlen(reply->children[i]) + 1;
	sorted = zkl_found_alloc(d, (reply->nchildren + 1) * sizeof(*sorted));
	directory->names = zkl_found_alloc(d, bytes);
	directory->all = zkl_found_alloc(d, (reply->nchildren + 1) *
									 sizeof(ZklStanding));
	for (i = 0, bytes = 0; i < reply->nchildren; i++)
	{
		ZklUuid		uuid;
		bool		has_uuid;

		if (!zkl_znode_parse(directory->dialect, reply->children[i],
							 &sorted[n].mode, &sorted[n].seq, &has_uuid, &uuid))
			continue;
		sorted[n++].name = (uint32_t) bytes;
		strcpy(directory->names + bytes, reply->children[i]);
		bytes += strlen(reply->children[i]) + 1;
	}
	zkl_queue_sort(sorted, n);
	for (i = 0; i < n; i++)
	{
		ZklStanding *c = &directory->all[i];
		ZklSeq		seq;

		c->name = directory->names + sorted[i].name;
		(void) zkl_znode_parse(directory->dialect, c->name, &c->mode, &seq,
							   &c->has_uuid, &c->uuid);
		c->entry = c->has_uuid ? find_listed(d, &c->uuid) : NULL;
		c->writer = writer;
		if (c->mode == ZKL_EXCLUSIVE)
			writer = (ptrdiff_t) i;
	}
	directory->n = n;
}

/* It is read: all waits that stand there look ahead. */
static void
look_at_directory(ZklDeadlock *d, ZklFoundDirectory *directory)
{
	ZklLink    *link,
			   *after;
	size_t		i;

	zkl_foreach(link, after, &d->search.asked)
	{
		const ZklRequest *r = zkl_container(ZklWait, wanted, link)->r;

		if (r->lock->dialect == directory->dialect &&
			strcmp(r->lock->path, directory->path) == 0)
			look_ahead(d, directory, &r->node.uuid);
	}
	for (i = 0; i < d->search.found.nentries; i++)
	{
		const ZklEntry *entry = &d->search.found.entries[i];

		if (entry->state == ZKL_READ_DONE && entry->directory == directory)
			look_ahead(d, directory, &entry->data->wait);
	}
}

/* ---- reading ---- */

/* Ours need not be read. */
static void
get_entry(ZklDeadlock *d, ZklEntry *entry)
{
	const ZklPublication *ours = zkl_publication_find(d, entry->name);

	if (ours != NULL && ours->wait != NULL && ours->czxid != 0)
	{
		note_entry(d, entry, ours->data, ours->data_length, ours->czxid);
		return;
	}
	zkl_operations_read(d->m, ZKL_DEADLOCK_GET, NULL, NULL, ZKL_SEND_GET,
						zkl_publication_path(d, entry->name), false);
	entry->state = ZKL_READ_SENT;
	entry->order = d->m->operations.order;
	d->search.found.under_way++;
}

static void
list_directory(ZklDeadlock *d, ZklFoundDirectory *directory)
{
	zkl_operations_read(d->m, ZKL_DEADLOCK_LIST, NULL, NULL, ZKL_SEND_LIST,
						zkl_actions_join(d->m, directory->path, "", ""), false);
	directory->state = ZKL_READ_SENT;
	directory->order = d->m->operations.order;
	d->search.found.under_way++;
}

static bool
may_read(const ZklDeadlock *d)
{
	return d->search.found.under_way < READS_UNDER_WAY && zkl_operations_may_read(d->m);
}

bool
zkl_found_send(ZklDeadlock *d)
{
	ZklFound   *found = &d->search.found;

	while (may_read(d))
	{
		ZklList    *list = zkl_list_empty(&found->to_get) ? &found->to_list :
		&found->to_get;
		ZklLink    *link = list->head.next;

		if (zkl_list_empty(list))
			return found->under_way == 0;
		zkl_list_remove(link);
		if (list == &found->to_get)
			get_entry(d, zkl_container(ZklEntry, to_get, link));
		else
			list_directory(d, zkl_container(ZklFoundDirectory, to_list, link));
	}
	return false;
}

static ZklEntry *
entry_of(const ZklDeadlock *d, uint64_t order)
{
	size_t		i;

	for (i = 0; i < d->search.found.nentries; i++)
	{
		if (d->search.found.entries[i].state == ZKL_READ_SENT &&
			d->search.found.entries[i].order == order)
			return &d->search.found.entries[i];
	}
	return NULL;
}

static ZklFoundDirectory *
directory_of(const ZklDeadlock *d, uint64_t order)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &d->search.found.directories)
	{
		ZklFoundDirectory *directory = zkl_container(ZklFoundDirectory, link, link);

		if (directory->state == ZKL_READ_SENT && directory->order == order)
			return directory;
	}
	return NULL;
}

void
zkl_found_reply(ZklDeadlock *d, const ZklOp *op, const ZklReply *reply)
{
	ZklEntry   *entry = entry_of(d, op->order);
	ZklFoundDirectory *directory = directory_of(d, op->order);

	if (entry == NULL && directory == NULL)
		return;
	ZKL_ASSERT(d->search.found.under_way > 0);
	d->search.found.under_way--;
	d->search.found.failed |= reply->rc != ZKL_RC_OK && reply->rc != ZKL_RC_NONODE;
	if (entry != NULL && reply->rc == ZKL_RC_OK)
		note_entry(d, entry, reply->data, reply->data_length,
				   reply->stat.czxid);
	else if (entry != NULL)
		entry->state = ZKL_READ_GONE;
	else if (reply->rc == ZKL_RC_OK)
	{
		note_directory(d, directory, reply);
		directory->state = ZKL_READ_DONE;
		look_at_directory(d, directory);
	}
	else
		directory->state = ZKL_READ_GONE;
}
