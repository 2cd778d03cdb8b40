/*
 * gate.h
 *	  Whether sessions of this server may use zklock, and until when they may
 *	  rely on it.
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

/* ---- lease: the lease: until when this server may rely on its grants ---- */

/* The published lease has room for this much of a session's generation */
#define ZKL_GENERATION_MASK	0xFFFFFFU

static inline bool
zkl_lease_same_generation(uint32 a, uint32 b)
{
	return (a & ZKL_GENERATION_MASK) == (b & ZKL_GENERATION_MASK);
}

/* The published lease; times in ms of boottime.h. */
extern void zkl_lease_read(uint32 *generation, int64 *deadline_ms);

/* Whether the worker still has the session of a generation. */
extern bool zkl_lease_is_current(uint32 generation);

/*
 * Whether the server may rely, now, on what it was granted in a generation:
 * the worker has no newer session, and its lease has not passed.  Read from
 * one atomic value, so that it holds even if the worker is stopped.
 */
extern bool zkl_lease_is_valid(uint32 generation);

/* ---- worker ---- */

extern void zkl_lease_publish(uint32 generation, int64 deadline_ms);

/* ---- backends that wait for it ---- */

/*
 * How often, in ms, to look whether a lease was renewed.  The worker wakes
 * the waiting backends, but not if it is killed just then.
 */
extern long zkl_lease_look_ms(void);

#endif							/* ZKL_SHARED_GATE_H */
