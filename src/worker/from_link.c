/*
 * from_link.c
 *	  From the link to the core and to operation.c: answers, watch events, and
 *	  the state of the session process.
 *
 * Owns no state.  Runs in the worker only; takes no locks.  It hands everything
 * on: to the core, to operation.c, to errands.c, to the supervisor.  Strings that
 * it makes live in the current memory context, which the loop resets.
 */
#include "postgres.h"

#include "shared/boottime.h"
#include "worker/carry_out.h"
#include "worker/errands.h"
#include "worker/fleet_entry.h"
#include "worker/from_link.h"
#include "worker/link.h"
#include "worker/operation.h"
#include "worker/peer_key.h"
#include "worker/root_watch.h"
#include "worker/supervisor.h"
#include "worker/worker.h"

#define MAX_RESULTS		4096	/* of one multi */

static void
read_stat(ZklWireReader *body, ZklReply *reply, ZklWireStat *stat)
{
	zkl_wire_get_stat(body, stat);
	reply->stat.czxid = stat->czxid;
	reply->stat.mzxid = stat->mzxid;
	reply->stat.ephemeral_owner = stat->ephemeral_owner;
	reply->stat.version = stat->version;
}

static char *
read_text(ZklWireReader *body)
{
	uint32_t	length;
	const char *text = zkl_wire_get_string(body, &length);

	return length > 0 ? pnstrdup(text, length) : NULL;
}

static void
read_multi(ZklWireReader *body, ZklReply *reply, ZklWireStat *stat)
{
	uint32_t	n = zkl_wire_get_u32(body);
	ZklMultiResult *results;
	uint32_t	i;

	n = Min(n, MAX_RESULTS);
	results = palloc0((n + 1) * sizeof(ZklMultiResult));
	for (i = 0; i < n; i++)
	{
		results[i].rc = zkl_wire_get_i32(body);
		results[i].path = read_text(body);
		if (zkl_wire_get_u8(body) != 0)
		{
			ZklReply	other;
			ZklWireStat other_stat;

			read_stat(body, i == 0 ? reply : &other,
					  i == 0 ? stat : &other_stat);
		}
	}
	reply->results = results;
	reply->nresults = body->bad ? 0 : n;
}

static void
read_children(ZklWireReader *body, ZklReply *reply, ZklWireStat *stat)
{
	uint32_t	n = zkl_wire_get_u32(body);
	char	  **children = palloc((Min(n, body->left / 4) + 1) *
								  sizeof(char *));

	for (reply->nchildren = 0; reply->nchildren < n && !body->bad;)
	{
		char	   *child = read_text(body);

		if (child != NULL)
			children[reply->nchildren++] = child;
	}
	reply->children = (const char *const *) children;
	read_stat(body, reply, stat);
	if (body->bad)
		reply->rc = ZKL_RC_UNKNOWN;
}

static void
take_reply(const ZklWireHeader *header, ZklWireReader *body, int64 now)
{
	uint64		tag = header->tag & ZKL_TAG_MASK;
	ZklReply	reply;
	ZklWireStat stat;
	uint32_t	length;

	memset(&reply, 0, sizeof(reply));
	memset(&stat, 0, sizeof(stat));
	reply.rc = header->rc == ZKL_RC_UNSENT ? ZKL_RC_UNKNOWN : header->rc;
	switch ((ZklSendKind) (header->tag >> ZKL_TAG_BITS))
	{
		case ZKL_SEND_MULTI:
			read_multi(body, &reply, &stat);
			break;
		case ZKL_SEND_GET:
			if (reply.rc != ZKL_RC_OK)
				break;
			reply.data = zkl_wire_get_string(body, &length);
			reply.data_length = length;
			read_stat(body, &reply, &stat);
			if (body->bad)
				reply.rc = ZKL_RC_UNKNOWN;
			break;
		case ZKL_SEND_LIST:
		case ZKL_SEND_GET_ACL:
			if (reply.rc == ZKL_RC_OK)
				read_children(body, &reply, &stat);
			break;
		default:
			break;
	}
	if (!zkl_operation_reply(tag, &reply, &stat))
		zkl_worker_tell(ZKL_EVENT(REPLY,.tag = tag,.reply = &reply));
	zkl_supervisor_answered(now);
}

static void
take_event(ZklWireReader *body, int64 now)
{
	uint8_t		kind = zkl_wire_get_u8(body);
	ZklEvent	event = {
		.kind = kind == ZKL_WIRE_EVENT_DELETED ? ZKL_EVENT_DELETED :
		kind == ZKL_WIRE_EVENT_CHILDREN ? ZKL_EVENT_CHILDREN : ZKL_EVENT_CHANGED,
		.path = read_text(body)
	};

	if (event.path == NULL)
		return;
	if (kind != ZKL_WIRE_EVENT_CHANGED)
		zkl_errands_event(event.path);
	if (kind == ZKL_WIRE_EVENT_CHILDREN)
		zkl_fleet_entry_event(event.path);
	else
	{
		zkl_root_watch_event(event.path);
		zkl_peer_key_event(event.path);
	}
	zkl_worker_tell(&event);
}

static void
take_frame(const ZklWireHeader *header, ZklWireReader *body, int64 now)
{
	switch (header->type)
	{
		case ZKL_WIRE_REPLY:
			take_reply(header, body, now);
			break;
		case ZKL_WIRE_EVENT:
			take_event(body, now);
			break;
		default:

			/* The actions until now belong to the old session. */
			zkl_carry_out_actions();
			zkl_supervisor_frame(header, body, now);
			zkl_carry_out_actions();
			break;
	}
}

void
zkl_from_link_take(void)
{
	ZklWireHeader header;
	ZklWireReader body;
	int			got = 0;
	bool		sound = !zkl_link_up() || zkl_link_read();
	int64		now = zkl_boottime_us();

	while (zkl_link_up() && (got = zkl_link_next(&header, &body)) > 0)
		take_frame(&header, &body, now);
	if (zkl_link_up() && (!sound || got < 0))
		zkl_supervisor_link_broken(now);
}
