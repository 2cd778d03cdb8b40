/*
 * gate.h
 *	  Whether sessions of this server may use zklock.
 */
#ifndef ZKL_SHARED_GATE_H
#define ZKL_SHARED_GATE_H

#define ZKL_EXTENSION_NAME	"zklock"

/* ---- loaded ---- */

/* An error 55000 with a hint unless zklock was preloaded */
extern void zkl_gate_check(void);

/* The same, and an error 55000 too if this server runs no worker */
extern void zkl_gate_check_worker(void);

/* The postmaster's, while it preloads: whether the worker is registered */
extern void zkl_gate_set_worker(bool registered);

/* ---- the gate ---- */

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

/* ---- drains: zk_drain() and zk_undrain() ---- */

/*
 * The number of the drain that is on; 0: none is.  Drains are counted, so that a
 * holder that was asked by an earlier one is asked again.
 */
extern uint32 zkl_gate_drain(void);

/*
 * Begins a drain, or goes on with the one that is on, and ends it.  False: it was
 * on, or off, already.
 */
extern bool zkl_gate_begin_drain(void);
extern bool zkl_gate_end_drain(void);

#endif							/* ZKL_SHARED_GATE_H */
