/*
 * reconnects.h
 *	  Backends that wait for another connection: zk_reconnect().  Worker only.
 */
#ifndef ZKL_WORKER_RECONNECTS_H
#define ZKL_WORKER_RECONNECTS_H

#include "worker/operation.h"

/* Slots of kind RECONNECT */
extern const ZklTaskOwner zkl_reconnects_owner;

/* Whether any of them waits for a trial */
extern bool zkl_reconnects_are_waiting(void);

/* The trial has failed; or it has not, and another connection begins. */
extern void zkl_reconnects_failed(const char *fault);
extern void zkl_reconnects_move(void);

/* Answers those whose connection is there. */
extern void zkl_reconnects_tick(void);

#endif							/* ZKL_WORKER_RECONNECTS_H */
