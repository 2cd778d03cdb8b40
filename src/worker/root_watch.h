/*
 * root_watch.h
 *	  Reads the settings of the root, and makes them if there are none.  Worker
 *	  only.
 */
#ifndef ZKL_WORKER_ROOT_WATCH_H
#define ZKL_WORKER_ROOT_WATCH_H

#include "postgres.h"

/*
 * Sees to it that the settings are read on each connection, before anything else
 * is sent there; "ready" tells whether the connection is proved.
 */
extern void zkl_root_watch_tick(bool ready);

/* A znode was changed or deleted. */
extern void zkl_root_watch_event(const char *path);

#endif							/* ZKL_WORKER_ROOT_WATCH_H */
