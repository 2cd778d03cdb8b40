/*
 * wakeup.c
 *	  Waking processes by their latches.
 *
 * Owns the list of processes that the worker has to wake.  Runs in backends and
 * in the worker.  Takes no locks.  It must not know why a process is woken.
 */
#include "postgres.h"

#include "shared/control.h"
#include "shared/wakeup.h"
#include "storage/latch.h"
#include "storage/proc.h"

/* In the worker: the processes that it has to wake */
static int	noted[256];
static int	nnoted = 0;

void
zkl_wakeup_process(int procno)
{
	if (procno != ZKL_PROCNO_NONE)
		SetLatch(&GetPGProcByNumber(procno)->procLatch);
}

void
zkl_wakeup_later(int procno)
{
	if (nnoted == lengthof(noted))
		zkl_wakeup_noted();
	noted[nnoted++] = procno;
}

void
zkl_wakeup_noted(void)
{
	int			i;

	for (i = 0; i < nnoted; i++)
		zkl_wakeup_process(noted[i]);
	nnoted = 0;
}

void
zkl_wakeup_worker(void)
{
	zkl_wakeup_process((int) pg_atomic_read_u32(&zkl_control->ctl_worker_procno));
}
