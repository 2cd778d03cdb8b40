/*
 * dialects.c
 *	  Changing the dialects of the root, for all servers.
 *
 * Owns nothing: the list stands in a znode.  Run by backends.  Takes no locks;
 * waits as wait.c does.
 *
 * Must not know how a server learns of the change, nor what it refuses.
 *
 * A change has three steps: a mark in the znode, which says what the list is to
 * become; a look at all names whose dialect would change; and the new list, or
 * the old one if a contender stands there.  While the mark is there, no server
 * grants new requests for these names.
 *
 * Why no two clients hold a lock in two dialects:
 *
 * - Each server watches the znode.  ZooKeeper delivers the event ahead of all
 *	 answers about later writes.  So if a contender was created after the mark, its
 *	 server knows of the mark when it learns of that, and refuses the request.
 * - A server that has a new connection, and so no watch, takes no grant until it
 *	 has read the znode there.
 * - If a contender was created before the mark, it stands in the listing, which
 *	 is made later.  If its session has ended meanwhile, it is gone, and so is the
 *	 lease of its server: the look begins a session timeout after the mark.
 * - If the look finds no contender, none comes until the new list is written: only
 *	 a session that holds the lock gets another znode for it, and then the look
 *	 finds one of them (walk_below).  Later only servers whose own list gives the name
 *	 its new dialect make some.
 *
 * The waiting time also lets those who were waiting leave the queues.  Each
 * write expects the version before it.  So if two calls run at the same time,
 * one of them fails, and leaves the mark to the other.  If a caller crashes, the
 * mark stays, and the next call replaces it.
 */
#include "postgres.h"

#include "backend/admission.h"
#include "backend/errand.h"
#include "backend/refusal.h"
#include "backend/target.h"
#include "miscadmin.h"
#include "recipes/dialects.h"
#include "shared/boottime.h"
#include "shared/fleet.h"
#include "shared/settings.h"
#include "shared/status.h"
#include "znode/znode.h"

#define MOST_FOUND		10		/* contenders that an error shows */

static const ZklTarget settings = {ZKL_ROOT_SETTINGS, ZKL_ROOT_SETTINGS, ZKL_DIALECT_CURATOR_RW};

/* The znode as this call has read or written it last */
typedef struct Record
{
	ZklRoot		root;
	int32		version;
} Record;

/* ---- the znode ---- */

static void
read_settings(Record *record)
{
	ZklErrand  *errand = zkl_errand_make(ZKL_ERRAND_GET, &settings, NULL,
										 ZKL_MAX_ERRAND_DATA);
	int32		rc;

	errand->sync = true;
	rc = zkl_errand_run(errand, &settings);
	if (rc != ZKL_RC_OK || errand->answer.size > errand->room ||
		!zkl_root_read(errand->answer.bytes, errand->answer.size, &record->root))
		zkl_admission_raise_unreadable(rc);
	record->version = errand->answer.stat.version;
	zkl_errand_free(errand);
}

static bool
same_root(const ZklRoot *a, const ZklRoot *b)
{
	return strcmp(a->dialects, b->dialects) == 0 &&
		a->is_changing == b->is_changing &&
		strcmp(a->changing, b->changing) == 0;
}

static int32
try_to_write(const Record *record, const ZklRoot *root)
{
	ZklErrand  *errand = zkl_errand_make(ZKL_ERRAND_SET, &settings, NULL, 0);
	StringInfoData data;
	int32		rc;

	initStringInfo(&data);
	zkl_root_put(&data, root);
	Assert(data.len <= (int) sizeof(errand->data));
	errand->version = record->version;
	errand->length = (uint32) data.len;
	memcpy(errand->data, data.data, data.len);
	rc = zkl_errand_run(errand, &settings);
	zkl_errand_free(errand);
	return rc;
}

/*
 * If the answer is lost, the version tells whether the write was made.  False:
 * another call was faster.
 */
static bool
write_settings(Record *record, const ZklRoot *root)
{
	for (;;)
	{
		int32		rc = try_to_write(record, root);
		Record		now;

		if (rc == ZKL_RC_OK)
			break;
		if (rc != ZKL_RC_UNKNOWN && rc != ZKL_RC_BADVERSION)
			zkl_admission_raise_unreadable(rc);
		read_settings(&now);
		if (now.version == record->version + 1 && same_root(&now.root, root))
			break;
		if (now.version != record->version)
			return false;
	}
	record->root = *root;
	record->version++;
	return true;
}

static void
write_or_fail(Record *record, const ZklRoot *root)
{
	if (!write_settings(record, root))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("could not change the dialects of root \"%s\"", zkl_root),
				 errdetail("Another call of zk_set_dialects() has changed them meanwhile."),
				 errhint("zk_healthcheck() tells whether they are as you want them.  If not, call zk_set_dialects() again.")));
}

/* ---- the look for contenders ---- */

/*
 * The znodes of leaders, permits and members of barriers do not depend on the
 * dialects, and do not count.  The guard of a semaphore does, because it looks
 * like a mutex.
 */
typedef struct Walk
{
	const ZklRoot *root;		/* that is changing */
	StringInfoData who;			/* a line for each contender */
	int			found;
} Walk;

static ZklTarget
directory_target(const char *name)
{
	ZklTarget	target = {name, zkl_text_to_display(name, (int) strlen(name)), ZKL_DIALECT_CURATOR_RW};

	if (strcmp(name, "/") == 0)
		target.path = "";		/* the root itself */
	return target;
}

static bool
is_contender(const char *child)
{
	int			dialect;

	for (dialect = 0; dialect < ZKL_LOCK_DIALECTS; dialect++)
	{
		ZklLockMode mode;
		ZklSeq		seq;
		bool		has_uuid;
		ZklUuid		uuid;

		if (zkl_znode_parse((ZklDialect) dialect, child, &mode, &seq,
							&has_uuid, &uuid))
			return true;
	}
	return false;
}

/* False: it is gone by now. */
static bool
note_contender(Walk *walk, const char *name, const char *child)
{
	ZklTarget	target = directory_target(name);
	ZklErrand  *errand = zkl_errand_make(ZKL_ERRAND_GET, &target, child,
										 ZKL_MAX_NODE_DATA);
	int32		rc = zkl_errand_run(errand, &target);
	ZklNodeData data = {0};

	if (rc != ZKL_RC_OK && rc != ZKL_RC_NONODE && rc != ZKL_RC_NOAUTH)
		zkl_refusal_raise_failed(target.name, ZKL_ERROR_ZOOKEEPER, rc);
	if (rc != ZKL_RC_NONODE)
	{
		walk->found++;
		if (walk->who.len > 0)
			appendStringInfoChar(&walk->who, '\n');
		if (rc == ZKL_RC_OK && errand->answer.size <= errand->room &&
			zkl_node_data_parse(errand->answer.bytes, errand->answer.size, &data))
			appendStringInfo(&walk->who, "Server \"%s\", process %d: lock \"%s\".",
							 zkl_text_to_display(data.server, (int) strlen(data.server)),
							 data.pid, target.name);
		else
			appendStringInfo(&walk->who, "Another client, session 0x%016llx: lock \"%s\", znode \"%s\".",
							 (unsigned long long) errand->answer.stat.session_id, target.name,
							 zkl_text_to_display(child, (int) strlen(child)));
	}
	zkl_errand_free(errand);
	return rc != ZKL_RC_NONODE;
}

static void walk_below(Walk *walk, const char *name);

/* False: contenders have gone since the directory was listed. */
static bool
walk_below_once(Walk *walk, const char *name)
{
	ZklTarget	directory = directory_target(name);
	ZklErrand  *children = zkl_errand_list(&directory, true);
	const char *child = NULL;
	bool		all_there = true;

	while (walk->found < MOST_FOUND &&
		   (child = zkl_errand_next(children, child)) != NULL)
	{
		char	   *below = psprintf("%s/%s", strcmp(name, "/") == 0 ? "" : name, child);

		CHECK_FOR_INTERRUPTS();
		if (is_contender(child))
			all_there &= note_contender(walk, name, child);
		else if (child[0] != '.' && !zkl_znode_is_like(child, strlen(child)) &&
				 !zkl_dialect_has_entry(walk->root->dialects, below) &&
				 !zkl_dialect_has_entry(walk->root->changing, below))
			walk_below(walk, below);
		pfree(below);
	}
	zkl_errand_free(children);
	return all_there;
}

/*
 * A contender that has gone may have left another one: a session that gives up its
 * exclusive lock, and still holds it shared, replaces its znode in one step, and
 * one that goes from shared to exclusive has two for a while.  While the dialects
 * are being changed, no other contenders of our servers come.  So the directory is
 * looked at again until all that it lists is there, or some contender is found.
 */
static void
walk_below(Walk *walk, const char *name)
{
	int			found = walk->found;

	check_stack_depth();
	while (!walk_below_once(walk, name) && walk->found == found)
		CHECK_FOR_INTERRUPTS();
}

/*
 * The walk sees everything that was there when it began, in any dialect, below the
 * names whose dialect is to change.
 */
static void
look_for_contenders(const ZklRoot *root)
{
	Walk		walk = {root};
	char		path[ZKL_MAX_NAME + 1] = "";

	initStringInfo(&walk.who);
	while (walk.found < MOST_FOUND &&
		   zkl_dialect_next_change(root->dialects, root->changing, path))
		walk_below(&walk, path);
	if (walk.found > 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("could not change the dialects of root \"%s\" because affected locks are held or awaited",
						zkl_root),
				 errdetail("%s", zkl_text_for_client(walk.who.data)),
				 errhint("Try again when these locks are released.")));
}

/* ---- the steps ---- */

typedef struct Change
{
	Record		record;
	int32		version;		/* before the mark */
	ZklRoot		before;
	ZklRoot		marked;
} Change;

static void
note_timeout(void *longest, const ZklFleetServer *server)
{
	if (server->readable)
		*(uint32 *) longest = Max(*(uint32 *) longest,
								  (uint32) server->entry.timeout_ms);
}

/* A session timeout: the longest one of the fleet that is known */
static void
wait_for_servers(void)
{
	int64		start = zkl_boottime_us();
	uint32		longest = zkl_status_timeout_ms();

	zkl_errand_read_servers(note_timeout, &longest);
	zkl_wait_sleep_until(start + (int64) longest * 1000);
}

/* It runs as a subtransaction, so that the mark can be taken back after an error. */
static void
make_change(void *arg)
{
	Change	   *change = arg;
	ZklRoot		done = {0};

	write_or_fail(&change->record, &change->marked);
	wait_for_servers();
	look_for_contenders(&change->marked);
	strlcpy(done.dialects, change->marked.changing, sizeof(done.dialects));
	write_or_fail(&change->record, &done);
}

/*
 * The error may have come while a write was under way, so the znode tells whether
 * the mark is there.  What another call has written since stays.
 */
static void
take_mark_back(void *arg)
{
	Change	   *change = arg;
	Record		now;

	read_settings(&now);
	if (same_root(&now.root, &change->marked) &&
		now.version == change->version + 1)
		(void) write_settings(&now, &change->before);
}

/*
 * A cancel comes twice, as the postmaster signals the process and its group.  The
 * second one must not end what the first one has caused.  An error ends the hold
 * of cancels (errfinish).
 */
static void
change_or_take_back(Change *change)
{
	ErrorData  *error = zkl_refusal_catch(make_change, change);

	if (error == NULL)
		return;
	HOLD_CANCEL_INTERRUPTS();
	if (zkl_refusal_catch(take_mark_back, change) == NULL)
		RESUME_CANCEL_INTERRUPTS();
	else
		ereport(WARNING,
				(errmsg("the dialects of root \"%s\" may still be marked as changing",
						zkl_root),
				 errhint("Call zk_set_dialects() again, with the new list or the old one.")));
	ReThrowError(error);
}

void
zkl_dialects_change(const char *list)
{
	Change		change = {0};

	read_settings(&change.record);
	change.version = change.record.version;
	strlcpy(change.before.dialects, change.record.root.dialects,
			sizeof(change.before.dialects));
	change.marked = change.before;
	change.marked.is_changing = true;
	zkl_dialect_normalize(list, change.marked.changing);
	if (strcmp(change.marked.changing, change.before.dialects) != 0)
		change_or_take_back(&change);
	else if (change.record.root.is_changing)
		write_or_fail(&change.record, &change.before);
}
