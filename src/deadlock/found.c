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
zkl_found_init(ZklManager *m)
{
	memset(&m->search.found, 0, sizeof(ZklFound));
	zkl_list_init(&m->search.found.directories);
	zkl_list_init(&m->search.found.to_get);
	zkl_list_init(&m->search.found.to_list);
}

static void
free_directories(ZklManager *m)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &m->search.found.directories)
	{
		ZklFoundDirectory *directory = zkl_container(ZklFoundDirectory, link, link);

		if (directory->all != NULL)
		{
			zkl_memory_release(m, directory->all);
			zkl_memory_release(m, directory->names);
		}
		zkl_memory_release(m, directory);
	}
}

static void
free_entries(ZklManager *m)
{
	size_t		i;

	if (m->search.found.entries == NULL)
		return;
	for (i = 0; i < m->search.found.nentries; i++)
	{
		if (m->search.found.entries[i].data != NULL)
			zkl_memory_release(m, m->search.found.entries[i].data);
	}
	zkl_memory_release(m, m->search.found.entries);
	zkl_memory_release(m, m->search.found.by_uuid.buckets);
}

void
zkl_found_forget(ZklManager *m)
{
	free_directories(m);
	free_entries(m);
	zkl_found_init(m);
}

/* ---- entries and directories ---- */

static ZklEntry *
find_listed(const ZklManager *m, const ZklUuid *uuid)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after,
				zkl_table_bucket(&m->search.found.by_uuid,
								 zkl_table_hash(uuid->bytes, ZKL_UUID_BYTES)))
	{
		ZklEntry   *entry = zkl_container(ZklEntry, by_uuid, link);

		if (zkl_uuid_equal(&entry->uuid, uuid))
			return entry;
	}
	return NULL;
}

static void
make_entries(ZklManager *m, const ZklReply *reply)
{
	size_t		size = (reply->nchildren + 1) * sizeof(ZklEntry);
	size_t		i;

	m->search.found.entries = zkl_memory_alloc(m, size);
	memset(m->search.found.entries, 0, size);
	zkl_memory_make_table(m, &m->search.found.by_uuid, reply->nchildren);
	for (i = 0; i < reply->nchildren; i++)
	{
		ZklEntry   *entry = &m->search.found.entries[m->search.found.nentries];

		if (!zkl_uuid_parse(reply->children[i], &entry->uuid))
			continue;
		m->search.found.nentries++;
		zkl_list_append(zkl_table_bucket(&m->search.found.by_uuid,
										 zkl_table_hash(entry->uuid.bytes,
														ZKL_UUID_BYTES)),
						&entry->by_uuid);
	}
}

ZklFoundDirectory *
zkl_found_directory(const ZklManager *m, const char *path, ZklDialect dialect)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &m->search.found.directories)
	{
		ZklFoundDirectory *directory = zkl_container(ZklFoundDirectory, link, link);

		if (directory->dialect == dialect && strcmp(directory->path, path) == 0)
			return directory;
	}
	return NULL;
}

static ZklFoundDirectory *
get_directory(ZklManager *m, const char *path, ZklDialect dialect)
{
	ZklFoundDirectory *directory = zkl_found_directory(m, path, dialect);
	size_t		length = strlen(path) + 1;

	if (directory != NULL)
		return directory;
	directory = zkl_memory_alloc(m, sizeof(ZklFoundDirectory) + length);
	memset(directory, 0, sizeof(ZklFoundDirectory));
	memcpy(directory->path, path, length);
	directory->dialect = dialect;
	directory->state = ZKL_READ_WANTED;
	zkl_list_append(&m->search.found.directories, &directory->link);
	zkl_list_append(&m->search.found.to_list, &directory->to_list);
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
zkl_found_begin(ZklManager *m, const ZklReply *reply)
{
	ZklLink    *link,
			   *after;

	make_entries(m, reply);
	zkl_foreach(link, after, &m->search.asked)
	{
		const ZklLock *lock = zkl_container(ZklRequest, wait.wanted, link)->lock;

		(void) get_directory(m, lock->path, lock->dialect);
	}
}

/* ---- what is to be read ---- */

/*
 * A wait stands there: the publications of all those ahead that can be in its way
 * are wanted.  A writer is behind everybody; a reader is behind the nearest
 * writer and, with that one, behind all ahead of it.
 */
static void
look_ahead(ZklManager *m, ZklFoundDirectory *directory, const ZklUuid *wait)
{
	const ZklStanding *c = zkl_found_standing(directory, wait);
	size_t		at,
				ahead;

	if (c == NULL)
		return;
	at = (size_t) (c - directory->all);
	ahead = c->mode == ZKL_EXCLUSIVE ? at : (size_t) (c->writer + 1);
	if (directory->matter < at + 1)
		directory->matter = at + 1;
	for (; directory->wanted < ahead; directory->wanted++)
	{
		ZklEntry   *entry = directory->all[directory->wanted].entry;

		if (entry == NULL || entry->state != ZKL_READ_NONE)
			continue;
		entry->state = ZKL_READ_WANTED;
		zkl_list_append(&m->search.found.to_get, &entry->to_get);
	}
}

static void
note_entry(ZklManager *m, ZklEntry *entry, const char *text, size_t length,
		   int64_t czxid)
{
	ZklWaitData data;
	const char *path;

	entry->state = ZKL_READ_GONE;
	if (!zkl_wait_data_parse(text, length, &data))
		return;
	entry->state = ZKL_READ_DONE;
	entry->czxid = czxid;
	entry->data = zkl_memory_alloc(m, sizeof(ZklWaitData));
	*entry->data = data;
	path = zkl_actions_join(m, m->root, data.lock, "");
	entry->directory = get_directory(m, path, data.dialect);
	if (entry->directory->state == ZKL_READ_DONE)
		look_ahead(m, entry->directory, &data.wait);
}

static void
note_directory(ZklManager *m, ZklFoundDirectory *directory, const ZklReply *reply)
{
	ZklContender *sorted;
	ptrdiff_t	writer = -1;
	size_t		bytes = 1,
				i,
				n = 0;

	for (i = 0; i < reply->nchildren; i++)
		bytes += strlen(reply->children[i]) + 1;
	sorted = zkl_memory_alloc(m, (reply->nchildren + 1) * sizeof(*sorted));
	directory->names = zkl_memory_alloc(m, bytes);
	directory->all = zkl_memory_alloc(m, (reply->nchildren + 1) *
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
		c->entry = c->has_uuid ? find_listed(m, &c->uuid) : NULL;
		c->writer = writer;
		if (c->mode == ZKL_EXCLUSIVE)
			writer = (ptrdiff_t) i;
	}
	directory->n = n;
	zkl_memory_release(m, sorted);
}

/* It is read: all waits that stand there look ahead. */
static void
look_at_directory(ZklManager *m, ZklFoundDirectory *directory)
{
	ZklLink    *link,
			   *after;
	size_t		i;

	zkl_foreach(link, after, &m->search.asked)
	{
		const ZklRequest *r = zkl_container(ZklRequest, wait.wanted, link);

		if (r->lock->dialect == directory->dialect &&
			strcmp(r->lock->path, directory->path) == 0)
			look_ahead(m, directory, &r->node.uuid);
	}
	for (i = 0; i < m->search.found.nentries; i++)
	{
		const ZklEntry *entry = &m->search.found.entries[i];

		if (entry->state == ZKL_READ_DONE && entry->directory == directory)
			look_ahead(m, directory, &entry->data->wait);
	}
}

/* ---- reading ---- */

/* Ours need not be read. */
static void
get_entry(ZklManager *m, ZklEntry *entry)
{
	const ZklPublication *ours = zkl_publication_find(m, &entry->uuid);

	if (ours != NULL && ours->wait != NULL && ours->czxid != 0)
	{
		note_entry(m, entry, ours->data, ours->data_length, ours->czxid);
		return;
	}
	zkl_operations_read(m, ZKL_DEADLOCK_GET, NULL, NULL, ZKL_SEND_GET,
						zkl_publication_path(m, &entry->uuid), false);
	entry->state = ZKL_READ_SENT;
	entry->order = m->operations.order;
	m->search.found.under_way++;
}

static void
list_directory(ZklManager *m, ZklFoundDirectory *directory)
{
	zkl_operations_read(m, ZKL_DEADLOCK_LIST, NULL, NULL, ZKL_SEND_LIST,
						zkl_actions_join(m, directory->path, "", ""), false);
	directory->state = ZKL_READ_SENT;
	directory->order = m->operations.order;
	m->search.found.under_way++;
}

static bool
may_read(const ZklManager *m)
{
	return m->search.found.under_way < READS_UNDER_WAY && zkl_operations_may_read(m);
}

bool
zkl_found_send(ZklManager *m)
{
	ZklFound   *found = &m->search.found;

	while (may_read(m))
	{
		ZklList    *list = zkl_list_empty(&found->to_get) ? &found->to_list :
		&found->to_get;
		ZklLink    *link = list->head.next;

		if (zkl_list_empty(list))
			return found->under_way == 0;
		zkl_list_remove(link);
		if (list == &found->to_get)
			get_entry(m, zkl_container(ZklEntry, to_get, link));
		else
			list_directory(m, zkl_container(ZklFoundDirectory, to_list, link));
	}
	return false;
}

static ZklEntry *
entry_of(const ZklManager *m, uint64_t order)
{
	size_t		i;

	for (i = 0; i < m->search.found.nentries; i++)
	{
		if (m->search.found.entries[i].state == ZKL_READ_SENT &&
			m->search.found.entries[i].order == order)
			return &m->search.found.entries[i];
	}
	return NULL;
}

static ZklFoundDirectory *
directory_of(const ZklManager *m, uint64_t order)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &m->search.found.directories)
	{
		ZklFoundDirectory *directory = zkl_container(ZklFoundDirectory, link, link);

		if (directory->state == ZKL_READ_SENT && directory->order == order)
			return directory;
	}
	return NULL;
}

void
zkl_found_reply(ZklManager *m, const ZklOp *op, const ZklReply *reply)
{
	ZklEntry   *entry = entry_of(m, op->order);
	ZklFoundDirectory *directory = directory_of(m, op->order);

	if (entry == NULL && directory == NULL)
		return;
	m->search.found.under_way--;
	m->search.found.failed |= reply->rc != ZKL_RC_OK && reply->rc != ZKL_RC_NONODE;
	if (entry != NULL && reply->rc == ZKL_RC_OK)
		note_entry(m, entry, reply->data, reply->data_length,
				   reply->stat.czxid);
	else if (entry != NULL)
		entry->state = ZKL_READ_GONE;
	else if (reply->rc == ZKL_RC_OK)
	{
		note_directory(m, directory, reply);
		directory->state = ZKL_READ_DONE;
		look_at_directory(m, directory);
	}
	else
		directory->state = ZKL_READ_GONE;
}
