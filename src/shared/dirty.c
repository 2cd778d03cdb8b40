/*
 * dirty.c
 *	  Which slots changed since the worker looked at them: one bit per slot.
 *
 * Owns the bits and ctl_awaited.  Backends set bits, the worker takes them.
 * Takes no locks: these are atomics.
 *
 * Must not know what a slot is.
 *
 * Why no wake-up is lost: who changes a slot first changes it, then sets its
 * bit, then the worker's latch; the worker resets its latch before it takes
 * the bits.  Likewise the worker changes a slot before it sets the owner's
 * latch, and the owner resets its latch before it looks at the slot.  The
 * worker's latch may be left alone while ctl_awaited says that it awaits more:
 * it then sleeps for a moment only, and sets that to 0 before it takes the
 * bits.
 */
#include "postgres.h"

#include "port/pg_bitutils.h"
#include "shared/control.h"
#include "shared/dirty.h"
#include "shared/wakeup.h"

#define BITS_PER_WORD	64

static pg_atomic_uint64 *words = NULL;

static int
words_for(int nslots)
{
	return (nslots + BITS_PER_WORD - 1) / BITS_PER_WORD;
}

Size
zkl_dirty_size(int nslots)
{
	return mul_size(words_for(nslots), sizeof(pg_atomic_uint64));
}

void
zkl_dirty_attach(void *memory)
{
	words = memory;
}

void
zkl_dirty_init(int nslots)
{
	int			i;

	for (i = 0; i < words_for(nslots); i++)
		pg_atomic_init_u64(&words[i], 0);
}

static void
set_bit(int slotno)
{
	pg_atomic_fetch_or_u64(&words[slotno / BITS_PER_WORD],
						   UINT64CONST(1) << (slotno % BITS_PER_WORD));
}

void
zkl_dirty_set_quietly(int slotno)
{
	set_bit(slotno);
}

void
zkl_dirty_set(int slotno)
{
	set_bit(slotno);
	zkl_wakeup_worker();
}

/*
 * Whoever counts to zero wakes the worker; below that, all do.  The mark is
 * set before, and the worker looks at the marks after it has set this to 0.
 */
void
zkl_dirty_set_demand(int slotno)
{
	set_bit(slotno);
	if ((int32) pg_atomic_read_u32(&zkl_control->ctl_awaited) <= 0 ||
		(int32) pg_atomic_sub_fetch_u32(&zkl_control->ctl_awaited, 1) <= 0)
		zkl_wakeup_worker();
}

void
zkl_dirty_set_leisurely(int slotno)
{
	set_bit(slotno);
	if ((int32) pg_atomic_read_u32(&zkl_control->ctl_awaited) <= 0)
		zkl_wakeup_worker();
}

void
zkl_dirty_await(uint32 demands)
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
zkl_dirty_take(int *slots)
{
	int			n = 0,
				i;

	for (i = 0; i < words_for(zkl_control->ctl_nslots); i++)
		n += take_bits(&words[i], i * BITS_PER_WORD, slots + n);
	return n;
}

void
zkl_dirty_return(const int *slots, int nslots)
{
	int			i;

	for (i = 0; i < nslots; i++)
		set_bit(slots[i]);
	if (nslots > 0)
		zkl_wakeup_worker();
}
