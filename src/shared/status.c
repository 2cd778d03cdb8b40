/*
 * status.c
 *	  What the worker tells about itself.
 *
 * Owns ctl_status.  Run by backends and the worker.  Takes ctl_lock.
 */
#include "postgres.h"

#include "shared/control.h"
#include "shared/settings.h"
#include "shared/status.h"

ZklStatus *
zkl_status_begin(void)
{
	LWLockAcquire(zkl_control->ctl_lock, LW_EXCLUSIVE);
	return &zkl_control->ctl_status;
}

void
zkl_status_end(void)
{
	pg_atomic_write_u32(&zkl_control->ctl_worker_procno,
						(uint32) zkl_control->ctl_status.worker_procno);
	LWLockRelease(zkl_control->ctl_lock);
}

/* Read without the lock: one word, that seldom changes. */
uint32
zkl_status_timeout_ms(void)
{
	uint32		negotiated = *(volatile uint32 *)
	&zkl_control->ctl_status.timeout_ms;

	return negotiated != 0 ? negotiated : (uint32) zkl_session_timeout;
}

void
zkl_status_copy(ZklStatus *copy)
{
	LWLockAcquire(zkl_control->ctl_lock, LW_SHARED);
	memcpy(copy, &zkl_control->ctl_status, sizeof(ZklStatus));
	LWLockRelease(zkl_control->ctl_lock);
}
