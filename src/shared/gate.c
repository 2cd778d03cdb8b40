/*
 * gate.c
 *	  Whether sessions of this server may use zklock, and until when they may
 *	  rely on it.
 *
 * Owns ctl_gate, ctl_drain and ctl_lease: whether zklock is loaded, whether requests
 * for locks are accepted at all, whether the server is drained, and the lease.  The
 * postmaster tells whether there is a worker, the worker sets the gate and the
 * lease, backends of superusers begin and end drains, and all backends read that.
 * Takes no locks.  Must not know what follows from it.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "shared/status.h"

/* ---- loaded ---- */

static bool worker_registered = false;

void
zkl_gate_set_worker(bool registered)
{
	worker_registered = registered;
}

void
zkl_gate_check(void)
{
	if (zkl_control == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("zklock is not loaded"),
				 errhint("Add \"zklock\" to \"shared_preload_libraries\" and restart the server.")));
}

void
zkl_gate_check_worker(void)
{
	zkl_gate_check();
	if (!IsUnderPostmaster || IsBinaryUpgrade)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("distributed locks are not available in this mode of the server"),
				 errdetail("The zklock worker does not run in single-user mode or during a binary upgrade.")));
	if (!worker_registered)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("could not start the zklock worker"),
				 errhint("Increase \"max_worker_processes\" and restart the server.")));
}

/* ---- the gate ---- */

ZklGate
zkl_gate_read(void)
{
	return (ZklGate) pg_atomic_read_u32(&zkl_control->ctl_gate);
}

void
zkl_gate_set(ZklGate gate)
{
	pg_atomic_write_u32(&zkl_control->ctl_gate, (uint32) gate);
	pg_memory_barrier();
}

/* ---- drains ---- */

/*
 * The number is odd while a drain is on.  It is in shared memory, so a restart of
 * the worker does not end the drain, and a restart of PostgreSQL does.
 */
uint32
zkl_gate_drain(void)
{
	uint32		number = pg_atomic_read_u32(&zkl_control->ctl_drain);

	return number % 2 == 1 ? number : 0;
}

/* Goes from an even number to an odd one, or back. */
static bool
change_drain(bool on)
{
	uint32		number = pg_atomic_read_u32(&zkl_control->ctl_drain);

	while ((number % 2 == 1) != on)
	{
		if (pg_atomic_compare_exchange_u32(&zkl_control->ctl_drain, &number,
										   number + 1))
			return true;
	}
	return false;
}

bool
zkl_gate_begin_drain(void)
{
	return change_drain(true);
}

bool
zkl_gate_end_drain(void)
{
	return change_drain(false);
}

/* ---- lease: the lease, as one atomic value ---- */

/*
 * The worker publishes it, all read it.
 *
 * Must not know why it is valid.
 */

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
