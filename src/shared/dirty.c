/*
 * dirty.c
 *	  Which slots changed since the worker looked at them: one bit per slot.
 *
 * Owns the bits and ctl_awaited.  Backends set bits, the worker takes them.
 * Takes no locks: these are atomics.  It must not know what a slot is.
 *
 * No wake-up is lost.  A backend changes a slot, then sets its bit, then sets
 * the worker's latch; the worker resets its latch before it takes the bits.
 * Likewise the worker changes a slot before it sets the owner's latch, and the
 * owner resets its latch before it looks at the slot.  A backend may leave the
 * worker's latch alone while ctl_awaited says that the worker awaits more
 * requests: then the worker sleeps for a moment only, and sets ctl_awaited to 0
 * before it takes the bits.
 */
#include "postgres.h"

#include "port/pg_bitutils.h"
#include "shared/control.h"
#include "shared/dirty.h"

#define BITS_PER_WORD	64
#define WORD_OF(slotno) (&words[(slotno) / BITS_PER_WORD])
#define BIT_OF(slotno)	(UINT64CONST(1) << ((slotno) % BITS_PER_WORD))

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
