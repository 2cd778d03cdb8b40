/*
 * shmem.c
 *	  The control block: where backends and the worker meet.
 *
 * Owns the layout of zklock's shared memory, the list of free slots, the marks
 * by which backends tell the worker what changed, the worker's status and the
 * lease.  What is in a slot belongs to slot.c.  The postmaster lays it out,
 * backends and the worker run the rest.
 *
 * Locks: ctl_free_mutex (a spinlock) for the list of free slots, ctl_lock (an
 * LWLock) for the worker's status; never both, nor either with a slot's mutex.
 * Marks and lease are atomics.
 *
 * Must not know what a lock is, who may have it, or anything of ZooKeeper.
 *
 * Why no wake-up is lost: who changes a slot first changes it, then sets its
 * mark, then the worker's latch; the worker resets its latch before it takes
 * the marks.  Likewise the worker changes a slot before it sets the owner's
 * latch, and the owner resets its latch before it looks at the slot.  The
 * worker's latch may be left alone while ctl_awaited says that it awaits more:
 * it then sleeps for a moment only, and sets that to 0 before it takes the
 * marks.
 */
#include "postgres.h"

#include <time.h>

#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "shared/shmem.h"
#include "shared/zklock.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/shmem.h"

#define TRANCHE_NAME	"zklock"
#define BITS_PER_WORD	64

#define LEASE_DEADLINE_BITS	40
#define LEASE_DEADLINE_MASK	((UINT64CONST(1) << LEASE_DEADLINE_BITS) - 1)

ZklControl *zkl_control = NULL;
ZklSlot    *zkl_slots = NULL;

/* Where the other parts of the shared memory lie */
static pg_atomic_uint64 *marks = NULL;
static pg_atomic_uint64 *sums = NULL;
static int *free_next = NULL;

/* The worker's own: whom it is to wake */
static int	noted[256];
static int	nnoted = 0;

static shmem_request_hook_type previous_request_hook = NULL;
static shmem_startup_hook_type previous_startup_hook = NULL;

static int
words_for(int nbits)
{
	return (nbits + BITS_PER_WORD - 1) / BITS_PER_WORD;
}

static int
number_of_slots(void)
{
	return zkl_max_requests + MaxBackends * ZKL_OWN_SLOTS;
}

static Size
marks_offset(void)
{
	return MAXALIGN(sizeof(ZklControl));
}

static Size
sums_offset(void)
{
	return add_size(marks_offset(), mul_size(words_for(number_of_slots()),
											 sizeof(pg_atomic_uint64)));
}

static Size
slots_offset(void)
{
	return add_size(sums_offset(),
					mul_size(words_for(words_for(number_of_slots())),
							 sizeof(pg_atomic_uint64)));
}

static Size
links_offset(void)
{
	return add_size(slots_offset(),
					MAXALIGN(mul_size(number_of_slots(), sizeof(ZklSlot))));
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
	pg_atomic_init_u64(&control->ctl_lease, 0);
	pg_atomic_init_u64(&control->ctl_next_owner, 1);
	pg_atomic_init_u64(&control->ctl_losses, 0);
	pg_atomic_init_u64(&control->ctl_revocations, 0);
	pg_atomic_init_u64(&control->ctl_zxid_seen, 0);
	pg_atomic_init_u32(&control->ctl_awaited, 0);
	pg_atomic_init_u32(&control->ctl_worker_procno, (uint32) ZKL_PROCNO_NONE);
	SpinLockInit(&control->ctl_free_mutex);
	control->ctl_nslots = number_of_slots();
	control->ctl_nrequests = zkl_max_requests;
	control->ctl_nwords = words_for(control->ctl_nslots);
	control->ctl_nsums = words_for(control->ctl_nwords);

	for (i = 0; i < control->ctl_nwords; i++)
		pg_atomic_init_u64(&marks[i], 0);
	for (i = 0; i < control->ctl_nsums; i++)
		pg_atomic_init_u64(&sums[i], 0);
	for (i = 0; i < control->ctl_nslots; i++)
	{
		SpinLockInit(&zkl_slots[i].s_mutex);
		zkl_slots[i].s_state = ZKL_SLOT_FREE;
	}
	for (i = 0; i < control->ctl_nrequests; i++)
		free_next[i] = i + 1 < control->ctl_nrequests ? i + 1 : -1;
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
	sums = (pg_atomic_uint64 *) (base + sums_offset());
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

void
zkl_shmem_wake(int procno)
{
	if (procno != ZKL_PROCNO_NONE)
		SetLatch(&GetPGProcByNumber(procno)->procLatch);
}

void
zkl_shmem_wake_later(int procno)
{
	if (nnoted == lengthof(noted))
		zkl_shmem_wake_noted();
	noted[nnoted++] = procno;
}

void
zkl_shmem_wake_noted(void)
{
	int			i;

	for (i = 0; i < nnoted; i++)
		zkl_shmem_wake(noted[i]);
	nnoted = 0;
}

void
zkl_shmem_wake_worker(void)
{
	zkl_shmem_wake((int) pg_atomic_read_u32(&zkl_control->ctl_worker_procno));
}

/* First the mark, then the sum: a sum may be for nothing, a mark never is. */
static void
set_mark(int slotno)
{
	int			word = slotno / BITS_PER_WORD;

	pg_atomic_fetch_or_u64(&marks[word],
						   UINT64CONST(1) << (slotno % BITS_PER_WORD));
	pg_atomic_fetch_or_u64(&sums[word / BITS_PER_WORD],
						   UINT64CONST(1) << (word % BITS_PER_WORD));
}

void
zkl_shmem_mark_first(int slotno)
{
	set_mark(slotno);
}

void
zkl_shmem_mark(int slotno)
{
	set_mark(slotno);
	zkl_shmem_wake_worker();
}

/*
 * Whoever counts to zero wakes the worker; below that, all do.  The mark is
 * set before, and the worker looks at the marks after it has set this to 0.
 */
void
zkl_shmem_mark_demand(int slotno)
{
	set_mark(slotno);
	if ((int32) pg_atomic_read_u32(&zkl_control->ctl_awaited) <= 0 ||
		(int32) pg_atomic_sub_fetch_u32(&zkl_control->ctl_awaited, 1) <= 0)
		zkl_shmem_wake_worker();
}

void
zkl_shmem_mark_leisurely(int slotno)
{
	set_mark(slotno);
	if ((int32) pg_atomic_read_u32(&zkl_control->ctl_awaited) <= 0)
		zkl_shmem_wake_worker();
}

void
zkl_shmem_await(uint32 demands)
{
	if (demands != 0 || pg_atomic_read_u32(&zkl_control->ctl_awaited) != 0)
		(void) pg_atomic_exchange_u32(&zkl_control->ctl_awaited, demands);
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
zkl_shmem_take_marks(int *slots)
{
	int			n = 0,
				i,
				j;

	for (i = 0; i < zkl_control->ctl_nsums; i++)
	{
		int			words[BITS_PER_WORD];
		int			nwords = take_bits(&sums[i], i * BITS_PER_WORD, words);

		for (j = 0; j < nwords; j++)
			n += take_bits(&marks[words[j]], words[j] * BITS_PER_WORD,
						   slots + n);
	}
	return n;
}

void
zkl_shmem_return_marks(const int *slots, int nslots)
{
	int			i;

	for (i = 0; i < nslots; i++)
		set_mark(slots[i]);
	if (nslots > 0)
		zkl_shmem_wake_worker();
}

/* ---- the list of free slots ---- */

int
zkl_shmem_pop_free(void)
{
	int			slotno;

	SpinLockAcquire(&zkl_control->ctl_free_mutex);
	slotno = zkl_control->ctl_free_head;
	if (slotno >= 0)
		zkl_control->ctl_free_head = free_next[slotno];
	SpinLockRelease(&zkl_control->ctl_free_mutex);
	return slotno;
}

void
zkl_shmem_push_free(int slotno)
{
	SpinLockAcquire(&zkl_control->ctl_free_mutex);
	free_next[slotno] = zkl_control->ctl_free_head;
	zkl_control->ctl_free_head = slotno;
	SpinLockRelease(&zkl_control->ctl_free_mutex);
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

/* Read without the lock: one word, that seldom changes. */
uint32
zkl_session_timeout_ms(void)
{
	uint32		negotiated = *(volatile uint32 *)
	&zkl_control->ctl_status.timeout_ms;

	return negotiated != 0 ? negotiated : (uint32) zkl_session_timeout;
}

long
zkl_lease_look_ms(void)
{
	return (long) zkl_session_timeout_ms() / 6;
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

bool
zkl_lease_is_current(uint32 generation)
{
	uint32		current;
	int64		deadline_ms;

	zkl_lease_read(&current, &deadline_ms);
	return zkl_same_generation(current, generation);
}

bool
zkl_lease_is_valid(uint32 generation)
{
	uint32		current;
	int64		deadline_ms;

	zkl_lease_read(&current, &deadline_ms);
	return zkl_same_generation(current, generation) &&
		zkl_boottime_ms() < deadline_ms;
}

int64
zkl_boottime_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64
zkl_boottime_ms(void)
{
	return zkl_boottime_us() / 1000;
}
