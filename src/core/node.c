/*
 * node.c
 *	  The znodes of our requests.
 *
 * Owns ZklNode and ZklNodes.  Runs in the worker (and in tests), takes no locks.  request.c knows what a step means for the
 * request and its lock.
 */
#include <string.h>

#include "core/actions.h"
#include "core/memory.h"
#include "core/node.h"
#include "core/operations.h"
#include "core/siblings.h"
#include "core/write.h"

void
zkl_node_init_all(ZklManager *m)
{
	zkl_memory_make_table(m, &m->nodes.by_uuid, m->config.max_requests);
}

void
zkl_node_free_all(ZklManager *m)
{
	zkl_memory_release(m, m->nodes.by_uuid.buckets);
}

void
zkl_node_init(ZklRequest *r, const ZklDemand *demand)
{
	r->node.mode = demand->mode;
	r->node.seq = -1;
	zkl_node_set_data(r, demand->data, demand->data_length);
}

void
zkl_node_set_data(ZklRequest *r, const char *data, size_t length)
{
	r->node.data_length = length < ZKL_MAX_NODE_DATA ?
		length : ZKL_MAX_NODE_DATA;
	memcpy(r->node.data, data, r->node.data_length);
}

void
zkl_node_set_waited(ZklRequest *r, int64_t ms)
{
	if (r->node.data_length + ZKL_NODE_DATA_WAITED <= ZKL_MAX_NODE_DATA)
		r->node.data_length = zkl_node_data_waited(r->node.data,
												   r->node.data_length, ms);
}

static ZklList *
uuid_bucket(const ZklManager *m, const ZklUuid *uuid)
{
	return zkl_table_bucket(&m->nodes.by_uuid,
							zkl_table_hash(uuid->bytes, ZKL_UUID_BYTES));
}

ZklRequest *
zkl_node_find(const ZklManager *m, const ZklUuid *uuid)
{
	ZklList    *bucket = uuid_bucket(m, uuid);
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, bucket)
	{
		ZklRequest *r = zkl_container(ZklRequest, node.by_uuid, link);

		if (memcmp(&r->node.uuid, uuid, sizeof(ZklUuid)) == 0)
			return r;
	}
	return NULL;
}

bool
zkl_node_made_uuid(const ZklManager *m, const ZklUuid *uuid)
{
	const int64_t sessions[] = {m->nodes.session, m->nodes.session_before};
	size_t		i;

	for (i = 0; i < sizeof(sessions) / sizeof(sessions[0]); i++)
	{
		ZklUuid		ours = zkl_uuid_make(sessions[i], m->config.worker_start, 0);

		if (zkl_uuid_same_maker(uuid, &ours))
			return true;
	}
	return false;
}

char *
zkl_node_path_as(ZklManager *m, const ZklRequest *r, ZklLockMode mode)
{
	char		name[ZKL_MAX_ZNODE_NAME + 1];

	if (r->node.seq < 0)
		zkl_znode_prefix(r->lock->dialect, &r->node.uuid, mode, name);
	else
		zkl_znode_name(r->lock->dialect, &r->node.uuid, mode, r->node.seq,
					   name);
	return zkl_actions_join(m, r->lock->path, "/", name);
}

char *
zkl_node_path(ZklManager *m, const ZklRequest *r)
{
	return zkl_node_path_as(m, r, r->node.mode);
}

size_t
zkl_node_bytes(const ZklRequest *r)
{
	return r->lock->path_length + ZKL_MAX_ZNODE_NAME + ZKL_OPERATION_BYTES +
		r->node.data_length + ZKL_NODE_DATA_CACHED;
}

void
zkl_node_record(ZklManager *m, const ZklRequest *r)
{
	const ZklRequest *cover = r->ring.cover;
	const ZklRequest *shown = cover != NULL && zkl_siblings_stays(cover) ? cover : r;
	ZklAction  *action = zkl_actions_add(m, ZKL_ACTION_RECORD);
	ZklRecord  *record = &action->record;

	action->request = r->id;
	record->sent = zkl_node_was_sent(shown) && !zkl_siblings_stays(r);
	record->stays = zkl_siblings_stays(r);
	record->going = r->node.recreate;
	record->disowned = zkl_siblings_are_nobodys(r->ring.owner);
	record->generation = m->session.generation;
	record->index = shown->node.index;
	record->mode = shown->node.mode;
	record->uuid = shown->node.uuid;
	record->seq = shown->node.seq;
}

void
zkl_node_record_all(ZklManager *m, const ZklRequest *r)
{
	const ZklRequest *s = r;

	/*
	 * r comes last: until then its slot shows the node, whatever ends the
	 * worker.
	 */
	do
	{
		s = s->ring.next;
		if (s == r || s->ring.cover == r)
			zkl_node_record(m, s);
	} while (s != r);
}

static void
enter(ZklManager *m, ZklRequest *r)
{
	zkl_list_append(uuid_bucket(m, &r->node.uuid), &r->node.by_uuid);
}

void
zkl_node_identify(ZklManager *m, ZklRequest *r)
{
	if (zkl_list_linked(&r->node.by_uuid))
		return;
	if (m->nodes.session != m->session.id)
		m->nodes.session_before = m->nodes.session;
	m->nodes.session = m->session.id;
	r->node.uuid = zkl_uuid_make(m->session.id, m->config.worker_start,
								 ++m->nodes.uuids);
	enter(m, r);
}

void
zkl_node_new(ZklManager *m, ZklRequest *r)
{
	ZKL_ASSERT(r->node.state == ZKL_NODE_NONE && r->ring.cover == NULL);
	zkl_list_remove(&r->node.by_uuid);
	r->node.state = ZKL_NODE_NEW;
	r->node.mode = r->mode;
	r->node.version = 0;
	r->node.seq = -1;
	r->node.czxid = 0;
	r->node.seen = 0;
	r->node.recreate = r->node.alone = false;
	zkl_write_pend(m, &r->node.write, &zkl_node_creation, ZKL_RANK_CREATE);
}

void
zkl_node_resend(ZklManager *m, ZklRequest *r)
{
	ZKL_ASSERT(r->node.state == ZKL_NODE_NEW);
	zkl_write_pend(m, &r->node.write, &zkl_node_creation, ZKL_RANK_RESEND);
}

void
zkl_node_delete(ZklManager *m, ZklRequest *r, ZklWriteRank rank)
{
	ZKL_ASSERT(r->node.state >= ZKL_NODE_EXISTS);
	r->node.state = ZKL_NODE_DELETE;
	zkl_write_pend(m, &r->node.write, &zkl_node_deletion, rank);
}

void
zkl_node_delete_held(ZklRequest *r)
{
	ZKL_ASSERT(r->node.state == ZKL_NODE_EXISTS);
	r->node.state = ZKL_NODE_DELETE;
	zkl_write_hold(&r->node.write, &zkl_node_deletion);
}

void
zkl_node_exists(ZklRequest *r, ZklSeq seq, int64_t czxid)
{
	ZKL_ASSERT(r->node.state == ZKL_NODE_NEW || r->node.state == ZKL_NODE_EXISTS);
	zkl_write_drop(&r->node.write);
	r->node.state = ZKL_NODE_EXISTS;
	r->node.seq = seq;
	r->node.czxid = czxid;
}

void
zkl_node_gone(ZklRequest *r)
{
	zkl_write_drop(&r->node.write);
	zkl_list_remove(&r->node.by_uuid);
	r->node.state = ZKL_NODE_NONE;
}
