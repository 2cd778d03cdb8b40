/*
 * peer_key.c
 *	  The key with which the servers of a fleet sign what they tell each other.
 *
 * Owns the key, its znode, and the context of the hash function.  Runs in the worker
 * only; takes no locks.  It must not know what is signed.
 *
 * The key is random.  It stands in a znode below the root, which the first server makes
 * that wants one; its number is the transaction that did.  Like the entries of the
 * fleet, it can be read only with the fleet's credentials, if there are any.  It is
 * read behind a sync on each connection, with a watch that stays there: if the znode is
 * deleted, all servers make and read the next one.  Without a connection, the last
 * one still counts.
 *
 * A key counts only as one of us has made it.  If its rights are others, or were ever
 * changed, or its data was, somebody may know it who should not.  Then it is replaced
 * in one transaction.  So is a key that was made before there were credentials.  Two
 * servers may replace it one right after the other; the watch tells.
 */
#include "postgres.h"

#include "common/hmac.h"
#include "common/sha2.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/settings.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "wire/peer.h"
#include "worker/operation.h"
#include "worker/peer_key.h"
#include "worker/supervisor.h"
#include "znode/znode.h"

#define KEY_ZNODE		"/.peer_key"
#define KEY_BYTES		PG_SHA256_DIGEST_LENGTH
#define RETRY			(30 * 1000 * 1000)	/* µs, after a fault */
#define MOST_REPLACED	3		/* in a row: then it is a fault */

enum
{
	THE_SYNC,
	THE_READ,
	THE_RIGHTS,
	THE_WRITE
};

typedef struct
{
	ZklTask		task;
	int			replaced;		/* how often */

	/* the znode as it was read */
	int32		rc;
	int64		czxid;
	bool		whole;			/* its data is a key that nobody has changed */
	uint8		key[KEY_BYTES];
} KeyTask;

static void (*tell_done) (void);
static bool wanted = false;
static bool stale = true;		/* to be read */
static uint32 connection = 0;	/* the last one that was seen */
static KeyTask *present = NULL;

static int64 number = 0;		/* 0: there is no key */
static uint8 key[KEY_BYTES];
static char fault[ZKL_MAX_ROOT + 128] = "";
static const char *fault_hint = "";

static const char *
key_path(void)
{
	static char path[ZKL_MAX_ROOT + sizeof(KEY_ZNODE)];

	if (path[0] == '\0')
		snprintf(path, sizeof(path), "%s%s", zkl_root, KEY_ZNODE);
	return path;
}

/* ---- the hash ---- */

static pg_hmac_ctx * hash = NULL;

/*
 * PostgreSQL wants an owner, and the worker has none; this one lasts.  Without OpenSSL
 * (src/common/hmac.c), the memory is the current context's.
 */
static void
make_hash(void)
{
	ResourceOwner before = CurrentResourceOwner;
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	CurrentResourceOwner = ResourceOwnerCreate(NULL, "zklock messages");
	hash = pg_hmac_create(PG_SHA256);
	CurrentResourceOwner = before;
	MemoryContextSwitchTo(old);
}

bool
zkl_peer_key_sign(const uint8 *datagram, uint8 *mac)
{
	if (hash == NULL)
		make_hash();
	return number != 0 && hash != NULL &&
		pg_hmac_init(hash, key, sizeof(key)) == 0 &&
		pg_hmac_update(hash, datagram, ZKL_PEER_SIGNED) == 0 &&
		pg_hmac_final(hash, mac, ZKL_PEER_MAC_BYTES) == 0;
}

/* ---- what is known ---- */

static void
forget_key(void)
{
	number = 0;
	explicit_bzero(key, sizeof(key));
}

static void
finish_reading(void)
{
	ZklTask    *task = &present->task;

	stale = false;
	present = NULL;
	zkl_operation_end(task);
}

static void
take_key(const KeyTask *task)
{
	memcpy(key, task->key, sizeof(key));
	number = task->czxid;
	fault[0] = '\0';
	finish_reading();
	tell_done();
}

/* It is read again: an operator may mend it. */
static void
fail_key(KeyTask *task, const char *what, const char *hint)
{
	forget_key();
	strlcpy(fault, what, sizeof(fault));
	fault_hint = hint;
	task->replaced = 0;
	zkl_operation_reset(&task->task);
	zkl_operation_pause(&task->task, zkl_boottime_us() + RETRY);
	tell_done();
}

static void
fail_key_with(KeyTask *task, const char *what, int32 rc)
{
	if (rc == ZKL_RC_NOAUTH)
		fail_key(task,
				 psprintf("ZooKeeper does not allow this server to %s the key in znode \"%s\".",
						  what, key_path()),
				 "Give all servers of the fleet the same credentials.  If they have been changed, delete that znode.");
	else
		fail_key(task,
				 psprintf("Could not %s the key in znode \"%s\": ZooKeeper answered %d.",
						  what, key_path(), rc),
				 "zklock tries it again every 30 seconds.");
}

const char *
zkl_peer_key_fault(const char **hint)
{
	*hint = fault_hint;
	return fault[0] != '\0' ? fault : NULL;
}

int64
zkl_peer_key_number(void)
{
	return number;
}

/* ---- reading ---- */

static void
read_key(KeyTask *task)
{
	zkl_operation_send(&task->task, THE_SYNC, ZKL_SEND_SYNC, key_path(), false);
	zkl_operation_send(&task->task, THE_READ, ZKL_SEND_GET, key_path(), true);
	zkl_operation_send(&task->task, THE_RIGHTS, ZKL_SEND_GET_ACL, key_path(), false);
}

static void
try_key_again(KeyTask *task, const char *what, int32 rc)
{
	if (!zkl_operation_retry(&task->task))
		fail_key_with(task, what, rc);
}

static void
take_data(KeyTask *task, const ZklReply *reply)
{
	task->rc = reply->rc;
	task->czxid = reply->stat.czxid;
	task->whole = reply->rc == ZKL_RC_OK && reply->data_length == sizeof(task->key) &&
		reply->stat.version == 0;
	if (task->whole)
		memcpy(task->key, reply->data, sizeof(task->key));
}

/* Somebody who is in one of these needs no credentials. */
static bool
is_open_to_others(const char *right)
{
	const char *scheme = strchr(right, ':');

	return scheme == NULL || strncmp(scheme, ":world:", 7) == 0 ||
		strncmp(scheme, ":ip:", 4) == 0;
}

/* As CREATE_SECRET makes them, and never changed since */
static bool
are_ours(const ZklReply *rights, const ZklWireStat *stat)
{
	size_t		i;

	if (zkl_control->ctl_status.access == ZKL_ACCESS_ALL)
		return true;
	for (i = 0; i < rights->nchildren; i++)
	{
		if (is_open_to_others(rights->children[i]))
			return false;
	}
	return stat->acl_version == 0;
}

/* ---- writing ---- */

/* A new key; "replace": in the place of the present one */
static void
write_key(KeyTask *task, bool replace)
{
	uint8		fresh[KEY_BYTES];
	ZklMultiOp	ops[2];
	size_t		first = replace ? 0 : 1;

	if (!pg_strong_random(fresh, sizeof(fresh)))
	{
		fail_key(task, "Could not make a key: there are no random numbers.",
				 "zklock tries it again every 30 seconds.");
		return;
	}
	memset(ops, 0, sizeof(ops));
	ops[0].kind = ZKL_MULTI_DELETE;
	ops[1].kind = ZKL_MULTI_CREATE_SECRET;
	ops[0].path = ops[1].path = key_path();
	ops[0].version = ops[1].version = -1;
	ops[1].data = (const char *) fresh;
	ops[1].data_length = sizeof(fresh);
	if (!replace)
		zkl_operation_send_parents(key_path());
	zkl_operation_send_multi(&task->task, THE_WRITE, ops + first, 2 - first);
	explicit_bzero(fresh, sizeof(fresh));
}

static void
replace_key(KeyTask *task)
{
	if (task->replaced++ < MOST_REPLACED)
		write_key(task, true);
	else
		fail_key(task,
				 psprintf("The key in znode \"%s\" does not keep its rights, or is changed.",
						  key_path()),
				 "Let nobody but zklock write there.");
}

/* Another server may have been faster, or the parents may be gone again. */
static void
take_written_key(KeyTask *task, int32 rc)
{
	if (rc == ZKL_RC_OK || rc == ZKL_RC_NODEEXISTS)
		read_key(task);
	else if (rc == ZKL_RC_NONODE || !zkl_zkapi_is_definite(rc))
		try_key_again(task, "make", rc);
	else
		fail_key_with(task, "make", rc);
}

/* ---- the task ---- */

/* The last one of the answers */
static void
take_rights(KeyTask *task, const ZklReply *reply, const ZklWireStat *stat)
{
	int32		rc = task->rc != ZKL_RC_OK ? task->rc : reply->rc;

	if (rc == ZKL_RC_NONODE)
		write_key(task, false);
	else if (rc != ZKL_RC_OK && !zkl_zkapi_is_definite(rc))
		try_key_again(task, "read", rc);
	else if (rc != ZKL_RC_OK)
		fail_key_with(task, "read", rc);
	else if (stat->czxid != task->czxid)
		read_key(task);			/* it was replaced in between */
	else if (task->whole && are_ours(reply, stat))
		take_key(task);
	else
		replace_key(task);
}

static void
begin_key(ZklTask *task)
{
	read_key((KeyTask *) task);
}

static void
take_key_reply(ZklTask *task, uint32 part, const ZklReply *reply,
			   const ZklWireStat *stat)
{
	KeyTask    *one = (KeyTask *) task;

	if (part == THE_READ)
		take_data(one, reply);
	else if (part == THE_RIGHTS)
		take_rights(one, reply, stat);
	else if (part == THE_WRITE)
		take_written_key(one, reply->rc);
	else if (reply->rc != ZKL_RC_OK)
		try_key_again(one, "read", reply->rc);
}

static void
end_key(ZklTask *task, bool connected)
{
	explicit_bzero(((KeyTask *) task)->key, KEY_BYTES);
}

static const ZklTaskOwner key_owner = {
	.size = sizeof(KeyTask),
	.begin = begin_key,
	.reply = take_key_reply,
	.end = end_key,
};

/* ---- for the loop ---- */

void
zkl_peer_key_begin(void (*done) (void))
{
	tell_done = done;
}

void
zkl_peer_key_want(bool want)
{
	if (want == wanted)
		return;
	wanted = stale = want;
	if (want)
		return;
	if (present != NULL)
		finish_reading();
	forget_key();
	fault[0] = '\0';
}

void
zkl_peer_key_retry(void)
{
	if (fault[0] != '\0' && present != NULL)
		zkl_operation_pause(&present->task, 0);
}

void
zkl_peer_key_tick(bool ready)
{
	uint32		now = zkl_supervisor_generation();

	if (now != 0 && now != connection)
	{
		connection = now;
		stale = wanted;
	}
	if (ready && stale && present == NULL)
		present = (KeyTask *) zkl_operation_make(&key_owner);
}

/* It was deleted: what it has signed no longer counts. */
void
zkl_peer_key_event(const char *path)
{
	if (!wanted || strcmp(path, key_path()) != 0)
		return;
	forget_key();
	stale = true;
	if (present != NULL)
		zkl_operation_pause(&present->task, 0);
}
