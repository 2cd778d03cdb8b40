/*
 * foreign.h
 *	  Other clients in the same queues: Curator's read-write lock, by the book.
 */
#ifndef SIM_FOREIGN_H
#define SIM_FOREIGN_H

#include "host.h"

#define MAX_FOREIGN		4

typedef enum ForeignPhase
{
	FOREIGN_IDLE,
	FOREIGN_CREATING,
	FOREIGN_LISTING,
	FOREIGN_WATCHING,			/* sets its watch */
	FOREIGN_WAITING,			/* for the event; on what is "ahead" */
	FOREIGN_HOLDING,
	FOREIGN_DOWNGRADING,
	FOREIGN_LEAVING,
	FOREIGN_CLOSING				/* on a new connection: its session */
} ForeignPhase;

typedef struct Foreign
{
	int			id;
	ForeignPhase phase;
	Conn	   *conn;
	int64_t		session;
	size_t		seen;			/* of the log */
	int			rewinds;		/* of the ensemble, when that was */
	Time		at;
	uint64_t	tag;			/* of the answer that it waits for */
	int			lock;
	ZklLockMode mode;
	ZklUuid		uuid;
	ZklSeq		seq;
	const char *node;
	const char *ahead;
	bool		holding;
	bool		broken;			/* an operator took its node away */
	int			attempts;
} Foreign;

typedef struct Foreigners
{
	int			n;
	Foreign		foreign[MAX_FOREIGN];
	Time		think;
	Time		hold;
	int			shared;			/* of 100 */
	int			downgrades;
	int			deaths;
} Foreigners;

extern Foreigners foreigners;

extern void foreign_start(void);
extern Time foreign_due(const Foreign *f);
extern void foreign_step(Foreign *f);
extern void foreign_frame(Foreign *f, Frame *frame);
extern void foreign_gone(Foreign *f);
extern void foreign_calm(void);

/* All of them leave their sessions behind. */
extern void foreign_lose_all(void);
extern bool foreign_idle(void);

#endif							/* SIM_FOREIGN_H */
