/*
 * watch.h
 *	  ZooKeeper's watches: who is to be told, once, what happens to a node.
 */
#ifndef ZKL_MODEL_WATCH_H
#define ZKL_MODEL_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/manager.h"

/* A connection, as far as it watches */
typedef struct Watcher
{
	uint32_t	watches;		/* that are set */
} Watcher;

typedef struct Watch
{
	struct Watch *next;
	Watcher    *who;
} Watch;

extern uint32_t watches_set;	/* of all watchers */

extern void watch_add(Watch **watches, Watcher *who);	/* unless it is there */
extern bool watch_remove(Watch **watches, Watcher *who);	/* false: not there */
extern void watch_drop(Watch **watches);	/* all of them, in silence */
extern void watch_fire(Watch **watches, ZklEventKind kind, const char *path);

/* A node is deleted: a watcher of it and of its children is told once. */
extern void watch_fire_both(Watch **data, Watch **children, const char *path);

/* The program's: an event is on its way to a watcher. */
extern void watcher_event(Watcher *who, ZklEventKind kind, const char *path);

#endif							/* ZKL_MODEL_WATCH_H */
