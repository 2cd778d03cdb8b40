/*
 * draining.h
 *	  Whether this server is being drained: zk_drain() and zk_undrain().
 *
 * Drains are counted, so that a holder that was asked by an earlier one is asked
 * again.
 */
#ifndef ZKL_SHARED_DRAINING_H
#define ZKL_SHARED_DRAINING_H

/* The number of the drain that is on; 0: none is */
extern uint32 zkl_draining_number(void);

/*
 * Begins a drain, or goes on with the one that is on, and ends it.  False: it was
 * on, or off, already.
 */
extern bool zkl_draining_begin(void);
extern bool zkl_draining_end(void);

#endif							/* ZKL_SHARED_DRAINING_H */
