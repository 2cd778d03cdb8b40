/*
 * fleet.c
 *	  What the servers of a fleet share: the settings of the root, and what each
 *	  tells of itself.
 *
 * Owns ctl_root, ctl_root_state, ctl_peer_counts, and the formats of the znodes of
 * the root and in the directory of the fleet.  The worker writes them, backends
 * copy.  Takes no locks.  Must not know what anybody concludes from them.
 */
#include "postgres.h"

#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/fleet.h"
#include "utils/json.h"
#include "znode/node_data.h"
#include "znode/zkapi.h"

/* ---- root ---- */

/*
 * The settings of the root: their format, and what this server knows of them.
 *
 * The worker writes, backends copy.
 *
 * Must not know what follows if the settings differ.
 */

/* ---- the format ---- */

void
zkl_root_put(StringInfo out, const ZklRoot *root)
{
	appendStringInfo(out, "{\"zklock\":\"settings\",\"protocol\":%d,\"dialects\":",
					 ZKL_ZNODE_PROTOCOL);
	escape_json(out, root->dialects);
	if (root->is_changing)
	{
		appendStringInfoString(out, ",\"changing\":");
		escape_json(out, root->changing);
	}
	appendStringInfoChar(out, '}');
}

/* A list as this server would have written it; of another one nothing is known. */
static bool
read_list(ZklJsonReader *r, char *list)
{
	char		text[ZKL_MAX_DIALECTS + 5]; /* a longer one is cut in here */

	if (!zkl_json_string(r, text, sizeof(text)) ||
		zkl_dialect_check_list(text) != NULL)
		return false;
	zkl_dialect_normalize(text, list);
	return strcmp(text, list) == 0;
}

typedef struct RootRead
{
	ZklRoot    *root;
	bool		ours;
	bool		protocol;
	bool		dialects;
} RootRead;

static bool
read_root_member(ZklJsonReader *r, const char *key, void *to)
{
	RootRead   *found = to;
	int64		protocol;

	if (strcmp(key, "zklock") == 0)
		return found->ours = zkl_json_word(r, "\"settings\"");
	if (strcmp(key, "protocol") == 0)
		return found->protocol = zkl_json_integer(r, 1, ZKL_ZNODE_PROTOCOL, &protocol);
	if (strcmp(key, "dialects") == 0)
		return found->dialects = read_list(r, found->root->dialects);
	if (strcmp(key, "changing") == 0)
		return found->root->is_changing = read_list(r, found->root->changing);
	return zkl_json_skip_value(r);
}

bool
zkl_root_read(const char *data, Size length, ZklRoot *root)
{
	RootRead	found = {root, false, false, false};

	memset(root, 0, sizeof(*root));
	return zkl_json_object(data, length, read_root_member, &found) &&
		found.ours && found.protocol && found.dialects;
}

const char *
zkl_root_own_dialects(void)
{
	static char own[ZKL_MAX_DIALECTS + 1];

	zkl_dialect_normalize(zkl_dialects, own);
	return own;
}

/* ---- in shared memory ---- */

ZklRootState
zkl_root_state(void)
{
	return (ZklRootState) pg_atomic_read_u32(&zkl_control->ctl_root_state);
}

bool
zkl_root_copy(ZklRoot *root, int32 *rc)
{
	uint32		number;
	bool		known;

	do
	{
		number = zkl_changes_so_far(&zkl_control->ctl_changes);
		*root = zkl_control->ctl_root;
		*rc = zkl_control->ctl_root_rc;
		known = zkl_control->ctl_root_known;
	} while (zkl_changes_since(&zkl_control->ctl_changes, number));
	return known;
}

static void
set_state(ZklRootState state)
{
	pg_atomic_write_u32(&zkl_control->ctl_root_state, (uint32) state);
	pg_memory_barrier();
}

void
zkl_root_publish(const ZklRoot *root, int32 rc)
{
	zkl_changes_begin(&zkl_control->ctl_changes);
	if (root != NULL)
	{
		zkl_control->ctl_root = *root;
		zkl_control->ctl_root_known = true;
	}
	zkl_control->ctl_root_rc = rc;
	zkl_changes_end(&zkl_control->ctl_changes);
	set_state(root == NULL ? ZKL_ROOT_UNREADABLE :
			  root->is_changing ||
			  strcmp(root->dialects, zkl_root_own_dialects()) != 0 ?
			  ZKL_ROOT_DIFFERS : ZKL_ROOT_SAME);
}

void
zkl_root_forget(void)
{
	set_state(ZKL_ROOT_UNKNOWN);
}

/* ---- requests ---- */

bool
zkl_root_is_internal(const char *path, bool guard)
{
	return guard || path[1] == '.';
}

bool
zkl_root_concerns(ZklDialect dialect, const char *path, bool guard)
{
	return dialect < ZKL_LOCK_DIALECTS && !zkl_root_is_internal(path, guard);
}

bool
zkl_root_is_awaited(const ZklSlot *slot)
{
	return zkl_root_state() == ZKL_ROOT_UNKNOWN && !slot->s_holder.taken &&
		zkl_root_concerns((ZklDialect) slot->s_request.dialect,
						  slot->s_request.path, slot->s_request.guard);
}

bool
zkl_root_admits(const ZklSlot *slot)
{
	ZklDialect	dialect = (ZklDialect) slot->s_request.dialect;
	const char *path = slot->s_request.path;
	ZklRootState state = zkl_root_state();
	ZklRoot		root;
	int32		rc;

	if (state != ZKL_ROOT_DIFFERS)
		return state == ZKL_ROOT_SAME || !zkl_root_concerns(dialect, path, false);
	return zkl_root_copy(&root, &rc) && zkl_dialect_find(root.dialects, path) == dialect &&
		(!root.is_changing || zkl_dialect_find(root.changing, path) == dialect);
}

/* ---- fleet: what each PostgreSQL server tells the others of itself ---- */

/* ---- names ---- */

void
zkl_fleet_name(uint64 system, int64 session_id, char *buf)
{
	snprintf(buf, ZKL_MAX_FLEET_ZNODE + 1, UINT64_FORMAT ".%016llx", system,
			 (unsigned long long) session_id);
}

/* Servers of the fleet write a name in one way only. */
bool
zkl_fleet_read_name(const char *name, uint64 *system, int64 *session_id)
{
	char		again[ZKL_MAX_FLEET_ZNODE + 1];
	char	   *dot;

	*system = (uint64) strtoull(name, &dot, 10);
	if (*dot != '.')
		return false;
	*session_id = (int64) strtoull(dot + 1, NULL, 16);
	zkl_fleet_name(*system, *session_id, again);
	return strcmp(name, again) == 0;
}

/* ---- data ---- */

static void
put_text(StringInfo out, const char *key, const char *value)
{
	appendStringInfo(out, ",\"%s\":", key);
	escape_json(out, value);
}

void
zkl_fleet_put(StringInfo out, const ZklFleetEntry *entry)
{
	appendStringInfoString(out, "{\"zklock\":\"fleet\"");
	put_text(out, "server", entry->server);
	put_text(out, "host", entry->host);
	appendStringInfo(out, ",\"port\":%d,\"in_recovery\":%s", entry->port,
					 entry->in_recovery ? "true" : "false");
	put_text(out, "postgresql", entry->postgresql);
	put_text(out, "version", entry->zklock);
	appendStringInfo(out, ",\"protocol\":%d,\"asked\":%d,\"timeout\":%d",
					 entry->protocol, entry->asked_ms, entry->timeout_ms);
	appendStringInfo(out, ",\"since\":" INT64_FORMAT ",\"started\":" INT64_FORMAT,
					 entry->since_ms, entry->started_us);
	if (entry->peer[0] != '\0')
		put_text(out, "peer", entry->peer);
	appendStringInfoChar(out, '}');
}

#define FIELD(key, type, field)	ZKL_JSON_FIELD(key, type, ZklFleetEntry, field)

static const ZklJsonField fields[] = {
	FIELD("server", ZKL_JSON_STRING, server),
	FIELD("host", ZKL_JSON_STRING, host),
	FIELD("port", ZKL_JSON_COUNT, port),
	FIELD("in_recovery", ZKL_JSON_BOOL, in_recovery),
	FIELD("postgresql", ZKL_JSON_STRING, postgresql),
	FIELD("version", ZKL_JSON_STRING, zklock),
	FIELD("protocol", ZKL_JSON_COUNT, protocol),
	FIELD("asked", ZKL_JSON_COUNT, asked_ms),
	FIELD("timeout", ZKL_JSON_COUNT, timeout_ms),
	FIELD("since", ZKL_JSON_COUNT64, since_ms),
	FIELD("started", ZKL_JSON_COUNT64, started_us),
	FIELD("peer", ZKL_JSON_STRING, peer)
};

typedef struct FleetRead
{
	ZklFleetEntry *entry;
	bool		ours;
} FleetRead;

static bool
read_fleet_member(ZklJsonReader *r, const char *key, void *to)
{
	FleetRead  *fleet = to;
	bool		known;
	bool		good = zkl_json_field(r, key, fields, lengthof(fields),
									  fleet->entry, &known);

	if (known)
		return good;
	if (strcmp(key, "zklock") == 0)
		return fleet->ours = zkl_json_word(r, "\"fleet\"");
	return zkl_json_skip_value(r);
}

bool
zkl_fleet_read(const char *data, Size length, ZklFleetEntry *entry)
{
	FleetRead	fleet = {entry, false};

	memset(entry, 0, sizeof(*entry));
	if (zkl_json_object(data, length, read_fleet_member, &fleet) && fleet.ours)
		return true;
	memset(entry, 0, sizeof(*entry));
	return false;
}

/* ---- peer_count ---- */

/*
 * Whether other servers answer what this one asks them, in messages.
 *
 * The worker writes, backends copy.
 *
 * Must not know what is asked, nor where a server hears.
 */

#define ECHO_PAUSE_MS	1000	/* from one ask that is to be echoed to the
								 * next one */

/* The place of a session; NULL: it has none */
static ZklPeerCount *
find_place(int64 session)
{
	ZklPeerCount *counts = zkl_control->ctl_peer_counts;

	for (int i = 0; i < ZKL_MAX_PEER_COUNTS; i++)
	{
		if (counts[i].session == session)
			return &counts[i];
	}
	return NULL;
}

/* A free one, or that of the server that was not asked for longest */
static ZklPeerCount *
oldest_place(void)
{
	ZklPeerCount *counts = zkl_control->ctl_peer_counts;
	ZklPeerCount *oldest = counts;

	for (int i = 1; i < ZKL_MAX_PEER_COUNTS; i++)
	{
		if (counts[i].asked_ms < oldest->asked_ms)
			oldest = &counts[i];
	}
	return oldest;
}

bool
zkl_peer_count_ask(int64 session)
{
	ZklPeerCount *count = find_place(session);
	int64		now = zkl_boottime_ms();

	if (count != NULL && now - count->asked_ms < ECHO_PAUSE_MS)
		return false;
	zkl_changes_begin(&zkl_control->ctl_changes);
	if (count == NULL)
	{
		count = oldest_place();
		memset(count, 0, sizeof(*count));
		count->session = session;
	}
	if (count->unanswered++ == 0)
		count->since_ms = now;
	count->asked_ms = now;
	zkl_changes_end(&zkl_control->ctl_changes);
	return true;
}

void
zkl_peer_count_heard(int64 session)
{
	ZklPeerCount *count = find_place(session);

	if (count == NULL || count->unanswered == 0)
		return;
	zkl_changes_begin(&zkl_control->ctl_changes);
	count->unanswered = 0;
	zkl_changes_end(&zkl_control->ctl_changes);
}

bool
zkl_peer_count_copy(int64 session, ZklPeerCount *copy)
{
	const ZklPeerCount *count;
	uint32		number;

	do
	{
		number = zkl_changes_so_far(&zkl_control->ctl_changes);
		count = find_place(session);
		if (count != NULL)
			*copy = *count;
	} while (zkl_changes_since(&zkl_control->ctl_changes, number));
	return count != NULL && session != 0;
}
