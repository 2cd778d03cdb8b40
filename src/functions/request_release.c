/*
 * request_release.c
 *	  The SQL-callable function that asks the holders of a lock to release it.
 *
 * Run by backends.  Takes no locks, keeps no state.  Must not know what a
 * holder does then.
 *
 * The request is written into the data of the holder's znode, which the holder
 * watches.  For other clients it is Curator's fixed message, which replaces the
 * data.  In zklock's own znodes it is a mark that names the asking session, and
 * the data still names the holder.
 */
#include "postgres.h"

#include "backend/errand.h"
#include "backend/reading.h"
#include "backend/refusal.h"
#include "backend/text.h"
#include "miscadmin.h"
#include "shared/compat.h"
#include "shared/settings.h"
#include "shared/slot.h"

#define ANSWER_ROOM		ZKL_MAX_NODE_DATA	/* zklock's data is no longer */
#define MAX_TRIES		10		/* while others write to the same znode */

ZKL_FUNCTION(zkl_sql_request_release);

/* Describes this session for the holder, in UTF-8. */
static char *
describe_asker(void)
{
	char	   *usename = GetUserNameFromId(GetSessionUserId(), true);
	char	   *database = get_database_name(MyDatabaseId);
	char		user[NAMEDATALEN];
	char		name[NAMEDATALEN];

	zkl_text_copy_to_utf8(user, sizeof(user), usename ? usename : "");
	zkl_text_copy_to_utf8(name, sizeof(name), database ? database : "");
	return psprintf("process %d of %s (user \"%s\", database \"%s\")",
					MyProcPid, zkl_settings_server_name(), user, name);
}

/* Fills in the data that replaces the data that the errand has just read. */
static void
make_message(ZklErrand *errand, bool is_zklock, const char *asker)
{
	bool		whole = errand->answer.size <= errand->room;

	if (is_zklock)
		errand->length = (uint32)
			zkl_node_data_revoke(errand->answer.bytes, whole ? errand->answer.size : 0,
								 asker, errand->data);
	else
	{
		errand->length = strlen(ZKL_REVOKE_MESSAGE);
		memcpy(errand->data, ZKL_REVOKE_MESSAGE, errand->length);
	}
}

static bool
is_written(const ZklErrand *errand)
{
	return errand->answer.size == errand->length &&
		memcmp(errand->answer.bytes, errand->data, errand->length) == 0;
}

/*
 * False: it no longer holds the lock.  Each call writes, even if the data is the
 * same as before, because the holder counts writes.  Only if the answer to a
 * write was lost does the next turn check whether it was done.
 */
static bool
ask_holder(const ZklTarget *lock, const char *znode, bool is_zklock,
		   const char *asker)
{
	ZklErrand  *errand = zkl_errand_make(ZKL_ERRAND_GET, lock, znode,
										 ANSWER_ROOM);
	bool		unknown = false;
	int			tries = 0;
	int32		rc;

	for (;;)
	{
		errand->kind = ZKL_ERRAND_GET;
		rc = zkl_errand_run(errand, lock);
		if (rc != ZKL_RC_OK)
			break;
		make_message(errand, is_zklock, asker);
		if (unknown && is_written(errand))
			break;
		errand->kind = ZKL_ERRAND_SET;
		errand->version = errand->answer.stat.version;
		rc = zkl_errand_run(errand, lock);
		if ((rc != ZKL_RC_BADVERSION && rc != ZKL_RC_UNKNOWN) ||
			++tries == MAX_TRIES)
			break;
		unknown |= rc == ZKL_RC_UNKNOWN;
	}
	zkl_errand_free(errand);
	if (rc != ZKL_RC_OK && rc != ZKL_RC_NONODE)
		zkl_refusal_raise_failed(lock->name, ZKL_ERROR_ZOOKEEPER, rc);
	return rc == ZKL_RC_OK;
}

/* Asks the entries that zk_queue() shows as granted. */
Datum
zkl_sql_request_release(PG_FUNCTION_ARGS)
{
	ZklTarget	lock = zkl_target_lock(PG_GETARG_TEXT_PP(0), ZKL_MAY_REQUEST_RELEASE);
	char	   *asker = describe_asker();
	ZklLockQueue queue;
	int32		asked = 0;
	int			i;

	zkl_reading_queue(&lock, &queue);
	for (i = 0; i < queue.n && (i == 0 || queue.entries[i].mode == ZKL_SHARED); i++)
	{
		const ZklQueueEntry *entry = &queue.entries[i];

		asked += ask_holder(&lock, entry->name,
							entry->has_uuid && zkl_uuid_is_zklock(&entry->uuid),
							asker);
		if (entry->mode == ZKL_EXCLUSIVE)
			break;
	}
	PG_RETURN_INT32(asked);
}
