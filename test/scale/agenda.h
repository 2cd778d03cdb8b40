/*
 * agenda.h
 *	  Virtual time: who is to act when.
 */
#ifndef SCALE_AGENDA_H
#define SCALE_AGENDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum AgendaKind
{
	AGENDA_BACKEND,				/* has thought, or held, long enough */
	AGENDA_SERVE,				/* ZooKeeper has executed a request */
	AGENDA_DELIVER,				/* an answer or event arrives */
	AGENDA_TIMER,				/* a manager's */
	AGENDA_REAP					/* ZooKeeper's reaper looks at a container */
} AgendaKind;

typedef struct AgendaEntry
{
	int64_t		at;				/* µs */
	uint64_t	order;			/* of those at the same time: first come,
								 * first served */
	AgendaKind	kind;
	uint32_t	who;
} AgendaEntry;

/* The time of the entry that was taken last */
extern int64_t agenda_now;

extern void agenda_add(int64_t at, AgendaKind kind, uint32_t who);

/* Takes the next one, if it is due until then. */
extern bool agenda_take(int64_t until, AgendaEntry *entry);

#endif							/* SCALE_AGENDA_H */
