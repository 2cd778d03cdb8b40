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
#include "shared/compat.h"
#include "shared/retry.h"
#include "shared/settings.h"
#include "shared/status.h"

#define FIRST_ROOM		((Size) 8192)	/* for the names of a directory */

static void
errand_context(void *name)
{
	errcontext("while waiting for ZooKeeper's answer about \"%s\"",
			   (char *) name);
}

ZklErrand *
zkl_errand_make(ZklErrandKind kind, const ZklTarget *target, const char *child,
				Size room)
{
	char	   *path = psprintf("%s%s%s%s", zkl_root, target->path,
								child ? "/" : "", child ? child : "");
	Size		length = strlen(path);
	dsm_segment *segment = dsm_create(offsetof(ZklErrand, answer) + room +
									  length + 1, 0);
	ZklErrand  *errand = dsm_segment_address(segment);

	memset(errand, 0, offsetof(ZklErrand, answer));
	errand->kind = kind;
	errand->handle = dsm_segment_handle(segment);
	errand->version = -1;
	errand->room = room;
	errand->path_length = length;
	memcpy(zkl_errand_layout_path(errand), path, length + 1);
	pfree(path);
	return errand;
}

void
zkl_errand_free(ZklErrand *errand)
{
	dsm_detach(dsm_find_mapping(errand->handle));
}

/*
 * If it is not known what became of an errand, its caller will look or write
 * again: after a pause, and not without end in one statement.  Looks that succeed
 * between two such writes change nothing.
 */
static void
pause_unknown(const ZklErrand *errand, const ZklTarget *target)
{
	static TimestampTz statement = 0;
	static ZklRetry retry;

	if (statement != GetCurrentStatementStartTimestamp() ||
		(zkl_errand_layout_is_write(errand) && errand->rc != ZKL_RC_UNKNOWN))
		zkl_retry_reset(&retry);
	statement = GetCurrentStatementStartTimestamp();
	if (errand->rc != ZKL_RC_UNKNOWN)
		return;
	if (!zkl_retry_later(&retry, zkl_boottime_us()))
		zkl_refusal_raise_failed(target->name, ZKL_ERROR_ZOOKEEPER, ZKL_RC_UNKNOWN);
	zkl_wait_sleep_until(retry.due);
}

int32
zkl_errand_try(ZklErrand *errand, const ZklTarget *target, ZklDeadlines *at)
{
	ZklSlot		answer;

	errand->rc = ZKL_RC_UNKNOWN;
	zkl_wait_for_answer(target, ZKL_KIND_ERRAND, errand->handle,
						errand_context, at, &answer);
	return errand->rc;
}

static int32
run_errand(ZklErrand *errand, const ZklTarget *target, ZklDeadlines *at)
{
	(void) zkl_errand_try(errand, target, at);
	pause_unknown(errand, target);
	return errand->rc;
}

int32
zkl_errand_run(ZklErrand *errand, const ZklTarget *target)
{
	ZklDeadlines at;

	zkl_wait_begin_answer(&at, ZKL_FOREVER, zkl_status_connect_timeout_ms(), false);
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
zkl_errand_list(const ZklTarget *directory)
{
	Size		room = FIRST_ROOM;

	for (;;)
	{
		ZklErrand  *errand = zkl_errand_make(ZKL_ERRAND_LIST, directory, NULL,
											 room);
		int32		rc;

		errand->sync = true;
		rc = zkl_errand_run(errand, directory);
		if (rc == ZKL_RC_NONODE)
			errand->size = 0;
		else if (rc != ZKL_RC_OK && rc != ZKL_RC_UNKNOWN)
			zkl_refusal_raise_failed(directory->name, ZKL_ERROR_ZOOKEEPER, rc);
		if (rc != ZKL_RC_UNKNOWN && errand->size <= room)
			return errand;
		if (rc == ZKL_RC_OK)
			room = 2 * errand->size;
		zkl_errand_free(errand);
	}
}
