/*
 * errand.c
 *	  Errands: operations on znodes that the worker carries out for a backend.
 *
 * Owns the DSM segments of errands.  Run by backends.  Takes no locks; waits as
 * wait.c does.
 *
 * Must not know what an errand is for, nor how the worker does it.
 */
#include "postgres.h"

#include "access/xact.h"
#include "backend/errand.h"
#include "backend/refusal.h"
#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/retry.h"
#include "shared/settings.h"
#include "shared/status.h"

#define FIRST_ROOM		((Size) 16384)	/* for the names of a directory */

static void
errand_context(void *name)
{
	errcontext("while waiting for ZooKeeper's answer about \"%s\"",
			   (char *) name);
}

ZklErrand *
zkl_errand_make_reads(ZklErrandKind kind, const ZklTarget *target,
					  const char *const *children, int n, Size room)
{
	StringInfoData paths;
	dsm_segment *segment;
	ZklErrand  *errand;
	int			i;

	initStringInfo(&paths);
	for (i = 0; i < n; i++)
	{
		const char *child = children[i];

		appendStringInfo(&paths, "%s%s%s%s", zkl_root, target->path,
						 child ? "/" : "", child ? child : "");
		appendStringInfoChar(&paths, '\0');
	}
	segment = dsm_create(zkl_errand_layout_size(n, room, paths.len), 0);
	errand = dsm_segment_address(segment);
	memset(errand, 0, offsetof(ZklErrand, answer));
	errand->kind = kind;
	errand->handle = dsm_segment_handle(segment);
	errand->n = (uint32) n;
	errand->version = -1;
	errand->room = room;
	errand->paths_size = (Size) paths.len;
	memcpy(zkl_errand_layout_paths(errand), paths.data, paths.len);
	pfree(paths.data);
	return errand;
}

ZklErrand *
zkl_errand_make(ZklErrandKind kind, const ZklTarget *target, const char *child,
				Size room)
{
	return zkl_errand_make_reads(kind, target, &child, 1, room);
}

void
zkl_errand_free(ZklErrand *errand)
{
	dsm_detach(dsm_find_mapping(errand->handle));
}

/*
 * If it is not known what became of a write, its caller will look or write again:
 * after a pause, and not without end in one statement.
 */
static void
pause_unknown(const ZklErrand *errand, const ZklTarget *target)
{
	static TimestampTz statement = 0;
	static ZklRetry retry;

	if (statement != GetCurrentStatementStartTimestamp() ||
		errand->answer.rc != ZKL_RC_UNKNOWN)
		zkl_retry_reset(&retry);
	statement = GetCurrentStatementStartTimestamp();
	if (errand->answer.rc != ZKL_RC_UNKNOWN)
		return;
	if (!zkl_retry_later(&retry, zkl_boottime_us()))
		zkl_refusal_raise_failed(target->name, ZKL_ERROR_ZOOKEEPER, ZKL_RC_UNKNOWN);
	zkl_wait_sleep_until(retry.due);
}

int32
zkl_errand_try(ZklErrand *errand, const ZklTarget *target, ZklDeadlines *at)
{
	ZklSlot		answer;
	uint32		i;

	for (i = 0; i < errand->n; i++)
	{
		ZklErrandAnswer *unknown = zkl_errand_layout_answer(errand, i);

		memset(unknown, 0, offsetof(ZklErrandAnswer, bytes));
		unknown->rc = ZKL_RC_UNKNOWN;
	}
	zkl_wait_for_answer(target, ZKL_KIND_ERRAND, errand->handle,
						errand_context, at, &answer);
	if (answer.s_state == ZKL_SLOT_FAILED)
		zkl_refusal_raise_failed(target->name, answer.s_answer.error,
								 answer.s_answer.zkrc);
	return errand->answer.rc;
}

/* The worker has repeated a read as often as makes sense. */
static int32
run_errand(ZklErrand *errand, const ZklTarget *target, ZklDeadlines *at)
{
	(void) zkl_errand_try(errand, target, at);
	if (zkl_errand_layout_is_write(errand))
		pause_unknown(errand, target);
	else if (errand->answer.rc == ZKL_RC_UNKNOWN)
		zkl_refusal_raise_failed(target->name, ZKL_ERROR_ZOOKEEPER, ZKL_RC_UNKNOWN);
	return errand->answer.rc;
}

void
zkl_errand_begin(ZklDeadlines *at)
{
	zkl_wait_begin_answer(at, ZKL_FOREVER, zkl_status_connect_timeout_ms(), false);
}

int32
zkl_errand_run(ZklErrand *errand, const ZklTarget *target)
{
	ZklDeadlines at;

	zkl_errand_begin(&at);
	return run_errand(errand, target, &at);
}

int32
zkl_errand_await(ZklErrand *errand, const ZklTarget *target, int64 timeout_ms,
				 bool takes)
{
	ZklDeadlines at;

	zkl_wait_begin_answer(&at, timeout_ms,
						  timeout_ms > ZKL_FOREVER - zkl_status_connect_timeout_ms() ?
						  ZKL_FOREVER : timeout_ms + zkl_status_connect_timeout_ms(),
						  true);
	at.takes = takes;
	return run_errand(errand, target, &at);
}

int32
zkl_errand_run_within(ZklErrand *errand, const ZklTarget *target,
					  const ZklDeadlines *at)
{
	ZklDeadlines part = *at;

	part.time_out = part.look = ZKL_NEVER;
	return run_errand(errand, target, &part);
}

ZklErrand *
zkl_errand_list(const ZklTarget *directory, bool sync)
{
	Size		room = FIRST_ROOM;

	for (;;)
	{
		ZklErrand  *errand = zkl_errand_make(ZKL_ERRAND_LIST, directory, NULL,
											 room);
		int32		rc;

		errand->large = true;
		errand->sync = sync;
		rc = zkl_errand_run(errand, directory);
		if (rc != ZKL_RC_OK && rc != ZKL_RC_NONODE)
			zkl_refusal_raise_failed(directory->name, ZKL_ERROR_ZOOKEEPER, rc);
		if (errand->answer.size <= room)
			return errand;
		if (errand->answer.size > ZKL_LONGEST_LISTING)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("list of the znodes below \"%s\" is too long to be read",
							directory->name),
					 errdetail("It takes %zu bytes; the limit is %zu bytes.",
							   errand->answer.size, ZKL_LONGEST_LISTING)));
		room = errand->answer.size + errand->answer.size / 4;
		zkl_errand_free(errand);
	}
}

const char *
zkl_errand_next(const ZklErrand *listing, const char *name)
{
	const ZklErrandAnswer *answer = &listing->answer;

	name = name == NULL ? answer->bytes : name + strlen(name) + 1;
	return name < answer->bytes + answer->size ? name : NULL;
}
