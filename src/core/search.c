/*
 * search.c
 *	  What some waits of ours wait for, and what that waits for, and so on.
 *
 * Owns ZklSearch, and what it reads.  Runs in the worker (and in tests), takes
 * no locks, knows neither PostgreSQL nor ZooKeeper.  circles.c draws the
 * conclusions.
 *
 * A search reads outward from the waits: first it lists all publications, then
 * the directories in which the waits stand, then the publications of those ahead,
 * the directories of what these wait for, and so on, each once.  If a contender
 * has no publication, its holder can go on.  All of it is read behind the
 * publications of the waits themselves, on the same connection, or behind the
 * first beat of a later one: so it is at least as new as these.
 *
 * There is one search at a time, for all waits that want one.  Those that come
 * meanwhile share the next.
 */
#include <string.h>

#include "core/actions.h"
#include "core/circles.h"
#include "core/memory.h"
#include "core/operations.h"
#include "core/publication.h"
#include "core/queue.h"
#include "core/search.h"
#include "core/waits.h"

#define READS_UNDER_WAY		16

void
zkl_search_init_all(ZklManager *m)
{
	zkl_list_init(&m->search.asked);
	zkl_list_init(&m->search.directories);
	zkl_list_init(&m->search.to_get);
	zkl_list_init(&m->search.to_list);
}

static ZklRequest *
asked(const ZklLink *link)
{
	return zkl_container(ZklRequest, wait.wanted, link);
}

/* ---- the end ---- */

static void
free_directories(ZklManager *m)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &m->search.directories)
	{
		ZklFoundLock *directory = zkl_container(ZklFoundLock, link, link);

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

	if (m->search.entries == NULL)
		return;
	for (i = 0; i < m->search.nentries; i++)
	{
		if (m->search.entries[i].data != NULL)
			zkl_memory_release(m, m->search.entries[i].data);
	}
	zkl_memory_release(m, m->search.entries);
	zkl_memory_release(m, m->search.by_uuid.buckets);
	m->search.entries = NULL;
	m->search.nentries = 0;
}

/* again: all that were asked for are to be asked for again */
static void
end(ZklManager *m, bool again)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &m->search.asked)
		zkl_waits_answered(m, asked(link), again);
	free_directories(m);
	free_entries(m);
	zkl_search_init_all(m);
	m->search.state = ZKL_SEARCH_IDLE;
	m->search.under_way = 0;
}

void
zkl_search_stop(ZklManager *m)
{
	if (m->search.state != ZKL_SEARCH_IDLE)
		end(m, true);
}

void
zkl_search_give_up(ZklManager *m)
{
	m->search.given_up++;
}

/* Something could not be read: there is another look soon. */
static void
plan_another(ZklManager *m)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &m->search.asked)
		zkl_waits_soon(m, asked(link));
}

/* ---- entries and directories ---- */

static ZklEntry *
find_listed(const ZklManager *m, const ZklUuid *uuid)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after,
				zkl_table_bucket(&m->search.by_uuid,
								 zkl_hash(uuid->bytes, ZKL_UUID_BYTES)))
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

	m->search.entries = zkl_memory_alloc(m, size);
	memset(m->search.entries, 0, size);
	zkl_memory_make_table(m, &m->search.by_uuid, reply->nchildren);
	for (i = 0; i < reply->nchildren; i++)
	{
		ZklEntry   *entry = &m->search.entries[m->search.nentries];

		if (!zkl_uuid_parse(reply->children[i], &entry->uuid))
			continue;
		m->search.nentries++;
		zkl_list_append(zkl_table_bucket(&m->search.by_uuid,
										 zkl_hash(entry->uuid.bytes,
												  ZKL_UUID_BYTES)),
						&entry->by_uuid);
	}
}

ZklFoundLock *
zkl_search_directory(const ZklManager *m, const char *path, ZklDialect dialect)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &m->search.directories)
	{
		ZklFoundLock *directory = zkl_container(ZklFoundLock, link, link);

		if (directory->dialect == dialect && strcmp(directory->path, path) == 0)
			return directory;
	}
	return NULL;
}

static ZklFoundLock *
get_directory(ZklManager *m, const char *path, ZklDialect dialect)
{
	ZklFoundLock *directory = zkl_search_directory(m, path, dialect);
	size_t		length = strlen(path) + 1;

	if (directory != NULL)
		return directory;
	directory = zkl_memory_alloc(m, sizeof(ZklFoundLock) + length);
	memset(directory, 0, sizeof(ZklFoundLock));
	memcpy(directory->path, path, length);
	directory->dialect = dialect;
	directory->state = ZKL_READ_WANTED;
	zkl_list_append(&m->search.directories, &directory->link);
	zkl_list_append(&m->search.to_list, &directory->to_list);
	return directory;
}

ZklStanding *
zkl_search_find(const ZklFoundLock *directory, const ZklUuid *uuid)
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

/* ---- what is to be read ---- */

/*
 * A wait stands there: the publications of all those ahead that can be in its way
 * are wanted.  A writer is behind everybody; a reader is behind the nearest
 * writer and, with that one, behind all ahead of it.
 */
static void
look_ahead(ZklManager *m, ZklFoundLock *directory, const ZklUuid *wait)
{
	const ZklStanding *c = zkl_search_find(directory, wait);
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
		zkl_list_append(&m->search.to_get, &entry->to_get);
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
note_directory(ZklManager *m, ZklFoundLock *directory, const ZklReply *reply)
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
look_at_directory(ZklManager *m, ZklFoundLock *directory)
{
	ZklLink    *link,
			   *after;
	size_t		i;

	zkl_foreach(link, after, &m->search.asked)
	{
		const ZklRequest *r = asked(link);

		if (r->lock->dialect == directory->dialect &&
			strcmp(r->lock->path, directory->path) == 0)
			look_ahead(m, directory, &r->node.uuid);
	}
	for (i = 0; i < m->search.nentries; i++)
	{
		const ZklEntry *entry = &m->search.entries[i];

		if (entry->state == ZKL_READ_DONE && entry->directory == directory)
			look_ahead(m, directory, &entry->data->wait);
	}
}

/* ---- reading ---- */

static void
begin(ZklManager *m)
{
	ZklLink    *link,
			   *after;

	if (m->search.state != ZKL_SEARCH_IDLE || m->chain.needed ||
		m->decision.state != ZKL_VERDICT_NONE)
		return;
	zkl_foreach(link, after, &m->waits.wanted)
	{
		ZklRequest *r = asked(link);

		if (zkl_list_empty(&r->wait.publications))
			zkl_unlink(link);
		else if (zkl_waits_is_published(r))
			zkl_waits_ask(r, &m->search.asked);
	}
	if (zkl_list_empty(&m->search.asked))
		return;
	m->search.state = ZKL_SEARCH_LISTING;
	m->search.order = m->operations.order;
	m->search.failed = false;
	m->search.n++;
	zkl_publication_want_list(m);
}

void
zkl_search_listed(ZklManager *m, const ZklOp *op, const ZklReply *reply,
				  bool good)
{
	ZklLink    *link,
			   *after;

	if (m->search.state != ZKL_SEARCH_LISTING)
		return;
	if (op->order <= m->search.order)
	{
		zkl_publication_want_list(m);
		return;
	}
	if (!good)
	{
		plan_another(m);
		end(m, false);
		return;
	}
	m->search.state = ZKL_SEARCH_READING;
	make_entries(m, reply);
	zkl_foreach(link, after, &m->search.asked)
		(void) get_directory(m, asked(link)->lock->path,
							 asked(link)->lock->dialect);
}

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
	zkl_operations_read(m, ZKL_OP_SEARCH_GET, NULL, NULL, ZKL_SEND_GET,
						zkl_publication_path(m, &entry->uuid), false);
	entry->state = ZKL_READ_SENT;
	entry->order = m->operations.order;
	m->search.under_way++;
}

static void
list_directory(ZklManager *m, ZklFoundLock *directory)
{
	zkl_operations_read(m, ZKL_OP_SEARCH_LIST, NULL, NULL, ZKL_SEND_LIST,
						zkl_actions_join(m, directory->path, "", ""), false);
	directory->state = ZKL_READ_SENT;
	directory->order = m->operations.order;
	m->search.under_way++;
}

static bool
may_read(const ZklManager *m)
{
	return m->search.under_way < READS_UNDER_WAY && zkl_operations_may_read(m);
}

static void
go_on(ZklManager *m)
{
	for (;;)
	{
		ZklLink    *link = m->search.to_get.head.next;

		if (!may_read(m))
			return;
		if (!zkl_list_empty(&m->search.to_get))
		{
			zkl_unlink(link);
			get_entry(m, zkl_container(ZklEntry, to_get, link));
			continue;
		}
		link = m->search.to_list.head.next;
		if (zkl_list_empty(&m->search.to_list))
			break;
		zkl_unlink(link);
		list_directory(m, zkl_container(ZklFoundLock, to_list, link));
	}
	if (m->search.under_way > 0)
		return;
	if (m->search.failed)
		plan_another(m);
	zkl_circles_judge(m);
	end(m, false);
}

/*
 * Past the lease others may have what we hold: we neither look nor decide until
 * it is renewed.
 */
void
zkl_search_send(ZklManager *m)
{
	if (m->connection.state != ZKL_CONNECTION_READY ||
		m->now >= m->session_lease.until)
		return;
	begin(m);
	if (m->search.state != ZKL_SEARCH_READING)
		return;
	go_on(m);

	/* If that was its end, nothing else may come to begin the next one. */
	begin(m);
}

static ZklEntry *
entry_of(const ZklManager *m, uint64_t order)
{
	size_t		i;

	for (i = 0; i < m->search.nentries; i++)
	{
		if (m->search.entries[i].state == ZKL_READ_SENT &&
			m->search.entries[i].order == order)
			return &m->search.entries[i];
	}
	return NULL;
}

static ZklFoundLock *
directory_of(const ZklManager *m, uint64_t order)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &m->search.directories)
	{
		ZklFoundLock *directory = zkl_container(ZklFoundLock, link, link);

		if (directory->state == ZKL_READ_SENT && directory->order == order)
			return directory;
	}
	return NULL;
}

void
zkl_search_reply(ZklManager *m, const ZklOp *op, const ZklReply *reply)
{
	ZklEntry   *entry = entry_of(m, op->order);
	ZklFoundLock *directory = directory_of(m, op->order);

	if (entry == NULL && directory == NULL)
		return;
	m->search.under_way--;
	m->search.failed |= reply->rc != ZKL_RC_OK && reply->rc != ZKL_RC_NONODE;
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
