/*
 * queuefuncs.c
 *	  The set-returning functions zk_queue() and zk_fleet_locks(): who has a
 *	  lock, and who waits.
 *
 * Decides what a role may see of the queue of a lock or a semaphore, and of the
 * locks of all servers and clients.  Owns the order of their columns, and the rule
 * what a hidden row shows.  Run by backends.  Takes no locks but, through slot.h,
 * those of what it copies, one at a time.  Must not know which locks this backend
 * holds, nor how the others are found.
 */
#include "postgres.h"

#include <arpa/inet.h>
#include <ctype.h>

#include "backend/refusal.h"
#include "backend/target.h"
#include "catalog/pg_authid.h"
#include "functions/queuefuncs.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "recipes/semaphore.h"
#include "recipes/walk.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "znode/zkapi.h"

/* ---- queuerow ---- */

/*
 * Rows of zk_queue() and zk_fleet_locks(): a client that holds or awaits a lock, and
 * what its znode tells of it.
 *
 * Must not know which queue a znode is in.
 *
 * A row that a role may not see shows neither which lock it is nor whose session:
 * the one would tell the other.  Server, mode and times stay, as in pg_locks.
 */

#define MAX_FOREIGN_DATA	255 /* longer data is not shown */

/* ---- what a znode tells ---- */

/*
 * If the lock may be cached, the znode is made for the first of several sessions,
 * and the holder may be another one by now, or none.
 */
static void
hide_session(ZklNodeData *data)
{
	char		server[sizeof(data->server)];

	memcpy(server, data->server, sizeof(server));
	memset(data, 0, sizeof(*data));
	memcpy(data->server, server, sizeof(server));
	data->cached = true;
}

/* Whether data of another client is a short printable text */
static bool
is_short_text(const char *data, uint32 length)
{
	uint32		at = 0;

	if (length == 0 || length > MAX_FOREIGN_DATA)
		return false;
	while (at < length)
	{
		int			bytes = pg_encoding_verifymbchar(PG_UTF8, data + at,
													 (int) (length - at));

		if (bytes < 1 || (bytes == 1 && !isprint((unsigned char) data[at])))
			return false;
		at += bytes;
	}
	return true;
}

void
zkl_queuerow_add_server(ZklRow *row, const char *text, uint32 length,
						ZklNodeData *data, bool visible)
{
	bool		ours = zkl_node_data_parse(text, length, data);

	if (data->cached)
		hide_session(data);
	if (ours)
		zkl_row_utf8_or_null(row, data->server, sizeof(data->server));
	else if (visible && is_short_text(text, length))
		zkl_row_text(row, zkl_text_to_display(text, (int) length));
	else
		zkl_row_null(row);
}

/* ---- rows ---- */

#define QUEUE_COLUMNS	20

static void
remember_server(void *arg, const ZklFleetServer *server)
{
	ZklQueueRows *rows = arg;

	rows->servers = lappend(rows->servers, unconstify(ZklFleetServer *, server));
}

static void
queuerow_begin(ZklQueueRows *rows, FunctionCallInfo fcinfo)
{
	rows->fcinfo = fcinfo;
	rows->stats = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	rows->servers = NIL;
	rows->read = false;
	rows->context = CurrentMemoryContext;
	InitMaterializedSRF(fcinfo, 0);
}

static void
add_nulls(ZklRow *row, int n)
{
	while (n-- > 0)
		zkl_row_null(row);
}

/* The caller's memory may be gone before the next row comes. */
static void
read_servers(ZklQueueRows *rows)
{
	MemoryContext old = MemoryContextSwitchTo(rows->context);

	zkl_errand_read_servers(remember_server, rows);
	MemoryContextSwitchTo(old);
	rows->read = true;
}

static void
add_server_host(ZklRow *row, ZklQueueRows *rows, int64 session_id)
{
	ListCell   *cell;

	if (rows->stats && !rows->read)
		read_servers(rows);
	foreach(cell, rows->servers)
	{
		const ZklFleetServer *server = lfirst(cell);

		if (server->session_id == session_id && session_id != 0)
		{
			zkl_row_utf8_or_null(row, server->entry.host,
								 sizeof(server->entry.host));
			return;
		}
	}
	zkl_row_null(row);
}

/* Another client may have written anything. */
static void
add_address(ZklRow *row, const char *address)
{
	unsigned char bytes[sizeof(struct in6_addr)];

	if (inet_pton(AF_INET, address, bytes) == 1 ||
		inet_pton(AF_INET6, address, bytes) == 1)
		zkl_row_add(row, DirectFunctionCall1(inet_in, CStringGetDatum(address)));
	else
		zkl_row_null(row);
}

/* Columns pid to backend_start */
static void
add_session_of(ZklRow *row, const ZklNodeData *data)
{
	zkl_row_int_or_null(row, data->pid);
	zkl_row_utf8_or_null(row, data->database, sizeof(data->database));
	zkl_row_utf8_or_null(row, data->usename, sizeof(data->usename));
	zkl_row_utf8_or_null(row, data->application_name,
						 sizeof(data->application_name));
	add_address(row, data->client);
	zkl_row_unix_ms_or_null(row, data->backend_start);
}

/*
 * Columns requested_at to held_until.  Of other clients, only ZooKeeper knows when
 * they came.  Numbers that another client has made up are none.
 */
static void
add_times(ZklRow *row, const ZklQueueRow *r, const ZklNodeData *data)
{
	bool		ours = data->since > 0 && data->since < END_TIMESTAMP / 1000;
	int64		granted = r->granted_ms;
	int64		until = r->until_ms;

	if (granted == 0 && ours && r->granted &&
		data->waited_ms < END_TIMESTAMP / 1000)
		granted = data->since + data->waited_ms;
	if (until == 0 && granted != 0 && data->at_most_ms > 0 &&
		data->at_most_ms < END_TIMESTAMP / 1000)
		until = granted + data->at_most_ms;
	zkl_row_unix_ms_or_null(row, ours ? data->since : data->cached ? 0 : r->ctime_ms);
	zkl_row_unix_ms_or_null(row, granted);
	zkl_row_unix_ms_or_null(row, until);
}

static void
add_path(ZklRow *row, const ZklQueueRow *r)
{
	if (!r->visible)
		zkl_row_null(row);
	else if (r->path_length == 0)
		zkl_row_text(row, "/");
	else
		zkl_row_utf8(row, r->path, (size_t) r->path_length);
}

static void
add_znode(ZklRow *row, const ZklQueueRow *r)
{
	char	   *znode;

	if (!r->visible)
	{
		zkl_row_null(row);
		return;
	}
	znode = psprintf("%s%s/%s", zkl_root, r->directory, r->name);
	zkl_row_utf8(row, znode, strlen(znode));
}

/*
 * A reservation belongs to a role, and to the client that made it: their session may have
 * ended, and its process number be another one's.
 */
static void
add_contender(ZklRow *row, ZklQueueRows *rows, const ZklQueueRow *r)
{
	ZklNodeData data;
	ZklNodeData nobody;
	bool		reserved;

	memset(&nobody, 0, sizeof(nobody));
	zkl_row_add(row, Int32GetDatum(r->position));
	zkl_row_bool(row, r->granted);
	zkl_row_text(row, r->mode);
	zkl_queuerow_add_server(row, r->data == NULL ? "" : r->data, r->length, &data,
							r->visible);
	add_server_host(row, rows, r->session_id);
	reserved = zkl_node_data_has_no_session(&data);
	if (reserved)
		data.pid = data.backend_start = 0;
	add_session_of(row, r->visible && (!r->kept || reserved) ? &data : &nobody);
	add_times(row, r, &data);
	zkl_row_text(row, r->dialect);
	zkl_row_bool(row, r->cached || data.cached);
	add_znode(row, r);
	zkl_row_session_id(row, r->visible ? r->session_id : 0);
}

/* The first row for a role that sees all reads the hosts of the fleet. */
static void
queuerow_put(ZklQueueRows *rows, const ZklQueueRow *r)
{
	ZklRow		row = {0};

	add_path(&row, r);
	if (r->name == NULL)
		add_nulls(&row, QUEUE_COLUMNS - 2);
	else
		add_contender(&row, rows, r);
	zkl_row_text_or_null(&row, r->error == NULL ? "" : r->error);

	Assert(row.n == QUEUE_COLUMNS);
	zkl_row_put(rows->fcinfo, &row);
}

/* ---- ownqueue ---- */

/*
 * Who has a lock and who waits: what its znodes say, and what this server knows
 * better of its own.
 *
 * Run by backends that show a queue.  Takes no locks but, through slot.h, those of
 * what it copies, one at a time.
 *
 * Must not know why a queue is shown.
 *
 * A lock passes from one request to the next of the same server at once, and
 * the znode of the first request is deleted some time later.  So a queue that
 * was read from ZooKeeper can show a holder that has already left, and the
 * new holder behind it as waiting.  The slots tell what became of both.  The
 * listing is older than the slots: if a znode belongs to this server's session
 * and no slot names it, it is gone.
 */

typedef enum
{
	HELD,
	WAITS,
	GONE,
	KEPT,						/* by at_least */
	CACHED,
	STAYS						/* for a while, as ZooKeeper has it */
} Standing;

typedef struct
{
	ZklUuid		uuid;
	Standing	standing;
	ZklJudged	told;			/* what the slot tells of it */
} Own;

typedef struct
{
	const ZklTarget *lock;
	int64		session_id;
	uint32		generation;
	Own		   *znodes;
	int			nznodes;
	bool		again;			/* the slots were read a second time */
} OwnQueue;

static Standing
standing_of(const ZklSlot *slot)
{
	switch ((ZklSlotState) slot->s_state)
	{
		case ZKL_SLOT_GRANTED:
			return HELD;
		case ZKL_SLOT_CACHED:
			return CACHED;
		case ZKL_SLOT_RELEASED:
			return slot->s_keep_until > zkl_boottime_ms() ? KEPT :
				slot->s_epilogue ? STAYS : GONE;
		case ZKL_SLOT_DENIED:
		case ZKL_SLOT_FAILED:
			return GONE;
		default:
			return WAITS;
	}
}

static bool
is_of(const OwnQueue *own, const ZklSlot *slot)
{
	return slot->s_state > ZKL_SLOT_CLAIMED &&
		slot->s_request.kind == ZKL_KIND_LOCK &&
		slot->s_request.dialect == own->lock->dialect &&
		strcmp(slot->s_request.path, own->lock->path) == 0;
}

static int
compare_owners(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y;
}

static int
compare_znodes(const void *a, const void *b)
{
	return memcmp(&((const Own *) a)->uuid, &((const Own *) b)->uuid,
				  sizeof(ZklUuid));
}

/* Another hold of the same owner keeps using the znode of a released hold. */
static void
pass_on(OwnQueue *own, uint64 *holders, int nholders)
{
	int			i;

	qsort(holders, nholders, sizeof(uint64), compare_owners);
	for (i = 0; i < own->nznodes; i++)
	{
		Own		   *znode = &own->znodes[i];

		if (znode->standing == GONE &&
			bsearch(&znode->told.owner, holders, nholders, sizeof(uint64),
					compare_owners) != NULL)
			znode->standing = HELD;
	}
}

static int64
ms_since_1970(TimestampTz time)
{
	return (time + (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY) /
		1000;
}

static void
note_told(const ZklSlot *slot, ZklJudged *told)
{
	bool		held = slot->s_state == ZKL_SLOT_GRANTED;
	int64		until;

	memset(told, 0, sizeof(*told));
	told->owner = slot->s_record.disowned ? 0 : slot->s_owner;
	told->is_own = slot->s_state != ZKL_SLOT_CACHED &&
		has_privs_of_role(GetUserId(), slot->s_request.roleid);
	told->granted_ms = held ? ms_since_1970(slot->s_answer.granted_at) : 0;
	until = held ? slot->s_until : zkl_slot_is_reserved(slot) ? slot->s_keep_until : 0;
	told->until_ms = until == 0 ? 0 :
		ms_since_1970(GetCurrentTimestamp()) + until - zkl_boottime_ms();
}

static void
read_slots(OwnQueue *own)
{
	uint64	   *holders = palloc(zkl_control->ctl_nslots * sizeof(uint64));
	int			nholders = 0;
	ZklSlot		slot;
	int			slotno;

	own->nznodes = 0;
	for (slotno = 0; slotno < zkl_control->ctl_nslots; slotno++)
	{
		CHECK_FOR_INTERRUPTS();
		if (zkl_slot_peek(slotno) <= ZKL_SLOT_CLAIMED)
			continue;
		zkl_slot_copy(slotno, &slot);
		if (!is_of(own, &slot))
			continue;
		if (slot.s_record.sent && slot.s_record.generation == own->generation)
		{
			Own		   *znode = &own->znodes[own->nznodes++];

			znode->uuid = slot.s_record.uuid;
			znode->standing = standing_of(&slot);
			note_told(&slot, &znode->told);
		}
		else if (slot.s_state == ZKL_SLOT_GRANTED)
			holders[nholders++] = slot.s_owner;
	}
	pass_on(own, holders, nholders);
	qsort(own->znodes, own->nznodes, sizeof(Own), compare_znodes);
	pfree(holders);
}

/* ---- the queue ---- */

/* Whether an entry is a znode of this server's session */
static bool
is_ours(const OwnQueue *own, const ZklQueueEntry *entry)
{
	return entry->session_id != 0 && entry->session_id == own->session_id &&
		entry->has_uuid;
}

/* What is known of it; NULL: nothing */
static const Own *
find(const OwnQueue *own, const ZklQueueEntry *entry)
{
	Own			wanted;

	wanted.uuid = entry->uuid;
	return bsearch(&wanted, own->znodes, own->nznodes, sizeof(Own),
				   compare_znodes);
}

/* Corrects what the znodes say.  False: it has left the queue. */
static bool
correct(OwnQueue *own, ZklJudged *c)
{
	const ZklJudged said = *c;
	const Own  *znode;

	if (!is_ours(own, said.entry))
		return true;
	znode = find(own, said.entry);
	if (znode == NULL && !own->again)
	{
		/* It may have passed from one slot to another while they were read. */
		own->again = true;
		read_slots(own);
		znode = find(own, said.entry);
	}
	if (znode == NULL || znode->standing == GONE)
		return false;
	*c = znode->told;
	c->entry = said.entry;
	c->cached = znode->standing == CACHED;
	c->kept = znode->standing == KEPT || c->cached;
	c->granted = znode->standing == KEPT || znode->standing == STAYS ?
		said.granted : znode->standing == HELD;
	return true;
}

ZklJudged *
zkl_ownqueue_judge(const ZklTarget *lock, const ZklLockQueue *queue, int most, int *n)
{
	ZklJudged  *all = MemoryContextAllocHuge(CurrentMemoryContext,
											 (queue->n + 1) * sizeof(ZklJudged));
	OwnQueue	own = {lock};
	ZklStatus	status;
	bool		exclusive_ahead = false;
	int			i;

	zkl_status_copy(&status);
	own.session_id = status.session_id;
	own.generation = status.generation;
	own.znodes = palloc(zkl_control->ctl_nslots * sizeof(Own));
	read_slots(&own);
	*n = 0;
	for (i = 0; i < queue->n; i++)
	{
		const ZklQueueEntry *entry = &queue->entries[i];
		ZklJudged	c = {entry};

		c.granted = most != ZKL_BY_MODES ? i < most :
			i == 0 || (entry->mode == ZKL_SHARED && !exclusive_ahead);
		c.cached = zkl_node_data_is_cached(entry->data, entry->length);
		exclusive_ahead |= entry->mode == ZKL_EXCLUSIVE;
		if (correct(&own, &c))
			all[(*n)++] = c;
	}
	pfree(own.znodes);
	return all;
}

/* ---- queuefuncs: the set-returning functions zk_queue() and zk_fleet_locks() ---- */

/*
 * As in zk_locks, each role sees all rows of zk_fleet_locks(), but names of locks and
 * znodes are only shown to roles that may read all statistics: no other role can prove
 * that a row from another server is about itself.  Where grants decide about a name, such
 * a role also needs the privilege to look at it.
 */

/* ---- zk_queue() ---- */

ZKL_FUNCTION(zkl_sql_queue);

typedef struct
{
	ZklQueueRows rows;
	ZklTarget	lock;			/* as it was asked for */
	int			position;
} Show;

/* Numbers the rows in the order of the calls. */
static void
put_row(Show *show, const ZklTarget *target, const char *mode, const ZklJudged *c)
{
	ZklQueueRow r = {show->lock.path};

	r.path_length = (int) strlen(show->lock.path);
	r.directory = target->path;
	r.name = c->entry->name;
	r.mode = mode;
	r.dialect = target->dialect < ZKL_LOCK_DIALECTS && strcmp(mode, "permit") != 0 ?
		zkl_dialect_name(target->dialect) : "curator";
	r.position = ++show->position;
	r.granted = c->granted;
	r.cached = c->cached;
	r.kept = c->kept;
	r.visible = show->rows.stats || c->is_own;
	r.data = c->entry->data;
	r.length = c->entry->length;
	r.session_id = c->entry->session_id;
	r.ctime_ms = c->entry->ctime_ms;
	r.granted_ms = c->granted_ms;
	r.until_ms = c->until_ms;
	queuerow_put(&show->rows, &r);
}

/* Shows a queue, of which "most" are granted.  No mode: each has its own. */
static void
put_queue(Show *show, const ZklTarget *target, const ZklLockQueue *queue,
		  const char *mode, int most)
{
	int			n;
	ZklJudged  *all = zkl_ownqueue_judge(target, queue, most, &n);
	int			i;

	for (i = 0; i < n; i++)
		put_row(show, target, mode ? mode : zkl_row_mode_name(all[i].entry->mode), &all[i]);
	pfree(all);
}

/* The same, of those of that dialect in the directory of the lock */
static void
put_listed(Show *show, const ZklErrand *listing, ZklDialect dialect,
		   const char *mode, int most)
{
	ZklTarget	target = show->lock;
	ZklLockQueue queue;

	target.dialect = dialect;
	zkl_errand_read_listed(&target, listing, &queue);
	put_queue(show, &target, &queue, mode, most);
}

/* Shows the queue for the guard of a semaphore, without the first "skip". */
static void
put_guard(Show *show, const ZklTarget *guard, int skip)
{
	ZklLockQueue queue;
	ZklJudged  *all;
	int			n;
	int			i;

	zkl_errand_read_queue(guard, &queue);
	all = zkl_ownqueue_judge(guard, &queue, 0, &n);
	for (i = skip; i < n; i++)
	{
		all[i].granted = false;
		put_row(show, guard, "permit", &all[i]);
	}
	pfree(all);
}

/*
 * Shows the permits of the semaphore of that name, then the waiters for its
 * guard.  If the holder of the guard waits, its permits are already among the
 * others, past the maximum.  If no maximum is recorded, all permits count as
 * granted.
 */
static void
put_semaphore(Show *show, const ZklTarget *lock)
{
	ZklTarget	permits = *lock;
	ZklTarget	guard = *lock;
	ZklLockQueue queue;
	int			max;

	permits.path = psprintf("%s%s", lock->path, ZKL_SEMAPHORE_PERMITS);
	permits.dialect = ZKL_DIALECT_PERMIT;
	guard.path = psprintf("%s%s", lock->path, ZKL_SEMAPHORE_GUARD);
	guard.dialect = ZKL_DIALECT_CURATOR_MUTEX;
	if (strlen(permits.path) > ZKL_MAX_NAME)
		return;
	zkl_errand_read_queue(&permits, &queue);
	if (queue.n == 0)
		return;
	max = zkl_maximum_recorded(lock);
	if (max == 0)
		max = queue.n;
	put_queue(show, &permits, &queue, "permit", max);
	put_guard(show, &guard, queue.n > max);
}

Datum
zkl_sql_queue(PG_FUNCTION_ARGS)
{
	Show		show = {{0}};
	ZklErrand  *listing;

	show.lock = zkl_target_any(PG_GETARG_TEXT_PP(0), ZKL_MAY_LOOK);
	queuerow_begin(&show.rows, fcinfo);
	listing = zkl_errand_list(&show.lock, false);
	put_listed(&show, listing, show.lock.dialect, NULL, ZKL_BY_MODES);
	put_listed(&show, listing, ZKL_DIALECT_LATCH, "leader", 1);
	put_listed(&show, listing, ZKL_DIALECT_MEMBER, "member", PG_INT32_MAX);
	zkl_errand_free(listing);
	put_semaphore(&show, &show.lock);
	return (Datum) 0;
}

/* ---- zk_fleet_locks() ---- */

ZKL_FUNCTION(zkl_sql_fleet_locks);

static const char *const mode_names[] = {
	[ZKL_WALK_EXCLUSIVE] = "exclusive",
	[ZKL_WALK_SHARED] = "shared",
	[ZKL_WALK_LEADER] = "leader",
	[ZKL_WALK_PERMIT] = "permit",
	[ZKL_WALK_MEMBER] = "member"
};

/* The turns of a job count as the job. */
static bool
is_visible(const ZklQueueRows *rows, const ZklWalkEntry *entry)
{
	Size		directory = strlen(ZKL_ONCE_DIRECTORY);
	char	   *path;
	bool		turns;

	if (!rows->stats)
		return false;
	path = pnstrdup(entry->path, entry->path_length);
	turns = strncmp(path, ZKL_ONCE_DIRECTORY "/", directory + 1) == 0;
	return zkl_rights_may_look(turns ? path + directory : path);
}

static const char *
error_text(int32 rc)
{
	return rc == ZKL_RC_OK ? NULL : rc == ZKL_RC_TOO_LONG ?
		"The list of its znodes is too long to be read." :
		zkl_refusal_answer_text(rc);
}

static void
put_found(void *arg, const ZklWalkEntry *entry)
{
	ZklQueueRows *rows = arg;
	ZklQueueRow r = {entry->path, entry->path_length, entry->directory, entry->name};
	bool		read = entry->name != NULL && entry->rc == ZKL_RC_OK;

	r.mode = mode_names[entry->mode];
	r.dialect = entry->dialect;
	r.position = entry->position;
	r.granted = entry->granted;
	r.visible = is_visible(rows, entry);
	r.data = read ? entry->data : NULL;
	r.length = read ? entry->length : 0;
	r.cached = read && zkl_node_data_is_cached(entry->data, entry->length);
	r.session_id = entry->session_id;
	r.ctime_ms = entry->ctime_ms;
	r.error = error_text(entry->rc);
	queuerow_put(rows, &r);
}

/*
 * "/" is the root, and "/.once" has the turns of all jobs: these are no locks, and
 * everybody may look at what is below, as far as it is visible.
 */
static ZklTarget
start_at(const text *prefix)
{
	const char *given = text_to_cstring(prefix);
	ZklTarget	start = {given, given, ZKL_DIALECT_CURATOR_RW};

	if (strcmp(given, "/") == 0)
		start.path = "";
	else if (strcmp(given, ZKL_ONCE_DIRECTORY) != 0)
		start = zkl_target_any(prefix, ZKL_MAY_LOOK);
	return start;
}

Datum
zkl_sql_fleet_locks(PG_FUNCTION_ARGS)
{
	ZklTarget	start;
	ZklQueueRows rows;

	zkl_gate_check();
	queuerow_begin(&rows, fcinfo);
	start = start_at(PG_GETARG_TEXT_PP(0));
	zkl_walk(&start, put_found, &rows);
	return (Datum) 0;
}
