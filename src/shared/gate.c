/*
 * gate.c
 *	  Whether this server takes new requests for locks at all.
 *
 * Owns ctl_gate.  The worker sets it, backends read it.  Takes no locks.  Must not
 * know what follows from it.
 */
#include "postgres.h"

#include "shared/control.h"
#include "shared/gate.h"

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
