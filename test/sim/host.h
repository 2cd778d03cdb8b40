/*
 * host.h
 *	  A zklock server of the simulation: shared memory, the worker's loop and
 *	  its supervisor, doing what worker_slot.c, worker.c and supervisor.c of src/ do.
 *
 * The core is the real one, and the worker the one of all tests.  A host has
 * slots, in which backends (backend.c) meet the worker, a clock of its own, and
 * at most one connection.
 */
#ifndef SIM_HOST_H
#define SIM_HOST_H

#include "../model/worker.h"
#include "clocks.h"
#include "ensemble.h"

#define MAX_HOSTS		3
#ifndef MAX_SLOTS
#define MAX_SLOTS		14
#endif
#define MAX_LOCKS		3
#define SIM_ROOT		"/zklock"

typedef enum LinkKind
{
	LINK_CONNECTED,
	LINK_GONE,
	LINK_EXPIRED,
	LINK_BROKEN,				/* the session process ended */
	LINK_FRAME
} LinkKind;

/* What the session process told the worker, who has not yet looked */
typedef struct LinkMessage
{
	struct LinkMessage *next;
	LinkKind	kind;
	int64_t		session;
	Time		timeout;
	Frame	   *frame;
} LinkMessage;

typedef enum Phase
{
	PHASE_NO_PROCESS,
	PHASE_CONNECTING,
	PHASE_CONNECTED
} Phase;

typedef struct Host
{
	int			id;
	bool		up;				/* PostgreSQL runs */
	Time		up_at;			/* when it starts again */

	/* shared memory */
	Slot		slots[MAX_SLOTS];
	Time		timeout;		/* of the session, as negotiated */
	uint32_t	lease_generation;
	int64_t		lease_ms;
	bool		uncached;		/* drained, say: no lock may be cached now */
	Time		cache_time;		/* unused locks stay cached for so long; 0:
								 * none is */
	bool		undetected;		/* deadlock_detection is off */
	bool		stopping;		/* PostgreSQL is being stopped */
	int64_t		stop_until;		/* serves those who hold until then, by its
								 * clock */
	int64_t		leave_at;		/* deletes what nobody was promised until
								 * then; 0: not yet */
	bool		peers;			/* messages can be sent to other servers ... */
	bool		worker_peers;	/* ... as the worker has told its core */

	Worker		worker;
	Time		worker_at;		/* when it starts again */
	Time		wake_at;
	Time		stopped_until;
	Time		deaf_until;		/* ever: until the end of its last stop */
	bool		marked;			/* one of its slots may be */
	int64_t		published_ms;
	uint32_t	published_generation;
	bool		carrying;		/* it was stopped amid its actions */
	bool		cut_at_grant;	/* chaos: once it is granted something, having
								 * been silent */
	bool		kill_at_worst;	/* chaos: its worker, see faults.c */
	bool		cut_when_proved;	/* chaos: its connection breaks with its
									 * first proof */
	bool		interrupted;	/* stopped since the core decided these */
	int			stop_after;		/* so many actions; -1: do not */

	/* the supervisor and the session process */
	Phase		phase;
	Conn	   *conn;			/* the session process's; NULL: none */
	int			next_server;
	int			server;
	int64_t		start_at;		/* these in local time */
	int64_t		not_before;		/* the next session: the one before lives on */
	int64_t		left_session;	/* that one, 0: none; and until when it lives
								 * at least */
	int64_t		left_until;
	int64_t		deadline;
	int64_t		begun_at;
	int64_t		closing_until;	/* the session is given up; 0: it is not */
	int64_t		quiet_since;
	int64_t		pause_next;
	Time		attempt_at;		/* the session process hears from its server */
	uint32_t	outstanding;
	Time		client_refuses_until;	/* to send, once in ... */
	int			client_refuses_one_in;	/* ... so many requests */
	bool		client_sends_multis;	/* all of them even so */
	bool		reconnect_wanted;
	bool		give_up_wanted; /* the session, for a new one */
	LinkMessage *inbox;
	LinkMessage **inbox_end;

	Clock		clock;
	uint32_t	managers;
	int64_t		told[MAX_LOCKS];	/* up to this zxid it was told of each
									 * change of a lock's children */
	int64_t		zxid_floor;		/* no grant may stand on less than this */
	Time		refused_at;		/* an answer told it last that ZooKeeper, or
								 * its client, refuses; far back: none did */
} Host;

typedef struct Hosts
{
	int			n;
	Host		host[MAX_HOSTS];
	int			nlocks;
	bool		cold;			/* names are seldom used, and come under one
								 * parent */
	ZklDialect	dialects[MAX_LOCKS];
	Time		wiped_at;		/* the ensemble, with all directories; 0:
								 * never */
	Time		begun_anew[MAX_LOCKS];	/* when a directory with such a number
										 * was deleted last; 0: none was */
	bool		large_lost[MAX_LOCKS];	/* the ensemble has lost a node of a
										 * number past the end */
	Path	   *reader_gone[MAX_LOCKS]; /* the shared znode deleted last;
										 * NULL: none */
	int			semaphore;		/* the lock that is one; -1: none is */
	uint32_t	max;			/* of its permits */
	uint32_t	batches_in_flight;
	uint32_t	batch_operations;
	uint32_t	max_directories;
	Time		cache_time;		/* at first; 0: no lock is cached */
	Time		wake_delay;		/* usual, of the worker */
	uint64_t	owners;
	uint64_t	events;
	Path	   *paths[MAX_LOCKS];	/* of the locks, once looked up */
	uint64_t	paths_of;		/* which trees */
} Hosts;

extern Hosts hosts;

extern const char *lock_name(int lock);
extern Path *lock_path(int lock);
extern ZklDialect lock_dialect(int lock);

/* The mode of somebody who would like to share it, or not */
extern ZklLockMode lock_mode(int lock, bool shared);

/* Whether two owners may not hold it at the same time in these modes */
extern bool lock_conflicts(int lock, ZklLockMode a, ZklLockMode b);

/* ---- time ---- */

extern int64_t host_clock(const Host *h);	/* µs */

/* When so many ms are over: bounds are whole milliseconds. */
extern int64_t host_bound(const Host *h, int64_t ms);

/* When the host's clock will show this */
extern Time host_true_time(const Host *h, int64_t local);
extern Time host_due(const Host *h);
extern void host_step(Host *h);

/* Its worker does nothing until then. */
extern void host_suspend(Host *h, Time until);

/* ---- life ---- */

extern void host_start(Host *h);
extern void host_crash(Host *h, Time up_at);

/* A planned stop: sessions are terminated, and the worker ends when nobody holds. */
extern void host_stop(Host *h, Time up_at);

/* ---- backends ---- */

/* A free slot, or -1 */
extern int	slot_claim(Host *h);
extern void slot_submit(Host *h, int slot);

/*
 * A slot in which a lock is cached, or -1; it is taken for another owner, if it is
 * still so, as a backend does.
 */
extern int	slot_find_cached(const Host *h, int lock);
extern void slot_take(Host *h, int slot, uint64_t owner, int backend);
extern void slot_release(Host *h, int slot);

/* Its holder wants it to be kept for so many ms after its release. */
extern void slot_keep(Host *h, int slot, int64_t at_least);

/*
 * If it is kept: for so many ms from now on instead; 0: no longer.  What was promised
 * is kept all the same, unless those do it who were told.
 */
extern void slot_renew(Host *h, int slot, int64_t at_least, bool by_other);

/*
 * A claimed ticket: whoever claimed it never learnt of it, so it is to be claimed once more,
 * unless somebody was told a time.  One that is not claimed: it ends.
 */
extern void slot_give_back(Host *h, int slot);
extern void slot_withdraw(Host *h, int slot);

/* Tells for how long nobody else gets the lock. */
extern void slot_promise(Host *h, int slot);

/* Its holder's process ends, and not by the holder's will. */
extern void slot_abandon(Host *h, int slot);

/* Its backend has seen who waits for it in PostgreSQL's own locks. */
extern void slot_tell_dependents(Host *h, int slot);
extern void slot_expire(Host *h, int slot);
extern void slot_extend(Host *h, int slot, int64_t at_most);
extern void slot_set_quiet(Host *h, int slot, bool quiet);

/* The server is drained: a leader's hold is over. */
extern void slot_resign(Host *h, int slot);

/* Whether a hold of this slot and generation would pass the commit check */
extern bool slot_is_good(const Host *h, int slot, uint32_t generation);
extern bool lease_is_good(const Host *h, uint32_t generation);

/* ---- faults ---- */

/* An operator says that smaller transaction ids are all right. */
extern void host_accept_lower_tokens(Host *h);
extern void worker_kill(Host *h, Time back_at);

/* By a signal: if no slot is in use, it closes its session. */
extern void worker_terminate(Host *h, Time back_at);
extern void session_process_kill(Host *h);

/* ---- between host.c, loop.c and supervisor.c ---- */

/* Tells a slot's backend, if it is changed; "what" for the trace. */
extern void slot_tell(Host *h, int slot, bool changed, const char *what);
extern void lease_publish(Host *h, uint32_t generation, int64_t ms);

extern void worker_start(Host *h);
extern void worker_step(Host *h);
extern void worker_wake(Host *h, Time usual);
extern void worker_actions(Host *h);
extern void link_push(Host *h, LinkKind kind, int64_t session, Frame *frame);
extern LinkMessage *link_next(Host *h);
extern void link_put_back(Host *h, LinkMessage *message);
extern void supervisor_begin(Host *h);
extern void supervisor_forget_session(Host *h);
extern void supervisor_take(Host *h, const LinkMessage *message);
extern void supervisor_send(Host *h, const ZklAction *action);
extern void supervisor_tick(Host *h);
extern int64_t supervisor_timer(const Host *h);
extern void supervisor_attempt(Host *h);	/* the session process connects */
extern void supervisor_reconnect(Host *h, int32_t rc);
extern void supervisor_end_process(Host *h);

#endif							/* SIM_HOST_H */
