/*
 * control.c
 *	  The shared memory: its layout, which slots and processes there are, and
 *	  which slots have changed.
 *
 * Owns these: the free slots, the slot to look at for a name, the processes to be
 * woken, one dirty bit per slot, and ctl_awaited.  What is in a slot belongs to
 * backend_slot.c and worker_slot.c, the worker's status to status.c, the lease to
 * gate.c.  The postmaster lays it out, backends and the worker run the rest.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/deadlocks.h"
#include "shared/gate.h"
#include "shared/lockstats.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"

/* ---- dirty ---- */

/*
 * Which slots changed since the worker looked at them: one bit per slot.
 *
 * Backends set bits, the worker takes them.  Takes no locks: these are atomics.  It
 * must not know what a slot is.
 *
 * No wake-up is lost.  A backend changes a slot, then sets its bit, then sets
 * the worker's latch; the worker resets its latch before it takes the bits.
 * Likewise the worker changes a slot before it sets the owner's latch, and the
 * owner resets its latch before it looks at the slot.  A backend may leave the
 * worker's latch alone while ctl_awaited says that the worker awaits more
 * requests: then the worker sleeps for a moment only, and sets ctl_awaited to 0
 * before it takes the bits.
 */

#define BITS_PER_WORD	64
#define WORD_OF(slotno) (&words[(slotno) / BITS_PER_WORD])
#define BIT_OF(slotno)	(UINT64CONST(1) << ((slotno) % BITS_PER_WORD))

static pg_atomic_uint64 *words = NULL;

static int
words_for(int nslots)
{
	return (nslots + BITS_PER_WORD - 1) / BITS_PER_WORD;
}

/* The bytes that the bits of so many slots take; where they are; all clear. */
static Size
dirty_size(int nslots)
{
	return mul_size(words_for(nslots), sizeof(pg_atomic_uint64));
}

static void
dirty_attach(void *memory)
{
	words = memory;
}

static void
dirty_init(int nslots)
{
	int			i;

	for (i = 0; i < words_for(nslots); i++)
		pg_atomic_init_u64(&words[i], 0);
}

/* Counts a new request.  Returns whether the worker still awaits others. */
static bool
count_request(void)
{
	return (int32) pg_atomic_sub_fetch_u32(&zkl_control->ctl_awaited, 1) > 0;
}

static bool
is_awaiting(void)
{
	return (int32) pg_atomic_read_u32(&zkl_control->ctl_awaited) > 0;
}

void
zkl_dirty_set(int slotno, ZklWake wake)
{
	pg_atomic_fetch_or_u64(WORD_OF(slotno), BIT_OF(slotno));
	if (wake == ZKL_WAKE_NOW ||
		(wake == ZKL_WAKE_FOR_REQUEST && !(is_awaiting() && count_request())) ||
		(wake == ZKL_WAKE_AT_LEISURE && !is_awaiting()))
		zkl_control_wake_worker();
}

bool
zkl_dirty_is_set(int slotno)
{
	return (pg_atomic_read_u64(WORD_OF(slotno)) & BIT_OF(slotno)) != 0;
}

void
zkl_dirty_await(uint32 requests)
{
	if (requests != 0 || pg_atomic_read_u32(&zkl_control->ctl_awaited) != 0)
		(void) pg_atomic_exchange_u32(&zkl_control->ctl_awaited, requests);
}

/* Takes all bits of a word: their numbers, from "base" on; how many. */
static int
take_bits(pg_atomic_uint64 *word, int base, int *numbers)
{
	uint64		bits = pg_atomic_read_u64(word);
	int			n = 0;

	if (bits == 0)
		return 0;
	for (bits = pg_atomic_exchange_u64(word, 0); bits != 0; bits &= bits - 1)
		numbers[n++] = base + pg_rightmost_one_pos64(bits);
	return n;
}

int
zkl_dirty_take(int *slots)
{
	int			n = 0,
				i;

	for (i = 0; i < words_for(zkl_control->ctl_nslots); i++)
		n += take_bits(&words[i], i * BITS_PER_WORD, slots + n);
	return n;
}

/* ---- control ---- */

/*
 * The shared memory: its layout, and which slots and processes there are: the free
 * slots, the slot to look at for a name, the processes to be woken.
 *
 * Takes ctl_free_mutex, a spinlock, and never together with any other lock.
 *
 * Must not know what a lock is, who may have it, or anything of ZooKeeper.
 */

ZklControl *zkl_control = NULL;
ZklSlot    *zkl_slots = NULL;

/* Where the links of the list of free slots lie */
static int *free_next = NULL;

/* By name and dialect, mapped directly by a hash: a slot that may have that lock */
static pg_atomic_uint32 *places = NULL;

/* So few locks share a place with another one */
#define PLACES_PER_REQUEST	4
#define NO_SLOT	PG_UINT32_MAX

/* In the worker: the processes that it has to wake */
static int	noted[256];
static int	nnoted = 0;

static shmem_request_hook_type previous_request_hook = NULL;
static shmem_startup_hook_type previous_startup_hook = NULL;

static int
number_of_slots(void)
{
	return zkl_max_requests + MaxBackends * ZKL_OWN_SLOTS;
}

static uint32
number_of_places(void)
{
	return pg_nextpower2_32(PLACES_PER_REQUEST * (uint32) zkl_max_requests);
}

/* Where the next part is, of that size; NULL if there is no memory yet */
static void *
next_part(char *base, Size *used, Size size)
{
	char	   *part = base != NULL ? base + *used : NULL;

	*used = add_size(*used, MAXALIGN(size));
	return part;
}

/* Lays all parts out behind each other; returns what they take. */
static Size
lay_out(char *base)
{
	int			nslots = number_of_slots();
	Size		used = 0;
	void	   *dirty;
	void	   *lockstats;
	void	   *deadlocks;

	(void) next_part(base, &used, sizeof(ZklControl));
	dirty = next_part(base, &used, dirty_size(nslots));
	zkl_slots = next_part(base, &used, mul_size(nslots, sizeof(ZklSlot)));
	lockstats = next_part(base, &used, zkl_lockstats_size());
	free_next = next_part(base, &used, mul_size(zkl_max_requests, sizeof(int)));
	deadlocks = next_part(base, &used, zkl_deadlocks_size());
	places = next_part(base, &used, mul_size(number_of_places(),
											 sizeof(pg_atomic_uint32)));
	if (base != NULL)
	{
		dirty_attach(dirty);
		zkl_lockstats_attach(lockstats);
		zkl_deadlocks_attach(deadlocks);
	}
	return used;
}

static void
request_hook(void)
{
	if (previous_request_hook)
		previous_request_hook();
	RequestAddinShmemSpace(lay_out(NULL));
}

/* No number is 0, nor, most likely, one of before a restart, or of another server. */
static uint64
first_ticket(void)
{
	uint32		start;

	if (!pg_strong_random(&start, sizeof(start)))
		start = (uint32) zkl_boottime_us();
	return ((uint64) (start >> 1) << 32) + 1;
}

static void
initialize(ZklControl *control)
{
	int			i;

	memset(control, 0, lay_out((char *) control));
	pg_atomic_init_u32(&control->ctl_changes, 0);
	control->ctl_status.worker_procno = ZKL_PROCNO_NONE;
	pg_atomic_init_u64(&control->ctl_lease, 0);

	/* Most likely the previous shared memory began with another number. */
	control->ctl_starts_from = (uint32) zkl_boottime_us();
	pg_atomic_init_u64(&control->ctl_next_owner, 1);
	pg_atomic_init_u64(&control->ctl_next_ticket, first_ticket());
	pg_atomic_init_u64(&control->ctl_losses, 0);
	pg_atomic_init_u64(&control->ctl_release_requests, 0);
	pg_atomic_init_u64(&control->ctl_cache_takes, 0);
	pg_atomic_init_u64(&control->ctl_count_due, 0);
	pg_atomic_init_u64(&control->ctl_zxid_seen, 0);
	pg_atomic_init_u32(&control->ctl_awaited, 0);
	pg_atomic_init_u32(&control->ctl_gate, zkl_enabled ? ZKL_GATE_OPEN :
					   ZKL_GATE_DISABLED);
	pg_atomic_init_u32(&control->ctl_breaks, 0);
	pg_atomic_init_u32(&control->ctl_drain, 0);
	pg_atomic_init_u32(&control->ctl_root_state, ZKL_ROOT_UNKNOWN);
	pg_atomic_init_u32(&control->ctl_worker_procno, (uint32) ZKL_PROCNO_NONE);
	SpinLockInit(&control->ctl_free_mutex);
	control->ctl_nslots = number_of_slots();
	control->ctl_nrequests = zkl_max_requests;
	dirty_init(control->ctl_nslots);
	zkl_lockstats_init();
	zkl_deadlocks_init();
	for (i = 0; i < (int) number_of_places(); i++)
		pg_atomic_init_u32(&places[i], NO_SLOT);
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
	bool		found;

	if (previous_startup_hook)
		previous_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	control = ShmemInitStruct("zklock", lay_out(NULL), &found);
	(void) lay_out((char *) control);
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

/* ---- slots by name ---- */

static pg_atomic_uint32 *
place_of(const char *path, ZklDialect dialect)
{
	uint32		hash = hash_combine(hash_bytes((const unsigned char *) path,
											   (int) strlen(path)),
									(uint32) dialect);

	return &places[hash & (number_of_places() - 1)];
}

void
zkl_control_note_slot(const char *path, ZklDialect dialect, int slotno)
{
	pg_atomic_uint32 *place = place_of(path, dialect);

	/* Reads alone leave it in the caches of all processors. */
	if (pg_atomic_read_u32(place) != (uint32) slotno)
		pg_atomic_write_u32(place, (uint32) slotno);
}

int
zkl_control_find_slot(const char *path, ZklDialect dialect)
{
	return (int) pg_atomic_read_u32(place_of(path, dialect));
}

/* ---- waking processes by their latches ---- */

void
zkl_control_wake(int procno)
{
	if (procno != ZKL_PROCNO_NONE)
		SetLatch(&GetPGProcByNumber(procno)->procLatch);
}

void
zkl_control_wake_later(int procno)
{
	if (nnoted == lengthof(noted))
		zkl_control_wake_noted();
	noted[nnoted++] = procno;
}

void
zkl_control_wake_noted(void)
{
	int			i;

	for (i = 0; i < nnoted; i++)
		zkl_control_wake(noted[i]);
	nnoted = 0;
}

void
zkl_control_wake_worker(void)
{
	zkl_control_wake((int) pg_atomic_read_u32(&zkl_control->ctl_worker_procno));
}
