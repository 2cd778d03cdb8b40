/*
 * history.c
 *	  Which turns of a job were used up: the data of its history's znode.
 *
 * Owns the format.  Run by backends.  Takes no locks, keeps no state.  Must not
 * know where the data is kept, nor who may change it.
 */
#include "postgres.h"

#include "datatype/timestamp.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "recipes/history.h"
#include "shared/settings.h"
#include "utils/json.h"
#include "znode/json.h"

#define RUN_ID_BYTES	16
#define MAX_ROLE_JSON	300		/* a longer one leaves too little room */

/* As µs since 2000 it fits, and is a time of PostgreSQL's. */
#define MAX_TIME_MS		(PG_INT64_MAX / 1000 - INT64CONST(946857600000))

/* Clocks of several ZooKeeper servers that are in order differ by less. */
#define MAX_AHEAD_US	(60 * USECS_PER_SEC)

/* ---- reading ---- */

static bool
read_keys(ZklJsonReader *r, ZklHistory *history)
{
	if (!zkl_json_take(r, '['))
		return false;
	if (zkl_json_take(r, ']'))
		return true;
	do
	{
		if (history->nkeys == ZKL_HISTORY_KEYS ||
			!zkl_json_string(r, history->keys[history->nkeys++],
							 ZKL_MAX_RUN_KEY + 1))
			return false;
	} while (zkl_json_take(r, ','));
	return zkl_json_take(r, ']');
}

typedef struct Reading
{
	ZklHistory *history;
	bool		ours;
} Reading;

static bool
read_history_member(ZklJsonReader *r, const char *name, void *arg)
{
	Reading    *reading = arg;
	ZklHistory *history = reading->history;

	if (strcmp(name, "zklock") == 0)
		return reading->ours = zkl_json_word(r, "\"once\"");
	if (strcmp(name, "server") == 0)
		return zkl_json_string(r, history->server, sizeof(history->server));
	if (strcmp(name, "pid") == 0)
		return zkl_json_integer(r, 0, PG_INT32_MAX, &history->pid);
	if (strcmp(name, "role") == 0)
		return zkl_json_string(r, history->role, sizeof(history->role));
	if (strcmp(name, "at") == 0)
		return zkl_json_integer(r, 0, MAX_TIME_MS, &history->at);
	if (strcmp(name, "period_at") == 0)
		return zkl_json_integer(r, 0, MAX_TIME_MS, &history->period_at);
	if (strcmp(name, "keys") == 0)
		return read_keys(r, history);
	return zkl_json_skip_value(r);
}

bool
zkl_history_read(const char *data, Size length, ZklHistory *history)
{
	Reading		reading = {history, false};

	memset(history, 0, sizeof(*history));
	return length == 0 ||
		(zkl_json_object(data, length, read_history_member, &reading) &&
		 reading.ours);
}

/* ---- deciding ---- */

/*
 * Clocks can go back, also ZooKeeper's, when another server leads: then the
 * last period that was used is still used.
 */
bool
zkl_history_has(const ZklHistory *history, const ZklTurnId *turn, int64 now_ms)
{
	uint32		i;

	if (!zkl_period_is_none(&turn->period))
		return history->period_at > 0 &&
			zkl_period_number(&turn->period, history->period_at) >=
			zkl_period_number(&turn->period, now_ms);
	for (i = 0; i < history->nkeys; i++)
	{
		if (strcmp(history->keys[i], turn->key) == 0)
			return true;
	}
	return false;
}

bool
zkl_history_is_ahead(const ZklHistory *history, const ZklTurnId *turn,
					 int64 now_ms)
{
	return !zkl_period_is_none(&turn->period) &&
		history->period_at - now_ms >
		Min(zkl_period_least_us(&turn->period), MAX_AHEAD_US) / 1000;
}

/* ---- writing ---- */

static void
put_role(StringInfo out, const char *role)
{
	int			before = out->len;

	if (role[0] == '\0')
		return;
	appendStringInfoString(out, ",\"role\":");
	escape_json(out, role);
	if (out->len - before <= MAX_ROLE_JSON)
		return;
	out->len = before;
	out->data[before] = '\0';
}

static void
put_run(StringInfo out, const char *role)
{
	uint8		run[RUN_ID_BYTES];
	int			i;

	if (!pg_strong_random(run, sizeof(run)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	appendStringInfoString(out, "{\"zklock\":\"once\",\"run\":\"");
	for (i = 0; i < RUN_ID_BYTES; i++)
		appendStringInfo(out, "%02x", run[i]);
	appendStringInfoString(out, "\",\"server\":");
	escape_json(out, zkl_settings_server_name());
	appendStringInfo(out, ",\"pid\":%d", MyProcPid);
	put_role(out, role);
}

static uint32
put_data(StringInfo out, char *data)
{
	uint32		length = (uint32) out->len;

	memcpy(data, out->data, length);
	pfree(out->data);
	return length;
}

/* Adds a key if it fits, and two brackets behind it. */
static bool
put_key(StringInfo out, const char *key)
{
	int			before = out->len;

	if (out->data[before - 1] != '[')
		appendStringInfoChar(out, ',');
	escape_json(out, key);
	if (out->len + 2 <= ZKL_MAX_NODE_DATA)
		return true;
	out->len = before;
	out->data[before] = '\0';
	return false;
}

uint32
zkl_history_write(const ZklHistory *history, const ZklTurnId *turn,
				  int64 now_ms, char *data)
{
	StringInfoData out;
	bool		has_key = zkl_period_is_none(&turn->period);
	uint32		nkeys = 0,
				i;

	initStringInfo(&out);
	put_run(&out, history->role);
	appendStringInfo(&out, ",\"at\":" INT64_FORMAT, now_ms);
	appendStringInfo(&out, ",\"period_at\":" INT64_FORMAT ",\"keys\":[",
					 has_key ? history->period_at : now_ms);
	if (has_key && put_key(&out, turn->key))
		nkeys++;
	for (i = 0; i < history->nkeys && nkeys < ZKL_HISTORY_KEYS; i++, nkeys++)
	{
		if (!put_key(&out, history->keys[i]))
			break;
	}
	appendStringInfoString(&out, "]}");
	return put_data(&out, data);
}

uint32
zkl_history_write_empty(const char *role, char *data)
{
	StringInfoData out;

	initStringInfo(&out);
	put_run(&out, role);
	appendStringInfoString(&out, ",\"reset\":true,\"period_at\":0,\"keys\":[]}");
	return put_data(&out, data);
}
