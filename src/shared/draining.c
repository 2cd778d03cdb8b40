/*
 * draining.c
 *	  Whether this server is being drained: zk_drain() and zk_undrain().
 *
 * Owns ctl_drain.  Backends of superusers set it, all backends read it.  Takes no
 * locks.  Must not know what follows from it.
 *
 * The number is odd while a drain is on.  It is in shared memory, so a restart of
 * the worker does not end the drain, and a restart of PostgreSQL does.
 */
#include "postgres.h"

#include "shared/control.h"
#include "shared/draining.h"

uint32
zkl_draining_number(void)
{
	uint32		number = pg_atomic_read_u32(&zkl_control->ctl_drain);

	return number % 2 == 1 ? number : 0;
}

/* Goes from an even number to an odd one, or back. */
static bool
change(bool on)
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
zkl_draining_begin(void)
{
	return change(true);
}

bool
zkl_draining_end(void)
{
	return change(false);
}
