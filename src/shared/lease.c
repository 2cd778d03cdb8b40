/*
 * lease.c
 *	  The lease, as one atomic value.
 *
 * Owns ctl_lease.  The worker publishes it, all read it.  Takes no locks.
 *
 * Must not know why it is valid.
 */
#include "postgres.h"

#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/lease.h"
#include "shared/status.h"

#define LEASE_DEADLINE_BITS	40
#define LEASE_DEADLINE_MASK	((UINT64CONST(1) << LEASE_DEADLINE_BITS) - 1)

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
	return zkl_lease_same_generation(current, generation);
}

bool
zkl_lease_is_valid(uint32 generation)
{
	uint32		current;
	int64		deadline_ms;

	zkl_lease_read(&current, &deadline_ms);
	return zkl_lease_same_generation(current, generation) &&
		zkl_boottime_ms() < deadline_ms;
}

long
zkl_lease_look_ms(void)
{
	return (long) zkl_status_timeout_ms() / 6;
}
