/*
 * zkrequest.c
 *	  Requests of the worker, and ZooKeeper's answers to them.
 *
 * Owns the requests that wait for an answer, but for zkmulti.c's.  Runs in
 * zklock_session only.  Takes no lock.  It must not know PostgreSQL, the link's
 * descriptor, how the connection comes and goes (zk.c), locks, leases or
 * retries.
 */
#include <stdlib.h>
#include <string.h>

#include "session/zkstate.h"

/* A request in flight, other than a MULTI. */
typedef struct ZklSingle
{
	uint64_t	tag;
} ZklSingle;

/* ----------
 * Answers
 * ----------
 */

/* Once GONE is sent, what was not answered before stays unknown. */
static void
reply_empty(uint64_t tag, int rc)
{
	zkl_zkevent_heed(rc);
	if (zkl_zk.gone)
		return;
	zkl_wire_end(zkl_zk.out, zkl_zkstate_begin_frame(ZKL_WIRE_REPLY, tag, rc));
}

/* Says that a request was not executed; always true. */
static bool
reply_unsent(const ZklWireHeader *header)
{
	size_t		frame;

	if (zkl_zk.gone)
		return true;
	frame = zkl_zkstate_begin_frame(ZKL_WIRE_REPLY, header->tag, ZKL_RC_UNSENT);
	if (header->type == ZKL_WIRE_MULTI)
		zkl_wire_put_u32(zkl_zk.out, 0);
	zkl_wire_end(zkl_zk.out, frame);
	return true;
}

void
zkl_zkrequest_put_stat(const struct Stat *stat)
{
	ZklWireStat wire;

	wire.czxid = stat->czxid;
	wire.mzxid = stat->mzxid;
	wire.ctime = stat->ctime;
	wire.mtime = stat->mtime;
	wire.ephemeral_owner = stat->ephemeralOwner;
	wire.version = stat->version;
	zkl_wire_put_stat(zkl_zk.out, &wire);
}

static uint64_t
finish_single(const void *data)
{
	uint64_t	tag = ((const ZklSingle *) data)->tag;

	free((void *) data);
	zkl_zk.in_flight--;
	return tag;
}

static void
void_done(int rc, const void *data)
{
	reply_empty(finish_single(data), rc);
}

static void
string_done(int rc, const char *value, const void *data)
{
	(void) value;
	reply_empty(finish_single(data), rc);
}

static void
data_done(int rc, const char *value, int length, const struct Stat *stat,
		  const void *data)
{
	uint64_t	tag = finish_single(data);
	size_t		frame;

	if (length < 0)
		length = 0;				/* a node without data */
	if (rc == ZOK && length > ZKL_WIRE_MAX_BODY - 64)
		rc = ZMARSHALLINGERROR;
	if (rc != ZOK || zkl_zk.gone)
	{
		reply_empty(tag, rc);
		return;
	}

	frame = zkl_zkstate_begin_frame(ZKL_WIRE_REPLY, tag, ZOK);
	zkl_wire_put_string(zkl_zk.out, value, (size_t) length);
	zkl_zkrequest_put_stat(stat);
	zkl_wire_end(zkl_zk.out, frame);
}

static void
strings_done(int rc, const struct String_vector *strings, const void *data)
{
	uint64_t	tag = finish_single(data);
	size_t		total = sizeof(uint32_t);
	size_t		frame;

	for (int i = 0; rc == ZOK && i < strings->count; i++)
		total += sizeof(uint32_t) + strlen(strings->data[i]);
	if (total > ZKL_WIRE_MAX_BODY)
		rc = ZMARSHALLINGERROR;
	if (rc != ZOK || zkl_zk.gone)
	{
		reply_empty(tag, rc);
		return;
	}

	frame = zkl_zkstate_begin_frame(ZKL_WIRE_REPLY, tag, ZOK);
	zkl_wire_put_u32(zkl_zk.out, (uint32_t) strings->count);
	for (int i = 0; i < strings->count; i++)
		zkl_wire_put_string(zkl_zk.out, strings->data[i],
							strlen(strings->data[i]));
	zkl_wire_end(zkl_zk.out, frame);
}

/* ----------
 * Requests
 * ----------
 */

bool
zkl_zkrequest_path_is_valid(const char *path, size_t length)
{
	const char *segment = path + 1;
	const char *end = path + length;

	if (length == 0 || path[0] != '/')
		return false;
	if (length == 1)
		return true;

	for (const char *p = segment; p <= end; p++)
	{
		if (p < end && *p != '/')
		{
			if ((unsigned char) *p < 0x20)
				return false;
			continue;
		}
		if (p == segment ||
			(p - segment == 1 && segment[0] == '.') ||
			(p - segment == 2 && segment[0] == '.' && segment[1] == '.'))
			return false;
		segment = p + 1;
	}
	return true;
}

/*
 * Hands a request other than a MULTI to the client.  "flag": whether a read
 * sets a watch, and whether it is the one on the children that is removed.
 */
static int
call_client(ZklWireType type, const char *path, bool flag, ZklSingle *single)
{
	zhandle_t  *handle = zkl_zk.handle;
	watcher_fn	watcher = flag ? zkl_zkevent_watcher : NULL;

	switch (type)
	{
		case ZKL_WIRE_CREATE_CONTAINER:
			return zoo_acreate(handle, path, "", 0, &zkl_zk.acls,
							   ZOO_CONTAINER, string_done, single);
		case ZKL_WIRE_DELETE:
			return zoo_adelete(handle, path, -1, void_done, single);
		case ZKL_WIRE_GET:
			return zoo_awget(handle, path, watcher, NULL, data_done, single);
		case ZKL_WIRE_LIST:
			return zoo_awget_children(handle, path, watcher, NULL,
									  strings_done, single);
		case ZKL_WIRE_UNWATCH:

			/*
			 * zoo_aremove_watches would leave the watch on the server, which
			 * is only asked whether there is one.  The parameter's type is a
			 * slip of zookeeper.h; the function itself is expected.
			 */
			return zoo_aremove_all_watches(handle, path, flag ?
										   ZWATCHTYPE_CHILD :
										   ZWATCHTYPE_DATA, 0,
										   (void_completion_t *) void_done,
										   single);
		case ZKL_WIRE_SYNC:
			return zoo_async(handle, path, string_done, single);
		default:
			return ZUNIMPLEMENTED;
	}
}

static bool
request_single(const ZklWireHeader *header, ZklWireReader *body)
{
	uint32_t	length;
	const char *bytes = zkl_wire_get_string(body, &length);
	bool		flag = false;
	ZklSingle  *single;
	char	   *path;
	int			rc = ZBADARGUMENTS;

	if (header->type == ZKL_WIRE_GET || header->type == ZKL_WIRE_LIST ||
		header->type == ZKL_WIRE_UNWATCH)
		flag = zkl_wire_get_u8(body) != 0;
	if (body->bad || body->left != 0)
		return false;

	single = malloc(sizeof(*single));
	path = strndup(bytes, length);
	if (single == NULL || path == NULL)
	{
		free(single);
		free(path);
		return false;
	}

	single->tag = header->tag;
	if (zkl_zkrequest_path_is_valid(bytes, length))
		rc = call_client((ZklWireType) header->type, path, flag, single);
	free(path);
	if (rc == ZOK)
		zkl_zk.in_flight++;		/* NOLINT: the answer's callback frees it */
	else
	{
		free(single);
		reply_empty(header->tag, rc);
	}
	return true;
}

bool
zkl_zkrequest_run(const ZklWireHeader *header, ZklWireReader *body)
{
	bool		ours = header->generation == zkl_zk.generation;
	bool		ready = ours && zkl_zk.connected && !zkl_zk.closing;

	switch (header->type)
	{
		case ZKL_WIRE_MULTI:
			return ready ? zkl_zkmulti_request(header->tag, body) :
				reply_unsent(header);

		case ZKL_WIRE_CREATE_CONTAINER:
		case ZKL_WIRE_DELETE:
		case ZKL_WIRE_GET:
		case ZKL_WIRE_LIST:
		case ZKL_WIRE_UNWATCH:
		case ZKL_WIRE_SYNC:
			return ready ? request_single(header, body) :
				reply_unsent(header);

		case ZKL_WIRE_PING:
			if (!ours)
				return reply_unsent(header);
			zkl_wire_end(zkl_zk.out,
						 zkl_zkstate_begin_frame(ZKL_WIRE_PONG, header->tag, 0));
			return true;

		case ZKL_WIRE_ASK_VERSION:
			if (ready)
				zkl_zk_ask_version();
			return true;

		case ZKL_WIRE_WANT_LOG:
			zkl_zklog_want(zkl_wire_get_u8(body) != 0);
			return !body->bad && body->left == 0;

		case ZKL_WIRE_CLOSE:
			if (!ours)
				return reply_unsent(header);

			/*
			 * With answers still to come, closing would reset the connection
			 * on their arrival, perhaps before the server reads the request.
			 */
			if (zkl_zk.in_flight > 0)
				zkl_zk.closing = true;
			else
				zkl_zk_close();
			return true;

		default:
			return false;
	}
}
