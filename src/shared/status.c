/*
 * status.c
 *	  What the worker tells about itself, and how backends copy that.
 *
 * Owns ctl_status.  The worker writes it, backends copy it.  Takes no locks.
 */
#include "postgres.h"

#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/settings.h"
#include "shared/status.h"
#include "utils/timestamp.h"

ZklStatus *
zkl_status_begin(void)
{
	zkl_changes_begin(&zkl_control->ctl_changes);
	return &zkl_control->ctl_status;
}

void
zkl_status_end(void)
{
	pg_atomic_write_u32(&zkl_control->ctl_worker_procno,
						(uint32) zkl_control->ctl_status.worker_procno);
	zkl_changes_end(&zkl_control->ctl_changes);
}

/* Not copied: one word, that seldom changes. */
uint32
zkl_status_timeout_ms(void)
{
	uint32		negotiated;

	if (zkl_control == NULL)
		return (uint32) zkl_session_timeout;	/* not preloaded */
	negotiated = *(volatile uint32 *) &zkl_control->ctl_status.timeout_ms;
	return negotiated != 0 ? negotiated : (uint32) zkl_session_timeout;
}

/* For how many ms there has been no connection; 0: there is one */
static int64
away_ms(void)
{
	int64		away_since = *(volatile int64 *)
	&zkl_control->ctl_status.away_since;

	return away_since == 0 ? 0 : Max(zkl_boottime_ms() - away_since, 1);
}

bool
zkl_status_is_refused(void)
{
	const volatile ZklStatus *status = &zkl_control->ctl_status;

	return status->last_rc == ZKL_RC_UNSUITABLE && status->away_since != 0;
}

TimestampTz
zkl_status_away_since(void)
{
	int64		away = away_ms();

	/* for people: nothing is measured with it */
	return away == 0 ? 0 : GetCurrentTimestamp() - away * 1000;
}

bool
zkl_status_is_away(TimestampTz *since)
{
	*since = zkl_status_away_since();
	return away_ms() > zkl_status_timeout_ms();
}

int
zkl_status_answer_timeout_ms(void)
{
	return zkl_answer_timeout >= 0 ? zkl_answer_timeout :
		(int) (zkl_status_timeout_ms() / 2 * 3 + 1000);
}

void
zkl_status_copy(ZklStatus *copy)
{
	uint32		number;

	do
	{
		number = zkl_changes_so_far(&zkl_control->ctl_changes);
		memcpy(copy, &zkl_control->ctl_status, sizeof(ZklStatus));
	} while (zkl_changes_since(&zkl_control->ctl_changes, number));
}
