/*
 * sight.h
 *	  What the oracle sees: who holds what, and what the nodes say.
 */
#ifndef SIM_SIGHT_H
#define SIM_SIGHT_H

#include "foreign.h"
#include "host.h"

/* What the name of a child of a lock's directory says */
typedef struct Contender
{
	bool		counts;
	ZklLockMode mode;
	ZklSeq		seq;
	bool		has_uuid;
	ZklUuid		uuid;
	int			lock;
	Time		revived_at;		/* its delete is lost: when; 0: it is not */
	bool		granted;		/* to a session of a server of ours, once */

	/* what others ask its holder; see oracle_marks.c */
	int64_t		question;		/* zxid of the write that put it last; 0: none */
	int64_t		first_put;		/* and of the one that put it first */
	bool		told;

	Time		made_at;		/* of a publication */
} Contender;

extern const Contender *contender_of(Path *path);
extern void contender_revive(Path *path);
extern void contender_grant(Path *path);

/* Whether servers may not know yet that it is there again */
extern bool contender_is_unseen(const Contender *c);

/* The zklock server whose present session this is, or NULL */
extern Host *host_of_session(int64_t id);

/* Whether the slot's node, sent once, is of this name */
extern bool same_uuid(const Slot *s, const ZklUuid *uuid);

/*
 * The slot whose node bears this id: of several, one that holds.  NULL: none, or there is
 * no such server.
 */
extern Slot *slot_of(Host *h, const ZklUuid *uuid);

/* Over: not even in its last millisecond, which nobody relies on */
extern bool lease_is_valid(const Host *h);
extern bool lease_is_over(const Host *h);

/* Whether it shares the node of another hold, whose holder may have let go */
extern bool leans(const Host *h, const Slot *s);

/* Whether a slot was released, but its lock is kept, or written for */
extern bool is_kept(const Host *h, const Slot *s);

/* Whether a slot holds its lock as far as anybody may rely on it */
extern bool holds(const Host *h, int slot);

/*
 * Whether two demands may go together; what an owner left, and is kept, is in
 * the way of what he asked for later.
 */
extern bool same_owner(const Slot *a, const Slot *b);
extern bool foreign_holds(const Foreign *f);

/*
 * Somebody took the node of an owner away, or the session of a server: what
 * comes of that is nobody's fault.
 */
extern void tamper(Host *h, uint64_t owner, int lock);
extern void tamper_all(Host *h);

/* Whether somebody took nodes out of a server's part of a queue */
extern bool queue_tampered(const Host *h, int lock);

#endif							/* SIM_SIGHT_H */
