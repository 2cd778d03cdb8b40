/*
 * schedule.h
 *	  What happens next in a world: its natural order, and delays.
 *
 * What is under way takes no time, so time goes on only when nothing can happen now:
 * then it is that of the next timer.  What can happen now happens in the order of the
 * agenda's places: first what is on its way, then the servers, each before its
 * sessions.  An event that is delayed happens when nothing else can any more, the first
 * that was delayed first.
 */
#ifndef WORLDS_SCHEDULE_H
#define WORLDS_SCHEDULE_H

#include "../sim/host.h"

typedef enum EventKind
{
	EVENT_OTHER,				/* that is no place for a delay */
	EVENT_APPLY,				/* a follower learns */
	EVENT_EXPIRE,				/* a session ends, whose time is over */
	EVENT_LATE,					/* a write whose connection is gone */
	EVENT_COMMIT,
	EVENT_ARRIVE,				/* a request at its server */
	EVENT_DELIVER,				/* an answer or an event at its client */
	EVENT_WORKER,
	EVENT_BACKEND,
	EVENT_CLIENT,				/* another client */
	EVENT_PEER					/* a message between servers arrives */
} EventKind;

typedef struct Event
{
	EventKind	kind;
	int			place;
	Time	   *at;				/* NULL: it cannot be delayed */
	Conn	   *conn;			/* NULL: it is not about one */
	Host	   *host;			/* likewise, of this or of the connection */
	int			backend;		/* -1: none */
} Event;

extern void schedule_begin(void);

/*
 * False: nothing more happens now, and *due is when it goes on.  An event that was
 * delayed may be due now.
 */
extern bool schedule_next(Event *e, Time *due);

/* False: nothing else could happen instead. */
extern bool schedule_can_delay(const Event *e);
extern void schedule_delay(const Event *e);

/* What is over is wiped, so that it does not make states differ. */
extern void schedule_wipe(void);

/* A number for the state of all, to compare it with others */
extern uint64_t schedule_hash(void);

extern const char *schedule_name(const Event *e);

#endif							/* WORLDS_SCHEDULE_H */
