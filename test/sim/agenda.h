/*
 * agenda.h
 *	  Who acts next: the one that is due first, of all that is simulated.
 *
 * When each is due is remembered.  A step may change that of the one whose
 * step it is; if it changes another's as well, it must say so here.
 */
#ifndef SIM_AGENDA_H
#define SIM_AGENDA_H

#include "base.h"

/*
 * Places, in the order in which those act that are due at the same time.  Late
 * writes are asked for each time.
 */
enum
{
	AGENDA_ENSEMBLE,
	AGENDA_LATE,
	AGENDA_CHAOS,
	AGENDA_CONNS,				/* and as many behind it */
	AGENDA_HOSTS = AGENDA_CONNS + 48,	/* each before its backends */
	AGENDA_CLIENTS = AGENDA_HOSTS + 3 * 8,
	AGENDA_PEERS = AGENDA_CLIENTS + 4,
	AGENDA_PLACES
};

#define AGENDA_CONN(conn)		(AGENDA_CONNS + (conn))
#define AGENDA_HOST(host)		(AGENDA_HOSTS + (host) * 8)
#define AGENDA_BACKEND(host, backend)	(AGENDA_HOST(host) + 1 + (backend))
#define AGENDA_CLIENT(client)	(AGENDA_CLIENTS + (client))

/* A bit for each place whose time may have changed */
extern uint64_t agenda_stale[2];

static inline void
agenda_changed(int place)
{
	agenda_stale[place >> 6] |= UINT64_C(1) << (place & 63);
}

static inline void
agenda_all_changed(void)
{
	agenda_stale[0] = UINT64_MAX;
	agenda_stale[1] = (UINT64_C(1) << (AGENDA_PLACES - 64)) - 1;
}

extern void agenda_begin(void);

/* When the next one acts, NEVER if nobody will; then, lets it act. */
extern Time agenda_due(void);
extern int	agenda_place(void); /* of that one */
extern void agenda_step(void);

#endif							/* SIM_AGENDA_H */
