/*
 * zkrequest.c
 *	  Requests of the worker, and ZooKeeper's answers to them.
 *
 * Owns the requests that wait for an answer.  Runs in zklock_session only.  Takes
 * no lock.  It must not know PostgreSQL, the link's descriptor, how the connection
 * comes and goes (zk.c), locks, leases or retries.
 */
#include <stdio.h>
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

static void
put_stat(const struct Stat *stat)
{
	ZklWireStat wire;

	wire.czxid = stat->czxid;
	wire.mzxid = stat->mzxid;
	wire.ctime = stat->ctime;
	wire.mtime = stat->mtime;
	wire.ephemeral_owner = stat->ephemeralOwner;
	wire.version = stat->version;
	wire.acl_version = stat->aversion;
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
	put_stat(stat);
	zkl_wire_end(zkl_zk.out, frame);
}

static void
strings_done(int rc, const struct String_vector *strings,
			 const struct Stat *stat, const void *data)
{
	uint64_t	tag = finish_single(data);
	size_t		total = sizeof(uint32_t) + sizeof(ZklWireStat);
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
	put_stat(stat);
	zkl_wire_end(zkl_zk.out, frame);
}

static size_t
acl_size(const struct ACL *acl)
{
	return strlen("31::") + strlen(acl->id.scheme) + strlen(acl->id.id);
}

static void
put_acl(const struct ACL *acl)
{
	size_t		size = acl_size(acl) + 1;
	char	   *text = malloc(size);

	if (text == NULL)
	{
		zkl_zk.out->failed = true;
		return;
	}
	snprintf(text, size, "%d:%s:%s", acl->perms & ZOO_PERM_ALL, acl->id.scheme, acl->id.id);
	zkl_wire_put_text(zkl_zk.out, text);
	free(text);
}

static void
acl_done(int rc, struct ACL_vector *acls, struct Stat *stat, const void *data)
{
	uint64_t	tag = finish_single(data);
	size_t		total = sizeof(uint32_t) + sizeof(ZklWireStat);
	size_t		frame;

	for (int i = 0; rc == ZOK && i < acls->count; i++)
		total += sizeof(uint32_t) + acl_size(&acls->data[i]);
	if (total > ZKL_WIRE_MAX_BODY)
		rc = ZMARSHALLINGERROR;
	if (rc != ZOK || zkl_zk.gone)
	{
		reply_empty(tag, rc);
		return;
	}

	frame = zkl_zkstate_begin_frame(ZKL_WIRE_REPLY, tag, ZOK);
	zkl_wire_put_u32(zkl_zk.out, (uint32_t) acls->count);
	for (int i = 0; i < acls->count; i++)
		put_acl(&acls->data[i]);
	put_stat(stat);
	zkl_wire_end(zkl_zk.out, frame);
}

/* ----------
 * Requests about one znode
 * ----------
 */

/*
 * ZooKeeper's rules for a path.  The client knows them too, but frees the
 * path twice when one breaks them in a multi under a chroot.
 */
static bool
is_valid_path(const char *path, size_t length)
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

/* Hands a request other than a MULTI to the client. */
static int
call_client(ZklSendKind kind, const char *path, bool watch, ZklSingle *single)
{
	zhandle_t  *handle = zkl_zk.handle;
	watcher_fn	watcher = watch ? zkl_zkevent_watcher : NULL;

	switch (kind)
	{
		case ZKL_SEND_CREATE_CONTAINER:
			return zoo_acreate(handle, path, "", 0, &zkl_zk.acls,
							   ZOO_CONTAINER, string_done, single);
		case ZKL_SEND_DELETE:
			return zoo_adelete(handle, path, -1, void_done, single);
		case ZKL_SEND_GET:
			return zoo_awget(handle, path, watcher, NULL, data_done, single);
		case ZKL_SEND_LIST:
			return zoo_awget_children2(handle, path, watcher, NULL,
									   strings_done, single);
		case ZKL_SEND_UNWATCH:
		case ZKL_SEND_UNWATCH_CHILDREN:

			/*
			 * zoo_aremove_watches would leave the watch on the server, which
			 * is only asked whether there is one.  The parameter's type is a
			 * slip of zookeeper.h; the function itself is expected.
			 */
			return zoo_aremove_all_watches(handle, path,
										   kind == ZKL_SEND_UNWATCH ?
										   ZWATCHTYPE_DATA :
										   ZWATCHTYPE_CHILD, 0,
										   (void_completion_t *) void_done,
										   single);
		case ZKL_SEND_SYNC:
			return zoo_async(handle, path, string_done, single);
		case ZKL_SEND_GET_ACL:
			return zoo_aget_acl(handle, path, acl_done, single);
		default:
			return ZUNIMPLEMENTED;
	}
}

/* False: the frame is malformed. */
static bool
request_single(ZklSendKind kind, uint64_t tag, ZklWireReader *body)
{
	uint32_t	length;
	const char *bytes = zkl_wire_get_string(body, &length);
	bool		watch = zkl_wire_get_u8(body) != 0;
	ZklSingle  *single;
	char	   *path;
	int			rc = ZBADARGUMENTS;

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

	single->tag = tag;
	if (is_valid_path(bytes, length))
		rc = call_client(kind, path, watch, single);
	free(path);
	if (rc == ZOK)
		zkl_zk.in_flight++;		/* NOLINT: the answer's callback frees it */
	else
	{
		free(single);
		reply_empty(tag, rc);
	}
	return true;
}

/* ----------
 * Transactions
 * ----------
 */

/* What a sequential create may add to its path: 11 characters and a NUL. */
#define SEQUENCE_ROOM	12

/* The least that one operation of a MULTI takes in its body. */
#define MIN_OP_BYTES	13

/* A MULTI in flight; the client writes into what it points to. */
typedef struct ZklMulti
{
	uint64_t	tag;
	uint32_t	count;
	zoo_op_t   *ops;
	zoo_op_result_t *results;
	struct Stat *stats;
	char	   *strings;		/* paths, and room for created paths */
} ZklMulti;

static void
reply_multi(const ZklMulti *multi, int rc)
{
	size_t		frame;

	zkl_zkevent_heed(rc);
	if (zkl_zk.gone)
		return;
	frame = zkl_zkstate_begin_frame(ZKL_WIRE_REPLY, multi->tag, rc);
	zkl_wire_put_u32(zkl_zk.out, multi->count);
	for (uint32_t i = 0; i < multi->count; i++)
	{
		const zoo_op_result_t *result = &multi->results[i];
		int			type = multi->ops[i].type;
		bool		good = rc == ZOK && result->err == ZOK;
		bool		created = good && type == ZOO_CREATE_OP && result->value;
		bool		has_stat = good && type == ZOO_SETDATA_OP && result->stat;

		zkl_wire_put_i32(zkl_zk.out, result->err);
		zkl_wire_put_string(zkl_zk.out, result->value,
							created ? strlen(result->value) : 0);
		zkl_wire_put_u8(zkl_zk.out, has_stat);
		if (has_stat)
			put_stat(result->stat);
	}
	zkl_wire_end(zkl_zk.out, frame);
}

static void
multi_done(int rc, const void *data)
{
	zkl_zk.in_flight--;
	reply_multi(data, rc);
	free((void *) data);
}

/* One block holds it all, with room for whatever "body" can ask for. */
static ZklMulti *
multi_allocate(uint64_t tag, uint32_t count, size_t body)
{
	size_t		ops = sizeof(ZklMulti);
	size_t		results = ops + count * sizeof(zoo_op_t);
	size_t		stats = results + count * sizeof(zoo_op_result_t);
	size_t		strings = stats + count * sizeof(struct Stat);
	size_t		room = 2 * body + count * (size_t) (SEQUENCE_ROOM + 1);
	char	   *block = malloc(strings + room);
	ZklMulti   *multi = (ZklMulti *) block;

	if (block == NULL)
		return NULL;

	/*
	 * The client leaves the results behind a failed operation alone, so they
	 * must be zero before.
	 */
	memset(block, 0, strings);
	multi->tag = tag;
	multi->count = count;
	multi->ops = (zoo_op_t *) (block + ops);
	multi->results = (zoo_op_result_t *) (block + results);
	multi->stats = (struct Stat *) (block + stats);
	multi->strings = block + strings;
	return multi;
}

static int
create_mode(ZklMultiKind kind)
{
	if (kind == ZKL_MULTI_CREATE)
		return ZOO_EPHEMERAL_SEQUENTIAL;
	return kind == ZKL_MULTI_CREATE_PERSISTENT || kind == ZKL_MULTI_CREATE_SECRET ?
		ZOO_PERSISTENT : ZOO_EPHEMERAL;
}

/*
 * Reads operation i, its strings going to *strings.  False when its path is
 * refused.  A kind that does not exist sets body->bad.
 */
static bool
multi_read_op(ZklMulti *multi, uint32_t i, ZklWireReader *body,
			  char **strings)
{
	zoo_op_t   *op = &multi->ops[i];
	ZklMultiKind kind = (ZklMultiKind) zkl_wire_get_u8(body);
	uint32_t	path_length;
	uint32_t	data_length;
	const char *bytes = zkl_wire_get_string(body, &path_length);
	const char *data = zkl_wire_get_string(body, &data_length);
	int32_t		version = zkl_wire_get_i32(body);
	char	   *path = *strings;
	char	   *created = path + path_length + 1;

	if (body->bad)
		return false;
	memcpy(path, bytes, path_length);
	path[path_length] = '\0';
	*strings = created;

	switch (kind)
	{
		case ZKL_MULTI_SET:
			zoo_set_op_init(op, path, data, (int) data_length, version,
							&multi->stats[i]);
			break;
		case ZKL_MULTI_DELETE:
			zoo_delete_op_init(op, path, version);
			break;
		case ZKL_MULTI_CHECK:
			zoo_check_op_init(op, path, version);
			break;
		case ZKL_MULTI_CREATE:
		case ZKL_MULTI_CREATE_EPHEMERAL:
		case ZKL_MULTI_CREATE_PERSISTENT:
		case ZKL_MULTI_CREATE_PRIVATE:
		case ZKL_MULTI_CREATE_SECRET:
			zoo_create_op_init(op, path, data, (int) data_length,
							   kind == ZKL_MULTI_CREATE_PRIVATE ||
							   kind == ZKL_MULTI_CREATE_SECRET ?
							   &zkl_zk.private_acls : &zkl_zk.acls,
							   create_mode(kind), created,
							   (int) path_length + SEQUENCE_ROOM);
			*strings = created + path_length + SEQUENCE_ROOM;
			break;
		default:
			body->bad = true;
			return false;
	}
	return is_valid_path(path, path_length);
}

/* A batch that the client refuses is answered as if the server had. */
static void
multi_refuse(ZklMulti *multi, uint32_t at, int rc)
{
	for (uint32_t i = at; i < multi->count; i++)
		multi->results[i].err = i == at ? rc : ZRUNTIMEINCONSISTENCY;
	reply_multi(multi, rc);
	free(multi);
}

/* False: the frame is malformed. */
static bool
request_multi(uint64_t tag, ZklWireReader *body)
{
	uint32_t	count = zkl_wire_get_u32(body);
	uint32_t	refused;
	ZklMulti   *multi;
	char	   *strings;
	int			rc;

	if (body->bad || count > body->left / MIN_OP_BYTES)
		return false;
	multi = multi_allocate(tag, count, body->left);
	if (multi == NULL)
		return false;

	refused = count;
	strings = multi->strings;
	for (uint32_t i = 0; i < count; i++)
		if (!multi_read_op(multi, i, body, &strings) && refused == count)
			refused = i;
	if (body->bad || body->left != 0)
	{
		free(multi);
		return false;
	}

	if (refused < count)
	{
		multi_refuse(multi, refused, ZBADARGUMENTS);
		return true;
	}
	rc = zoo_amulti(zkl_zk.handle, (int) count, multi->ops, multi->results,
					multi_done, multi);
	if (rc == ZOK)
		zkl_zk.in_flight++;
	else
		multi_refuse(multi, 0, rc);
	return true;
}

/* ----------
 * All of them
 * ----------
 */

static bool
run_send(const ZklWireHeader *header, ZklWireReader *body)
{
	ZklSendKind kind = (ZklSendKind) zkl_wire_get_u8(body);

	return kind == ZKL_SEND_MULTI ? request_multi(header->tag, body) :
		request_single(kind, header->tag, body);
}

/*
 * With answers still to come, closing would reset the connection on their
 * arrival, perhaps before the server reads the request.
 */
static void
run_close(void)
{
	if (zkl_zk.in_flight > 0)
		zkl_zk.closing = true;
	else
		zkl_zk_close();
}

bool
zkl_zkrequest_run(const ZklWireHeader *header, ZklWireReader *body)
{
	bool		ours = header->generation == zkl_zk.generation;
	bool		ready = ours && zkl_zk.connected && !zkl_zk.closing;

	switch (header->type)
	{
		case ZKL_WIRE_SEND:
			if (ready)
				return run_send(header, body);
			reply_empty(header->tag, ZKL_RC_UNSENT);
			return true;

		case ZKL_WIRE_PING:
			if (ours)
				zkl_wire_end(zkl_zk.out,
							 zkl_zkstate_begin_frame(ZKL_WIRE_PONG, header->tag, 0));
			return true;

		case ZKL_WIRE_ASK_VERSION:
			if (ready)
				zkl_zk_ask_version();
			return true;

		case ZKL_WIRE_WANT_LOG:
			zkl_zkevent_want_log(zkl_wire_get_u8(body) != 0);
			return !body->bad && body->left == 0;

		case ZKL_WIRE_CLOSE:
			if (ours)
				run_close();
			return true;

		default:
			return false;
	}
}
