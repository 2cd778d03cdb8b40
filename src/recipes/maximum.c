/*
 * maximum.c
 *	  What stands in ZooKeeper about a semaphore as a whole: its maximum, and
 *	  how many permits there are.
 *
 * Owns the record of the maximum, {"zklock":1,"max_leases":3}, which is the
 * data of the semaphore's directory.  Run by backends.  Takes no locks.
 *
 * Must not know who holds what, nor how a permit is granted.
 *
 * A caller that finds no record writes one, and so does a caller with another
 * maximum if no zklock server has a permit.  Both do so under the guard.  If the
 * guard is lost meanwhile, the version of the data tells whether another caller
 * was faster.
 */
#include "postgres.h"

#include "backend/errand.h"
#include "backend/refusal.h"
#include "recipes/maximum.h"
#include "shared/control.h"
#include "shared/slot.h"
#include "znode/node_data.h"

#define RECORD_FORMAT		"{\"zklock\":1,\"max_leases\":%d}"
#define RECORD_ROOM			256
#define FIRST_ROOM			((Size) 8192)	/* for names */

/* Permits that this server has released, but perhaps not yet in ZooKeeper */
static int
count_released(const ZklTarget *permits)
{
	ZklSlot		slot;
	int			slotno;
	int			n = 0;

	for (slotno = 0; slotno < zkl_control->ctl_nrequests; slotno++)
	{
		if (zkl_slot_peek(slotno) != ZKL_SLOT_RELEASED)
			continue;
		zkl_slot_copy(slotno, &slot);
		n += slot.s_request.kind == ZKL_KIND_LOCK &&
			slot.s_request.dialect == permits->dialect &&
			strcmp(slot.s_request.path, permits->path) == 0;
	}
	return n;
}

static ZklErrand *
list_permits(const ZklTarget *permits, bool surely, const ZklDeadlines *at, Size room)
{
	ZklErrand  *errand = zkl_errand_make(ZKL_ERRAND_LIST, permits, NULL, room);

	errand->sync = surely;
	if (zkl_errand_run_within(errand, permits, at) != ZKL_RC_OK &&
		errand->answer.rc != ZKL_RC_NONODE)
		zkl_refusal_raise_failed(permits->name, ZKL_ERROR_ZOOKEEPER, errand->answer.rc);
	return errand;
}

int64
zkl_maximum_count(const ZklTarget *permits, bool surely, const ZklDeadlines *at)
{
	int			released = surely ? count_released(permits) : 0;
	ZklErrand  *errand = list_permits(permits, surely, at, 0);
	int64		n = errand->answer.rc == ZKL_RC_OK ? errand->answer.nchildren : 0;

	zkl_errand_free(errand);
	return n - released;
}

/* How many of the names that errand has listed are zklock's */
static int
count_ours(const ZklErrand *errand)
{
	const char *name = NULL;
	int			n = 0;

	while ((name = zkl_errand_next(errand, name)) != NULL)
	{
		ZklLockMode mode;
		ZklSeq		seq;
		bool		has_uuid;
		ZklUuid		uuid;

		n += zkl_znode_parse(ZKL_DIALECT_PERMIT, name, &mode, &seq, &has_uuid,
							 &uuid) &&
			has_uuid && zkl_uuid_is_zklock(&uuid);
	}
	return n;
}

/*
 * Whether a zklock server has a permit, and so relies on the record.  Other
 * clients do not count: they know nothing of it, and if one of them were always
 * there, the maximum could never be changed.
 */
static bool
is_relied_on(const ZklTarget *permits, bool surely, const ZklDeadlines *at)
{
	int			released = surely ? count_released(permits) : 0;
	Size		room = FIRST_ROOM;
	ZklErrand  *errand;
	int			n;

	while ((errand = list_permits(permits, surely, at, room))->answer.size > room)
	{
		room = 2 * errand->answer.size;
		zkl_errand_free(errand);
	}
	n = errand->answer.rc == ZKL_RC_OK ? count_ours(errand) : 0;
	zkl_errand_free(errand);
	return n > released;
}

static bool
read_record_member(ZklJsonReader *r, const char *key, void *max)
{
	return strcmp(key, "max_leases") == 0 ?
		zkl_json_integer(r, 1, PG_INT32_MAX, max) : zkl_json_skip_value(r);
}

int
zkl_maximum_parse(const char *data, Size size)
{
	int64_t		max = 0;

	return zkl_json_object(data, size, read_record_member, &max) ? (int) max : 0;
}

/*
 * What errand, a GET of the semaphore's directory, finds; empty: nothing.  at
 * may be NULL.
 */
static int
read_record(ZklErrand *errand, const ZklTarget *directory,
			const ZklDeadlines *at, bool *empty)
{
	int32		rc;

	errand->kind = ZKL_ERRAND_GET;
	errand->length = 0;
	errand->version = -1;
	rc = at != NULL ? zkl_errand_run_within(errand, directory, at) :
		zkl_errand_run(errand, directory);
	if (rc == ZKL_RC_NONODE)
	{
		*empty = true;
		return 0;
	}
	if (rc != ZKL_RC_OK)
		zkl_refusal_raise_failed(directory->name, ZKL_ERROR_ZOOKEEPER, rc);
	*empty = errand->answer.size == 0;
	return errand->answer.size <= RECORD_ROOM ?
		zkl_maximum_parse(errand->answer.bytes, errand->answer.size) : 0;
}

int
zkl_maximum_recorded(const ZklTarget *directory)
{
	ZklErrand  *errand = zkl_errand_make(ZKL_ERRAND_GET, directory, NULL,
										 RECORD_ROOM);
	bool		empty;
	int			max = read_record(errand, directory, NULL, &empty);

	zkl_errand_free(errand);
	return max;
}

/*
 * Under the guard.  False: somebody else wrote it just now, or it is not known
 * whether it was written.
 */
static bool
write_record(const ZklTarget *directory, int max, ZklErrand *errand,
			 const ZklDeadlines *at)
{
	errand->kind = ZKL_ERRAND_SET;
	errand->version = errand->answer.stat.version;
	errand->length = (uint32) snprintf(errand->data, sizeof(errand->data),
									   RECORD_FORMAT, max);
	switch (zkl_errand_run_within(errand, directory, at))
	{
		case ZKL_RC_OK:
		case ZKL_RC_NONODE:		/* then the guard is gone, too */
			return true;
		case ZKL_RC_BADVERSION:
		case ZKL_RC_UNKNOWN:
			return false;
		default:
			zkl_refusal_raise_failed(directory->name, ZKL_ERROR_ZOOKEEPER, errand->answer.rc);
	}
	return false;
}

void
zkl_maximum_settle(const ZklTarget *directory, const ZklTarget *permits,
				   int max, bool guarded, const ZklDeadlines *at)
{
	ZklErrand  *errand = zkl_errand_make(ZKL_ERRAND_GET, directory, NULL,
										 RECORD_ROOM);

	for (;;)
	{
		bool		empty;
		int			recorded = read_record(errand, directory, at, &empty);

		if (recorded == max || (recorded == 0 && !empty))
			break;
		if (recorded != 0 && is_relied_on(permits, !guarded, at))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("semaphore \"%s\" has a different maximum",
							directory->name),
					 errdetail("Its maximum is %d permits, but this call specifies %d.",
							   recorded, max),
					 errhint("The maximum can be changed while no zklock server holds a permit or waits for one.")));
		if (!guarded || write_record(directory, max, errand, at))
			break;
	}
	zkl_errand_free(errand);
}
