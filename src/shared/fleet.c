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
#include "znode/json.h"


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
	appendStringInfo(out, ",\"since\":" INT64_FORMAT ",\"started\":" INT64_FORMAT "}",
					 entry->since_ms, entry->started_us);
}

static bool
read_int(ZklJsonReader *r, int32 *value)
{
	int64		number;

	if (!zkl_json_integer(r, 0, PG_INT32_MAX, &number))
		return false;
	*value = (int32) number;
	return true;
}

typedef struct Reading
{
	ZklFleetEntry *entry;
	bool		ours;
} Reading;

static bool
read_member(ZklJsonReader *r, const char *key, void *arg)
{
	Reading    *reading = arg;
	ZklFleetEntry *entry = reading->entry;

	if (strcmp(key, "zklock") == 0)
		return reading->ours = zkl_json_word(r, "\"fleet\"");
	if (strcmp(key, "server") == 0)
		return zkl_json_string(r, entry->server, sizeof(entry->server));
	if (strcmp(key, "host") == 0)
		return zkl_json_string(r, entry->host, sizeof(entry->host));
	if (strcmp(key, "port") == 0)
		return read_int(r, &entry->port);
	if (strcmp(key, "in_recovery") == 0)
	{
		entry->in_recovery = zkl_json_word(r, "true");
		return entry->in_recovery || zkl_json_word(r, "false");
	}
	if (strcmp(key, "postgresql") == 0)
		return zkl_json_string(r, entry->postgresql, sizeof(entry->postgresql));
	if (strcmp(key, "version") == 0)
		return zkl_json_string(r, entry->zklock, sizeof(entry->zklock));
	if (strcmp(key, "protocol") == 0)
		return read_int(r, &entry->protocol);
	if (strcmp(key, "asked") == 0)
		return read_int(r, &entry->asked_ms);
	if (strcmp(key, "timeout") == 0)
		return read_int(r, &entry->timeout_ms);
	if (strcmp(key, "since") == 0)
		return zkl_json_integer(r, 0, PG_INT64_MAX, &entry->since_ms);
	if (strcmp(key, "started") == 0)
		return zkl_json_integer(r, 0, PG_INT64_MAX, &entry->started_us);
	return zkl_json_skip_value(r);
}

bool
zkl_fleet_read(const char *data, Size length, ZklFleetEntry *entry)
{
	Reading		reading = {entry, false};

	memset(entry, 0, sizeof(*entry));
	if (zkl_json_object(data, length, read_member, &reading) && reading.ours)
		return true;
	memset(entry, 0, sizeof(*entry));
	return false;
}
