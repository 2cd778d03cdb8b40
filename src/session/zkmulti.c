/*
 * zkmulti.c
 *	  One transaction of ZooKeeper's for the worker: a MULTI, and its answer.
 *
 * Owns the transactions that wait for an answer.  Runs in zklock_session only.
 * Takes no lock.  It must not know PostgreSQL, the link's descriptor, how the
 * connection comes and goes (zk.c), nor what a batch is for.
 */
#include <stdlib.h>
#include <string.h>

#include "session/zkstate.h"

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
			zkl_zkrequest_put_stat(result->stat);
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
create_mode(uint8_t kind)
{
	if (kind == ZKL_WIRE_OP_CREATE)
		return ZOO_EPHEMERAL_SEQUENTIAL;
	return kind == ZKL_WIRE_OP_CREATE_PERSISTENT ? ZOO_PERSISTENT :
		ZOO_EPHEMERAL;
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
	uint8_t		kind = zkl_wire_get_u8(body);
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
		case ZKL_WIRE_OP_SET:
			zoo_set_op_init(op, path, data, (int) data_length, version,
							&multi->stats[i]);
			break;
		case ZKL_WIRE_OP_DELETE:
			zoo_delete_op_init(op, path, version);
			break;
		case ZKL_WIRE_OP_CHECK:
			zoo_check_op_init(op, path, version);
			break;
		case ZKL_WIRE_OP_CREATE:
		case ZKL_WIRE_OP_CREATE_EPHEMERAL:
		case ZKL_WIRE_OP_CREATE_PERSISTENT:
		case ZKL_WIRE_OP_CREATE_PRIVATE:
			zoo_create_op_init(op, path, data, (int) data_length,
							   kind == ZKL_WIRE_OP_CREATE_PRIVATE ?
							   &zkl_zk.private_acls : &zkl_zk.acls,
							   create_mode(kind), created,
							   (int) path_length + SEQUENCE_ROOM);
			*strings = created + path_length + SEQUENCE_ROOM;
			break;
		default:
			body->bad = true;
			return false;
	}
	return zkl_zkrequest_path_is_valid(path, path_length);
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

bool
zkl_zkmulti_request(uint64_t tag, ZklWireReader *body)
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
