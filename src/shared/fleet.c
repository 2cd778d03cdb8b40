/*
 * fleet.c
 *	  What each PostgreSQL server tells the others of itself.
 *
 * Owns the format of the znodes in the directory of the fleet.  Run by the worker,
 * which writes them, and by all that read them.  Takes no locks, keeps no state.
 * Must not know what anybody concludes from them.
 */
#include "postgres.h"

#include "shared/fleet.h"
#include "utils/json.h"
#include "znode/node_data.h"

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
