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
 *	 finds one of them (census.c).  Later only servers whose own list gives the name
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
#include "backend/reading.h"
#include "backend/refusal.h"
#include "backend/text.h"
#include "miscadmin.h"
#include "recipes/census.h"
#include "recipes/dialects.h"
#include "shared/boottime.h"
#include "shared/root.h"
#include "shared/settings.h"
#include "shared/status.h"

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

	zkl_reading_servers(note_timeout, &longest);
	zkl_wait_sleep_until(start + (int64) longest * 1000);
}

static void
look_for_contenders(const ZklRoot *root)
{
	StringInfoData who;

	initStringInfo(&who);
	if (zkl_census_take(root->dialects, root->changing, &who) > 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("could not change the dialects of root \"%s\" because affected locks are held or awaited",
						zkl_root),
				 errdetail("%s", zkl_text_for_client(who.data)),
				 errhint("Try again when these locks are released.")));
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
