/*
 * shmem.c
 *	  The control block and the slots: where backends and the worker meet.
 *
 * Owns all of zklock's shared memory and every lock that guards it; shmem.h
 * tells the life of a slot and which field is whose.  The postmaster lays it
 * out, backends and the worker run the rest.
 *
 * Locks: a slot's s_mutex (a spinlock) for what is in the slot, ctl_free_mutex
 * (a spinlock) for the list of free slots, ctl_lock (an LWLock) for the
 * worker's status.  No two of them are ever held together, and what runs under
 * a spinlock neither throws nor blocks.  Marks and lease are atomics.
 *
 * Must not know what a lock is, who may have it, or anything of ZooKeeper.
 *
 * Why no wake-up is lost: who changes a slot first changes it, then sets its
 * mark, then the worker's latch; the worker resets its latch before it takes
 * the marks.  Likewise the worker changes a slot before it sets the owner's
 * latch, and the owner resets its latch before it looks at the slot.
 */
#include "postgres.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "compat.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "shmem.h"
#include "storage/ipc.h"
#include "storage/pmsignal.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"
#include "zklock.h"

#define TRANCHE_NAME	"zklock"
#define MARKS_PER_WORD	64

#define LEASE_DEADLINE_BITS	40
#define LEASE_DEADLINE_MASK	((UINT64CONST(1) << LEASE_DEADLINE_BITS) - 1)

ZklControl *zkl_control = NULL;
ZklSlot    *zkl_slots = NULL;

/* Where the other parts of the shared memory lie */
static pg_atomic_uint64 *marks = NULL;
static int *free_next = NULL;

static shmem_request_hook_type previous_request_hook = NULL;
static shmem_startup_hook_type previous_startup_hook = NULL;

static int
words_for(int nslots)
{
	return (nslots + MARKS_PER_WORD - 1) / MARKS_PER_WORD;
}

static Size
marks_offset(void)
{
	return MAXALIGN(sizeof(ZklControl));
}

static Size
slots_offset(void)
{
	return add_size(marks_offset(),
					MAXALIGN(mul_size(words_for(zkl_max_requests),
									  sizeof(pg_atomic_uint64))));
}

static Size
links_offset(void)
{
	return add_size(slots_offset(),
					MAXALIGN(mul_size(zkl_max_requests, sizeof(ZklSlot))));
}

static Size
total_size(void)
{
	return add_size(links_offset(), mul_size(zkl_max_requests, sizeof(int)));
}

static void
request_hook(void)
{
	if (previous_request_hook)
		previous_request_hook();
	RequestAddinShmemSpace(total_size());
	RequestNamedLWLockTranche(TRANCHE_NAME, 1);
}

static void
initialize(ZklControl *control)
{
	int			i;

	memset(control, 0, total_size());
	control->ctl_lock = &GetNamedLWLockTranche(TRANCHE_NAME)->lock;
	control->ctl_status.worker_procno = ZKL_PROCNO_NONE;
	if (!pg_strong_random(control->ctl_server_uuid,
						  sizeof(control->ctl_server_uuid)))
		ereport(FATAL,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate a random identifier for zklock")));
	pg_atomic_init_u64(&control->ctl_lease, 0);
	pg_atomic_init_u64(&control->ctl_next_owner, 1);
	pg_atomic_init_u32(&control->ctl_worker_procno, (uint32) ZKL_PROCNO_NONE);
	SpinLockInit(&control->ctl_free_mutex);
	control->ctl_nslots = zkl_max_requests;
	control->ctl_nwords = words_for(zkl_max_requests);

	for (i = 0; i < control->ctl_nwords; i++)
		pg_atomic_init_u64(&marks[i], 0);
	for (i = 0; i < control->ctl_nslots; i++)
	{
		SpinLockInit(&zkl_slots[i].s_mutex);
		zkl_slots[i].s_state = ZKL_SLOT_FREE;
		free_next[i] = i + 1 < control->ctl_nslots ? i + 1 : -1;
	}
	control->ctl_free_head = 0;
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
	marks = (pg_atomic_uint64 *) (base + marks_offset());
	zkl_slots = (ZklSlot *) (base + slots_offset());
	free_next = (int *) (base + links_offset());
	if (!found)
		initialize(control);
	zkl_control = control;
	LWLockRelease(AddinShmemInitLock);
}

void
zkl_shmem_request(void)
{
	previous_request_hook = shmem_request_hook;
	shmem_request_hook = request_hook;
	previous_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_hook;
}

/* ---- waking ---- */

static void
wake(int procno)
{
	if (procno != ZKL_PROCNO_NONE)
		SetLatch(&GetPGProcByNumber(procno)->procLatch);
}

void
zkl_shmem_wake_worker(void)
{
	wake((int) pg_atomic_read_u32(&zkl_control->ctl_worker_procno));
}

static void
mark(int slotno)
{
	pg_atomic_fetch_or_u64(&marks[slotno / MARKS_PER_WORD],
						   UINT64CONST(1) << (slotno % MARKS_PER_WORD));
	zkl_shmem_wake_worker();
}

void
zkl_shmem_take_marked(void (*fn) (int slotno, void *arg), void *arg)
{
	int			word;

	for (word = 0; word < zkl_control->ctl_nwords; word++)
	{
		uint64		bits;

		if (pg_atomic_read_u64(&marks[word]) == 0)
			continue;
		bits = pg_atomic_exchange_u64(&marks[word], 0);
		while (bits != 0)
		{
			int			bit = pg_rightmost_one_pos64(bits);

			bits &= bits - 1;
			fn(word * MARKS_PER_WORD + bit, arg);
		}
	}
}

/* ---- slots: the backend's steps ---- */

static void
push_free(int slotno)
{
	SpinLockAcquire(&zkl_control->ctl_free_mutex);
	free_next[slotno] = zkl_control->ctl_free_head;
	zkl_control->ctl_free_head = slotno;
	SpinLockRelease(&zkl_control->ctl_free_mutex);
}

int
zkl_slot_claim(void)
{
	ZklSlot    *slot;
	uint32		serial;
	int			slotno;

	SpinLockAcquire(&zkl_control->ctl_free_mutex);
	slotno = zkl_control->ctl_free_head;
	if (slotno >= 0)
		zkl_control->ctl_free_head = free_next[slotno];
	SpinLockRelease(&zkl_control->ctl_free_mutex);
	if (slotno < 0)
		return -1;

	slot = &zkl_slots[slotno];
	SpinLockAcquire(&slot->s_mutex);
	serial = slot->s_serial + 1;
	memset((char *) slot + offsetof(ZklSlot, s_state), 0,
		   sizeof(ZklSlot) - offsetof(ZklSlot, s_state));
	slot->s_serial = serial;
	slot->s_sibling = -1;
	slot->s_znode_seq = -1;
	slot->s_state = ZKL_SLOT_CLAIMED;
	SpinLockRelease(&slot->s_mutex);
	return slotno;
}

/* Makes a step that is due: the slot is known to be in the state "from". */
static void
step(int slotno, ZklSlotState from, ZklSlotState to)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	Assert(slot->s_state == from);
	slot->s_state = to;
	SpinLockRelease(&slot->s_mutex);
}

void
zkl_slot_unclaim(int slotno)
{
	step(slotno, ZKL_SLOT_CLAIMED, ZKL_SLOT_FREE);
	push_free(slotno);
}

void
zkl_slot_submit(int slotno)
{
	step(slotno, ZKL_SLOT_CLAIMED, ZKL_SLOT_WAITING);
	mark(slotno);
}

ZklSlotState
zkl_slot_release(int slotno)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	ZklSlotState left;

	SpinLockAcquire(&slot->s_mutex);
	left = slot->s_state;
	Assert(left != ZKL_SLOT_FREE && left != ZKL_SLOT_CLAIMED);
	slot->s_state = ZKL_SLOT_RELEASED;
	SpinLockRelease(&slot->s_mutex);
	mark(slotno);
	return left;
}

void
zkl_slot_expire(int slotno)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	slot->s_expired = true;
	SpinLockRelease(&slot->s_mutex);
	mark(slotno);
}

void
zkl_slot_set_holds(int slotno, uint32 holds)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	slot->s_holds = holds;
	SpinLockRelease(&slot->s_mutex);
}

void
zkl_slot_set_committing(int slotno, bool committing)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	slot->s_committing = committing;
	SpinLockRelease(&slot->s_mutex);
}

/* ---- slots: looking ---- */

ZklSlotState
zkl_slot_peek(int slotno)
{
	return (ZklSlotState) *(volatile uint32 *) &zkl_slots[slotno].s_state;
}

void
zkl_slot_copy(int slotno, ZklSlot *copy)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	memcpy(copy, slot, sizeof(ZklSlot));
	SpinLockRelease(&slot->s_mutex);
}

bool
zkl_slot_is_held(int slotno, uint32 generation, ZklError *error)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	bool		held;

	SpinLockAcquire(&slot->s_mutex);
	held = slot->s_state == ZKL_SLOT_GRANTED &&
		zkl_same_generation(slot->s_generation, generation);
	*error = slot->s_error;
	SpinLockRelease(&slot->s_mutex);
	return held;
}

/* ---- slots: the worker's steps ---- */

bool
zkl_slot_grant(int slotno, int64 token, uint32 generation)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	TimestampTz now = GetCurrentTimestamp();
	bool		done;
	int			procno;

	SpinLockAcquire(&slot->s_mutex);
	done = slot->s_state == ZKL_SLOT_WAITING;
	procno = slot->s_procno;
	if (done)
	{
		slot->s_token = token;
		slot->s_generation = generation;
		slot->s_granted_at = now;
		slot->s_state = ZKL_SLOT_GRANTED;
	}
	SpinLockRelease(&slot->s_mutex);
	if (done)
		wake(procno);
	return done;
}

/* WAITING -> an answer that is no */
static bool
refuse(int slotno, ZklSlotState to, ZklError error, int32 zkrc)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	bool		done;
	int			procno;

	SpinLockAcquire(&slot->s_mutex);
	done = slot->s_state == ZKL_SLOT_WAITING;
	procno = slot->s_procno;
	if (done)
	{
		slot->s_error = error;
		slot->s_zkrc = zkrc;
		slot->s_state = to;
	}
	SpinLockRelease(&slot->s_mutex);
	if (done)
		wake(procno);
	return done;
}

bool
zkl_slot_deny(int slotno)
{
	return refuse(slotno, ZKL_SLOT_DENIED, ZKL_ERROR_NONE, 0);
}

bool
zkl_slot_fail(int slotno, ZklError error, int32 zkrc)
{
	return refuse(slotno, ZKL_SLOT_FAILED, error, zkrc);
}

/*
 * The signal is sent under the mutex: the holder cannot pass its commit check,
 * nor leave and have its pid used again, between the look and the signal.
 */
bool
zkl_slot_lose(int slotno, ZklError error)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	bool		done;
	int			procno;

	SpinLockAcquire(&slot->s_mutex);
	done = slot->s_state == ZKL_SLOT_GRANTED;
	procno = slot->s_procno;
	if (done)
	{
		slot->s_error = error;
		slot->s_state = ZKL_SLOT_LOST;
		if (!slot->s_committing && slot->s_lost_action == ZKL_LOST_CANCEL)
			kill(slot->s_pid, SIGINT);
		else if (!slot->s_committing &&
				 slot->s_lost_action == ZKL_LOST_TERMINATE)
			kill(slot->s_pid, SIGTERM);
	}
	SpinLockRelease(&slot->s_mutex);
	if (done)
		wake(procno);
	return done;
}

void
zkl_slot_set_znode(int slotno, const ZklUuid *uuid, uint32 index,
				   ZklLockMode mode, int64 seq, uint32 generation)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	slot->s_znode_sent = true;
	slot->s_znode_uuid = *uuid;
	slot->s_znode_index = index;
	slot->s_znode_mode = mode;
	slot->s_znode_seq = seq;
	slot->s_generation = generation;
	SpinLockRelease(&slot->s_mutex);
}

void
zkl_slot_clear_znode(int slotno)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	slot->s_znode_sent = false;
	memset(&slot->s_znode_uuid, 0, sizeof(slot->s_znode_uuid));
	slot->s_znode_index = 0;
	slot->s_znode_mode = 0;
	slot->s_znode_seq = -1;
	SpinLockRelease(&slot->s_mutex);
}

void
zkl_slot_free(int slotno)
{
	step(slotno, ZKL_SLOT_RELEASED, ZKL_SLOT_FREE);
	push_free(slotno);
}

/* ---- status and lease ---- */

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

void
zkl_status_copy(ZklStatus *copy)
{
	LWLockAcquire(zkl_control->ctl_lock, LW_SHARED);
	memcpy(copy, &zkl_control->ctl_status, sizeof(ZklStatus));
	LWLockRelease(zkl_control->ctl_lock);
}

void
zkl_lease_publish(uint32 generation, int64 deadline_ms)
{
	uint64		deadline = (uint64) Max(deadline_ms, 0);

	pg_atomic_write_u64(&zkl_control->ctl_lease,
						((uint64) (generation & ZKL_GENERATION_MASK)
						 << LEASE_DEADLINE_BITS) |
						Min(deadline, LEASE_DEADLINE_MASK));
}

void
zkl_lease_read(uint32 *generation, int64 *deadline_ms)
{
	uint64		lease = pg_atomic_read_u64(&zkl_control->ctl_lease);

	*generation = (uint32) (lease >> LEASE_DEADLINE_BITS);
	*deadline_ms = (int64) (lease & LEASE_DEADLINE_MASK);
}

int64
zkl_boottime_ms(void)
{
	struct timespec now;

#ifdef CLOCK_BOOTTIME
	clock_gettime(CLOCK_BOOTTIME, &now);
#else
	clock_gettime(CLOCK_MONOTONIC, &now);
#endif
	return (int64) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
