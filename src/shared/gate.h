/*
 * gate.h
 *	  Whether this server takes new requests for locks at all.
 */
#ifndef ZKL_SHARED_GATE_H
#define ZKL_SHARED_GATE_H

typedef enum ZklGate
{
	ZKL_GATE_OPEN,
	ZKL_GATE_DISABLED			/* "zklock.enabled" is off */
} ZklGate;

extern ZklGate zkl_gate_read(void);

/*
 * For the worker, which then has to wake the backends that wait.  A backend that
 * submits a request looks at the gate before it sleeps.
 */
extern void zkl_gate_set(ZklGate gate);

#endif							/* ZKL_SHARED_GATE_H */
