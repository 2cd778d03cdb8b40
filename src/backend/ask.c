/*
 * ask.c
 *	  What is asked of the worker besides locks: queues, breaking, errands.
 *
 * Owns the DSM segments of queues and errands.  Run by backends.  Takes no
 * locks; waits as request.c does.
 *
 * Must not know what an errand is for, nor how the worker does it.
 */
#include "postgres.h"

#include "access/xact.h"
#include "backend/ask.h"
#include "backend/refusal.h"
#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/compat.h"
#include "shared/retry.h"
#include "shared/settings.h"
#include "shared/slot.h"

#define QUEUE_FIRST_SIZE	((Size) 64 * 1024)
#define QUEUE_MAX_SIZE		((Size) 16 * 1024 * 1024)

/* ---- queues ---- */

static void
queue_context(void *name)
{
	errcontext("while waiting for the queue of distributed lock \"%s\"",
			   (char *) name);
}

/* Returns 0, or the size of the segment that it takes. */
static Size
ask_queue_once(const ZklTarget *lock, dsm_handle segment)
{
	ZklPatience patience = {ZKL_FOREVER, zkl_connect_timeout, false,
	queue_context, lock->name};
	int			slotno = zkl_request_claim(lock, ZKL_KIND_QUEUE);
	ZklSlot		answer;

	zkl_slots[slotno].s_dsm = segment;
	zkl_request_run(slotno, &patience, &answer);
	if (answer.s_state == ZKL_SLOT_GRANTED)
		return 0;
	if (answer.s_error != ZKL_ERROR_TOO_LARGE)
		zkl_refusal_raise_failed(lock->name, answer.s_error, answer.s_zkrc);
	return answer.s_dsm_size;
}

dsm_segment *
zkl_lock_queue_read(const ZklTarget *lock, ZklListing *list)
{
	Size		size = QUEUE_FIRST_SIZE;
	dsm_segment *segment;

	for (;;)
	{
		Size		needed;

		segment = dsm_create(size, 0);
		needed = ask_queue_once(lock, dsm_segment_handle(segment));
		if (needed == 0)
			break;
		dsm_detach(segment);
		if (needed > QUEUE_MAX_SIZE)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("queue of distributed lock \"%s\" is too long to be shown",
							lock->name),
					 errdetail("It takes %zu bytes; the limit is %zu bytes.",
							   needed, QUEUE_MAX_SIZE)));
		/* It may grow while we ask again. */
		size = Min(Max(needed + needed / 4, size * 2), QUEUE_MAX_SIZE);
	}
	zkl_listing_open(list, dsm_segment_address(segment),
					 dsm_segment_map_length(segment));
	return segment;
}

/* ---- breaking ---- */

/* A break that is given up is half done: who holds the lock has lost it. */
static void
break_context(void *name)
{
	errcontext("while breaking distributed lock \"%s\", which is not done until zk_break_lock() returns",
			   (char *) name);
}

bool
zkl_lock_queue_break(const ZklTarget *lock)
{
	ZklPatience patience = {ZKL_FOREVER, ZKL_FOREVER, true, break_context,
	lock->name};
	int			slotno = zkl_request_claim(lock, ZKL_KIND_BREAK);
	ZklSlot		answer;

	zkl_request_run(slotno, &patience, &answer);
	if (answer.s_state == ZKL_SLOT_FAILED)
		zkl_refusal_raise_failed(lock->name, answer.s_error, answer.s_zkrc);
	return answer.s_token != 0;
}

/* ---- errands ---- */

static void
errand_context(void *name)
{
	errcontext("while waiting for an answer of ZooKeeper about \"%s\"",
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
	memcpy(zkl_errand_path(errand), path, length + 1);
	pfree(path);
	return errand;
}

void
zkl_errand_free(ZklErrand *errand)
{
	dsm_detach(dsm_find_mapping(errand->handle));
}

static void
sleep_until(int64 due)
{
	for (;;)
	{
		int64		now = zkl_boottime_us();

		if (now >= due)
			break;
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (long) ((due - now + 999) / 1000), zkl_wait_event());
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * If it is not known what became of an errand, its caller will look or write
 * again: after a pause, and not for ever in one statement.  Looks that succeed
 * between two such writes change nothing.
 */
static void
pause_unknown(const ZklErrand *errand, const ZklTarget *target)
{
	static TimestampTz statement = 0;
	static ZklRetry retry;

	if (statement != GetCurrentStatementStartTimestamp() ||
		(zkl_errand_is_write(errand) && errand->rc != ZKL_RC_UNKNOWN))
		zkl_retry_reset(&retry);
	statement = GetCurrentStatementStartTimestamp();
	if (errand->rc != ZKL_RC_UNKNOWN)
		return;
	if (!zkl_retry_later(&retry, zkl_boottime_us()))
		zkl_refusal_raise_failed(target->name, ZKL_ERROR_ZOOKEEPER, ZKL_RC_UNKNOWN);
	sleep_until(retry.due);
}

static int32
run(ZklErrand *errand, const ZklTarget *target, const ZklPatience *patience)
{
	ZklSlot		answer;
	int			slotno;

	errand->rc = ZKL_RC_UNKNOWN;
	slotno = zkl_request_claim(target, ZKL_KIND_ERRAND);
	zkl_slots[slotno].s_dsm = errand->handle;
	zkl_request_run(slotno, patience, &answer);
	pause_unknown(errand, target);
	return errand->rc;
}

int32
zkl_errand_run(ZklErrand *errand, const ZklTarget *target, int64 timeout_ms)
{
	bool		waits = errand->kind == ZKL_ERRAND_AWAIT;
	ZklPatience patience = {ZKL_FOREVER, zkl_connect_timeout, waits,
	errand_context, target->name};

	if (waits)
	{
		patience.expire_ms = timeout_ms;
		patience.answer_ms = timeout_ms > ZKL_FOREVER - zkl_connect_timeout ?
			ZKL_FOREVER : timeout_ms + zkl_connect_timeout;
	}
	return run(errand, target, &patience);
}

int32
zkl_errand_run_within(ZklErrand *errand, const ZklTarget *target,
					  const ZklDeadlines *at)
{
	ZklPatience patience = {ZKL_FOREVER, ZKL_FOREVER, true,
	errand_context, target->name, at};

	return run(errand, target, &patience);
}
