/*
 * break_lock.c
 *	  Removes the head of a lock's queue, whichever client owns it.
 *
 * Owns nothing but the steps: what one call has done stands in ZooKeeper, and the
 * next call goes on from there.  Run by backends.  Takes no locks; waits for
 * errands.
 *
 * Must not know how a holder's server obeys a mark.
 *
 * The client that owns the head may believe that it holds the lock.  If that
 * client is zklock, the znode is marked first: the client's server then loses the
 * lock properly, by its own check of the znode, and deletes the znode once the
 * holder has finished with it.  Only after a session timeout (the longer one of
 * theirs and ours), when even a server that is cut off has lost its lease, the
 * znode is deleted here.  Other clients look at no mark: their znode is deleted at
 * once.
 *
 * When the head is gone, the directory is listed for other znodes of the same
 * contender, which are removed in the same way.  A holder may have two znodes: when
 * Curator's InterProcessReadWriteLock (5.5 and later) takes the read lock while
 * it holds the write lock, it creates a reader with the number of its writer, but
 * with a new unique id.  The number tells that both belong together, because
 * ZooKeeper gives out each number only once in the life of a directory.  The reader
 * may still be on its way, so the search goes on for a session timeout.
 */
#include "postgres.h"

#include "backend/errand.h"
#include "backend/refusal.h"
#include "backend/target.h"
#include "miscadmin.h"
#include "recipes/break_lock.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/errand_layout.h"
#include "shared/settings.h"
#include "shared/status.h"
#include "storage/ipc.h"
#include "storage/proc.h"

#define LOOKS_PER_TIMEOUT	20	/* at a marked znode, and for late readers */
#define LONGEST_TIMEOUT_MS	3600000 /* of zklock.session_timeout */
#define FIRST_ROOM			((Size) 8192)	/* for names */
#define ROOM_FOR_DATA		(ZKL_MAX_NODE_DATA + 32)	/* with a mark */

/* A znode of the queue */
typedef struct Contender
{
	const char *name;			/* of any length */
	ZklLockMode mode;
	ZklSeq		seq;
	bool		has_uuid;
	ZklUuid		uuid;
	bool		is_zklock;
	int64		session;		/* its ephemeralOwner; 0: not known */
} Contender;

typedef struct Break
{
	const ZklTarget *lock;
	const char *name;			/* of the lock, to be shown */
	int64		lock_timeout;	/* when it ends; zkl_wait_clock() */
	ZklRetry	retry;
	int64		directory_czxid;
	Contender	head;			/* what is to go; it may have gone by our
								 * doing, or by others' */
	bool		acted;			/* perhaps by our doing: the next head must
								 * stay */
	bool		told;			/* its end, in the log */
	int64		search_until;	/* for what it leaves behind; 0: not yet */
} Break;

/* ---- names ---- */

static bool
parse_name(ZklDialect dialect, const char *name, Contender *contender)
{
	memset(contender, 0, sizeof(*contender));
	contender->name = name;
	if (!zkl_znode_parse(dialect, name, &contender->mode, &contender->seq,
						 &contender->has_uuid, &contender->uuid))
		return false;
	contender->is_zklock = contender->has_uuid &&
		zkl_uuid_is_zklock(&contender->uuid);
	return true;
}

/* If two have the same number, that is a writer and its reader. */
static bool
is_before(const Contender *a, const Contender *b)
{
	return a->seq < b->seq ||
		(a->seq == b->seq && a->mode == ZKL_EXCLUSIVE &&
		 b->mode != ZKL_EXCLUSIVE);
}

static bool
is_same_contender(const Contender *a, const Contender *b)
{
	return strcmp(a->name, b->name) == 0 ||
		(a->has_uuid && b->has_uuid &&
		 memcmp(&a->uuid, &b->uuid, sizeof(ZklUuid)) == 0);
}

/* Whether its client can make a reader with the head's number after the head is gone */
static bool
may_leave_reader(const Break *b)
{
	return b->lock->dialect == ZKL_DIALECT_CURATOR_RW &&
		b->head.mode == ZKL_EXCLUSIVE && !b->head.is_zklock;
}

/* Whether it is the head or, by its name, another znode of the same contender */
static bool
may_be_left(const Break *b, const Contender *other)
{
	return is_same_contender(&b->head, other) ||
		(may_leave_reader(b) && !other->is_zklock &&
		 other->mode == ZKL_SHARED && other->seq == b->head.seq);
}

/* The first contender of a listing; or, if the head may have gone, what it left */
static bool
choose(const Break *b, const ZklErrand *listing, Contender *chosen)
{
	const char *name = NULL;
	Contender	other;

	chosen->name = NULL;
	while ((name = zkl_errand_next(listing, name)) != NULL)
	{
		if (!parse_name(b->lock->dialect, name, &other) ||
			(b->acted && !may_be_left(b, &other)))
			continue;
		if (chosen->name == NULL || is_before(&other, chosen))
			*chosen = other;
	}
	if (chosen->name == NULL)
		return false;
	chosen->name = pstrdup(chosen->name);
	return true;
}

/* ---- the log ----
 *
 * What it tells is done, whatever becomes of the call: so its context is hidden.
 */

static const char *
shown_path(const Break *b, const Contender *contender)
{
	const char *path = psprintf("%s%s/%s", zkl_root, b->lock->path, contender->name);

	return zkl_text_to_display(path, (int) strlen(path));
}

static void
log_step(const Break *b, const Contender *contender, const char *what)
{
	ereport(LOG_SERVER_ONLY,
			(errhidecontext(true),
			 errmsg("znode \"%s\" of distributed lock \"%s\" is %s by process %d (user \"%s\")",
					shown_path(b, contender), b->name, what, MyProcPid,
					GetUserNameFromId(GetSessionUserId(), true))));
}

static void
log_left(const Break *b, const Contender *contender)
{
	ereport(LOG_SERVER_ONLY,
			(errhidecontext(true),
			 errmsg("znode \"%s\" of distributed lock \"%s\" is deleted",
					shown_path(b, contender), b->name),
			 errdetail("Its client created it beside znode \"%s\", which was broken.",
					   zkl_text_to_display(b->head.name, (int) strlen(b->head.name)))));
}

/* ---- errors and pauses ---- */

pg_noreturn static void
give_up_break(const Break *b, int32 rc)
{
	if (b->acted && !zkl_zkapi_is_definite(rc))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_STATEMENT_COMPLETION_UNKNOWN),
				 errmsg("could not determine whether distributed lock \"%s\" was broken",
						b->name),
				 errdetail("%s", zkl_refusal_answer_text(rc)),
				 errhint("If zk_queue() still shows the same holder, call zk_break_lock() again.")));
	zkl_refusal_raise_failed(b->name, ZKL_ERROR_ZOOKEEPER, rc);
}

static void
sleep_until(const Break *b, int64 due)
{
	int64		now = zkl_boottime_us();

	zkl_wait_sleep_until(now + Min(due - now, b->lock_timeout - zkl_wait_clock()));
	if (zkl_wait_clock() >= b->lock_timeout)
		zkl_stall_raise_lock_timeout(b->name);
}

/* The queue is not as it was; or, as rc tells, what became of a write is not known. */
static void
look_again(Break *b, int32 rc)
{
	if (zkl_retry_later(&b->retry, zkl_boottime_us()))
	{
		sleep_until(b, b->retry.due);
		return;
	}
	if (rc == ZKL_RC_UNKNOWN)
		give_up_break(b, rc);
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_IN_USE),
			 errmsg("could not break distributed lock \"%s\"", b->name),
			 errdetail("The first znode in its queue changed during each of %d attempts.",
					   ZKL_RETRY_LIMIT + 1),
			 errhint("Check zk_queue(): the lock may be changing hands normally.")));
}

/* ---- errands ---- */

/* It waits for ZooKeeper, too.  At the gate of the server it takes nothing. */
static int32
run(const Break *b, ZklErrand *errand)
{
	ZklDeadlines at;

	zkl_wait_begin_answer(&at, ZKL_FOREVER, ZKL_FOREVER, true);
	at.at_gate = false;
	at.lock_timeout = b->lock_timeout;
	return zkl_errand_try(errand, b->lock, &at);
}

/* If a read failed, the worker has repeated it. */
static void
run_read(const Break *b, ZklErrand *errand)
{
	int32		rc = run(b, errand);

	if (rc != ZKL_RC_OK && rc != ZKL_RC_NONODE)
		give_up_break(b, rc);
}

/* A read of a contender, or of the directory if it is NULL, as new as this call */
static ZklErrand *
make_read(const Break *b, ZklErrandKind kind, const Contender *contender, Size room)
{
	ZklErrand  *errand = zkl_errand_make(kind, b->lock,
										 contender != NULL ? contender->name : NULL,
										 room);

	errand->sync = true;
	return errand;
}

static ZklErrand *
list_queue(const Break *b)
{
	Size		room = FIRST_ROOM;

	for (;;)
	{
		ZklErrand  *listing = make_read(b, ZKL_ERRAND_LIST, NULL, room);

		run_read(b, listing);
		if (listing->answer.size <= room)
			return listing;
		room = 2 * listing->answer.size;
		zkl_errand_free(listing);
	}
}

/* What tells a directory from one that was made again; 0: there is none. */
static int64
read_directory_czxid(const Break *b)
{
	ZklErrand  *get = make_read(b, ZKL_ERRAND_GET, NULL, 0);
	int64		czxid;

	run_read(b, get);
	czxid = get->answer.rc == ZKL_RC_OK ? get->answer.stat.czxid : 0;
	zkl_errand_free(get);
	return czxid;
}

static void
take_for_head(Break *b, const Contender *contender)
{
	if (!b->acted)
		b->head = *contender;
}

static int32
run_write(Break *b, const Contender *contender, ZklErrand *errand)
{
	int32		rc;

	take_for_head(b, contender);
	rc = run(b, errand);
	zkl_errand_free(errand);
	if (rc == ZKL_RC_OK || rc == ZKL_RC_UNKNOWN)
		b->acted = true;
	else if (rc != ZKL_RC_NONODE && rc != ZKL_RC_BADVERSION)
		give_up_break(b, rc);
	return rc;
}

/* Version -1 is any version, connection 0 any connection. */
static int32
delete_znode(Break *b, const Contender *contender, int32 version, uint64 connection)
{
	ZklErrand  *errand = zkl_errand_make(ZKL_ERRAND_DELETE, b->lock, contender->name, 0);
	int32		rc;

	errand->version = version;
	errand->only_on = connection;
	rc = run_write(b, contender, errand);
	if (rc == ZKL_RC_OK && strcmp(b->head.name, contender->name) != 0)
		log_left(b, contender);
	look_again(b, rc);
	return rc;
}

/* ---- a znode of zklock's ---- */

/* What data a znode has, as far as zklock writes it */
static uint32
data_length(const ZklErrand *get)
{
	return get->answer.size <= get->room ? (uint32) get->answer.size : 0;
}

static void
mark(Break *b, const Contender *contender, const ZklErrand *get)
{
	ZklErrand  *set = zkl_errand_make(ZKL_ERRAND_SET, b->lock, contender->name, 0);
	int32		rc;

	set->version = get->answer.stat.version;
	set->length = (uint32) zkl_node_data_break(get->answer.bytes, data_length(get),
											   set->data, ROOM_FOR_DATA);
	log_step(b, contender, "marked to be broken");
	rc = run_write(b, contender, set);
	if (rc != ZKL_RC_OK)
		look_again(b, rc);
}

static int64
holder_timeout(const ZklErrand *get)
{
	ZklNodeData data;

	(void) zkl_node_data_parse(get->answer.bytes, data_length(get), &data);
	return (int64) Max(zkl_status_timeout_ms(),
					   Min(data.timeout_ms, LONGEST_TIMEOUT_MS)) * 1000;
}

/*
 * The znode that was read has a mark.  Its holder has the time of a session timeout,
 * which begins again if another client writes over the mark.
 *
 * The znode is deleted only if the mark has just been seen, on the same
 * connection.  The version alone would not tell that it is there: if ZooKeeper loses
 * the mark, the next write of the holder's server gets its version.
 */
static void
wait_and_delete(Break *b, const Contender *contender, ZklErrand *get)
{
	int64		mark_zxid = get->answer.stat.mzxid;
	int64		timeout = holder_timeout(get);
	int64		until = zkl_boottime_us() + timeout;

	while (zkl_boottime_us() < until ||
		   delete_znode(b, contender, get->answer.stat.version,
						get->answer.connection) == ZKL_RC_UNKNOWN)
	{
		sleep_until(b, Min(zkl_boottime_us() + timeout / LOOKS_PER_TIMEOUT, until));
		run_read(b, get);
		if (get->answer.rc != ZKL_RC_OK || get->answer.stat.mzxid != mark_zxid)
		{
			look_again(b, get->answer.rc);
			return;
		}
	}
}

/* Marks it; or, if it is marked, waits until it is gone. */
static void
remove_ours(Break *b, const Contender *contender)
{
	ZklErrand  *get = make_read(b, ZKL_ERRAND_GET, contender, ROOM_FOR_DATA);

	run_read(b, get);
	if (get->answer.rc == ZKL_RC_NONODE)
		look_again(b, get->answer.rc);
	else if (!zkl_node_data_breaking(get->answer.bytes, data_length(get)))
		mark(b, contender, get);
	else
	{
		take_for_head(b, contender);
		b->acted = true;
		wait_and_delete(b, contender, get);
	}
	zkl_errand_free(get);
}

/* ---- a znode of another client's ---- */

/* If it cannot be read, it can still be deleted.  False: it is gone. */
static bool
read_session(const Break *b, Contender *contender)
{
	ZklErrand  *get = make_read(b, ZKL_ERRAND_GET, contender, 0);
	int32		rc = run(b, get);

	if (rc != ZKL_RC_OK && !zkl_zkapi_is_definite(rc))
		give_up_break(b, rc);
	contender->session = rc == ZKL_RC_OK ? get->answer.stat.session_id : 0;
	zkl_errand_free(get);
	return rc != ZKL_RC_NONODE;
}

/* If a directory is deleted and made again, its numbers begin again. */
static bool
is_left(const Break *b, const Contender *contender)
{
	return is_same_contender(&b->head, contender) ||
		(contender->session != 0 && contender->session == b->head.session) ||
		read_directory_czxid(b) == b->directory_czxid;
}

/* Returns whether it belongs to the head, or is the head. */
static bool
remove_foreign(Break *b, Contender *contender)
{
	if (!read_session(b, contender))
		look_again(b, ZKL_RC_NONODE);
	else if (b->acted && !is_left(b, contender))
		return false;
	else
		(void) delete_znode(b, contender, -1, 0);
	return true;
}

/* ---- the steps ---- */

/*
 * The head is gone, as a look that began then has shown.  If its client creates a
 * reader now, the contenders behind the head no longer see it: so the search goes on.
 */
static bool
is_over(Break *b, int64 looked_at)
{
	int64		now = zkl_boottime_us();
	int64		timeout = (int64) zkl_status_timeout_ms() * 1000;

	if (!b->told)
		log_step(b, &b->head, "gone, broken");
	b->told = true;
	if (!may_leave_reader(b))
		return true;
	if (b->search_until == 0)
		b->search_until = now + timeout;
	if (looked_at >= b->search_until)
		return true;
	zkl_retry_reset(&b->retry);
	sleep_until(b, now + timeout / LOOKS_PER_TIMEOUT);
	return false;
}

/* False: the queue is empty. */
static bool
remove_head(Break *b)
{
	b->directory_czxid = read_directory_czxid(b);
	for (;;)
	{
		int64		looked_at = zkl_boottime_us();
		ZklErrand  *listing = list_queue(b);
		Contender	next;
		bool		found = choose(b, listing, &next);

		zkl_errand_free(listing);
		if (found && next.is_zklock)
			remove_ours(b, &next);
		else if (found && remove_foreign(b, &next))
			continue;
		else if (!b->acted)
			return false;
		else if (is_over(b, looked_at))
			return true;
	}
}

/* If a break is given up, it is half done: the holder has lost the lock. */
static void
break_context(void *name)
{
	errcontext("while breaking distributed lock \"%s\", which is not done until zk_break_lock() returns",
			   (const char *) name);
}

/* Also if the process ends.  The worker may wait for it with the end of its session. */
static void
end_break(int code, Datum arg)
{
	pg_atomic_fetch_sub_u32(&zkl_control->ctl_breaks, 1);
	zkl_control_wake_worker();
}

bool
zkl_break_lock(const ZklTarget *lock)
{
	Break		b = {lock, zkl_text_for_client(lock->name)};
	ErrorContextCallback callback = {error_context_stack, break_context};
	bool		removed;

	callback.arg = unconstify(char *, b.name);
	error_context_stack = &callback;
	b.lock_timeout = LockTimeout > 0 ?
		zkl_wait_after_ms(zkl_wait_clock(), LockTimeout) : ZKL_NEVER;
	pg_atomic_fetch_add_u32(&zkl_control->ctl_breaks, 1);
	PG_ENSURE_ERROR_CLEANUP(end_break, (Datum) 0);
	{
		removed = remove_head(&b);
	}
	PG_END_ENSURE_ERROR_CLEANUP(end_break, (Datum) 0);
	end_break(0, (Datum) 0);
	error_context_stack = callback.previous;
	return removed;
}
