/*
 * control.c
 *	  The shared memory: its layout, and the list of free slots.
 *
 * Owns both.  What is in a slot belongs to backend_slot.c and worker_slot.c, the
 * worker's status to status.c, the lease to lease.c.  The postmaster lays it out,
 * backends and the worker run the rest.
 *
 * Takes ctl_free_mutex, a spinlock, and never together with any other lock.
 *
 * Must not know what a lock is, who may have it, or anything of ZooKeeper.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "shared/by_name.h"
#include "shared/control.h"
#include "shared/deadlocks.h"
#include "shared/dirty.h"
#include "shared/gate.h"
#include "shared/lockstats.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

ZklControl *zkl_control = NULL;
ZklSlot    *zkl_slots = NULL;

/* Where the links of the list of free slots lie */
static int *free_next = NULL;

static shmem_request_hook_type previous_request_hook = NULL;
static shmem_startup_hook_type previous_startup_hook = NULL;

static int
number_of_slots(void)
{
	return zkl_max_requests + MaxBackends * ZKL_OWN_SLOTS;
}

static Size
dirty_offset(void)
{
	return MAXALIGN(sizeof(ZklControl));
}

static Size
slots_offset(void)
{
	return add_size(dirty_offset(),
					MAXALIGN(zkl_dirty_size(number_of_slots())));
}

static Size
lockstats_offset(void)
{
	return add_size(slots_offset(),
					MAXALIGN(mul_size(number_of_slots(), sizeof(ZklSlot))));
}

static Size
links_offset(void)
{
	return add_size(lockstats_offset(), MAXALIGN(zkl_lockstats_size()));
}

static Size
deadlocks_offset(void)
{
	return add_size(links_offset(),
					MAXALIGN(mul_size(zkl_max_requests, sizeof(int))));
}

static Size
by_name_offset(void)
{
	return add_size(deadlocks_offset(), MAXALIGN(zkl_deadlocks_size()));
}

static Size
total_size(void)
{
	return add_size(by_name_offset(), zkl_by_name_size());
}

static void
request_hook(void)
{
	if (previous_request_hook)
		previous_request_hook();
	RequestAddinShmemSpace(total_size());
}

static void
initialize(ZklControl *control)
{
	int			i;

	memset(control, 0, total_size());
	pg_atomic_init_u32(&control->ctl_changes, 0);
	control->ctl_status.worker_procno = ZKL_PROCNO_NONE;
	pg_atomic_init_u64(&control->ctl_lease, 0);
	pg_atomic_init_u64(&control->ctl_next_owner, 1);
	pg_atomic_init_u64(&control->ctl_losses, 0);
	pg_atomic_init_u64(&control->ctl_release_requests, 0);
	pg_atomic_init_u64(&control->ctl_cache_takes, 0);
	pg_atomic_init_u64(&control->ctl_count_due, 0);
	pg_atomic_init_u64(&control->ctl_zxid_seen, 0);
	pg_atomic_init_u32(&control->ctl_awaited, 0);
	pg_atomic_init_u32(&control->ctl_gate, zkl_enabled ? ZKL_GATE_OPEN :
					   ZKL_GATE_DISABLED);
	pg_atomic_init_u32(&control->ctl_drain, 0);
	pg_atomic_init_u32(&control->ctl_root_state, ZKL_ROOT_UNKNOWN);
	pg_atomic_init_u32(&control->ctl_worker_procno, (uint32) ZKL_PROCNO_NONE);
	SpinLockInit(&control->ctl_free_mutex);
	control->ctl_nslots = number_of_slots();
	control->ctl_nrequests = zkl_max_requests;
	zkl_dirty_init(control->ctl_nslots);
	zkl_lockstats_init();
	zkl_deadlocks_init();
	zkl_by_name_init();
	for (i = 0; i < control->ctl_nslots; i++)
	{
		SpinLockInit(&zkl_slots[i].s_mutex);
		zkl_slots[i].s_state = ZKL_SLOT_FREE;
	}
	for (i = 0; i < control->ctl_nrequests; i++)
		free_next[i] = i + 1 < control->ctl_nrequests ? i + 1 : -1;
	control->ctl_free_head = 0;
	control->ctl_nfree = control->ctl_nrequests;
}

static void
startup_hook(void)
{
	ZklControl *control;
	char	   *base;
	bool		found;

	if (previous_startup_hook)
		previous_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	control = ShmemInitStruct("zklock", total_size(), &found);
	base = (char *) control;
	zkl_dirty_attach(base + dirty_offset());
	zkl_slots = (ZklSlot *) (base + slots_offset());
	zkl_lockstats_attach(base + lockstats_offset());
	free_next = (int *) (base + links_offset());
	zkl_deadlocks_attach(base + deadlocks_offset());
	zkl_by_name_attach(base + by_name_offset());
	if (!found)
		initialize(control);
	zkl_control = control;
	LWLockRelease(AddinShmemInitLock);
}

void
zkl_control_request(void)
{
	previous_request_hook = shmem_request_hook;
	shmem_request_hook = request_hook;
	previous_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_hook;
}

/* ---- the list of free slots ---- */

int
zkl_control_pop_free(int spare)
{
	int			slotno = -1;

	SpinLockAcquire(&zkl_control->ctl_free_mutex);
	if (zkl_control->ctl_nfree > spare)
	{
		slotno = zkl_control->ctl_free_head;
		zkl_control->ctl_free_head = free_next[slotno];
		zkl_control->ctl_nfree--;
	}
	SpinLockRelease(&zkl_control->ctl_free_mutex);
	return slotno;
}

void
zkl_control_push_free(int slotno)
{
	SpinLockAcquire(&zkl_control->ctl_free_mutex);
	free_next[slotno] = zkl_control->ctl_free_head;
	zkl_control->ctl_free_head = slotno;
	zkl_control->ctl_nfree++;
	SpinLockRelease(&zkl_control->ctl_free_mutex);
}

int
zkl_control_count_free(void)
{
	int			n;

	SpinLockAcquire(&zkl_control->ctl_free_mutex);
	n = zkl_control->ctl_nfree;
	SpinLockRelease(&zkl_control->ctl_free_mutex);
	return n;
}
