/*
 * manager.h
 *	  The core's outside: events in, actions out, and two questions.
 *
 * A manager holds everything that one server knows about its locks.  Its host
 * (the worker, or a test) tells it what happened, event by event, each with the
 * time in µs of a clock that never goes back; then calls zkl_manager_flush once,
 * and carries out the actions in order.  The manager does no I/O, and reads no
 * clock.  Beside the memory functions it calls two of the host's amid an event:
 * offer and recall, the steps on the bit that says whether a lock may be cached.
 *
 * Strings in actions live until zkl_manager_clear_actions.
 */
#ifndef ZKL_CORE_MANAGER_H
#define ZKL_CORE_MANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "znode/mode.h"
#include "znode/znode.h"
#include "znode/zkapi.h"

/* Why the core gives a connection up on its own (RECONNECT) */
#define ZKL_RC_LAPSED		1	/* the lease has passed; only a new connection
								 * renews it at once */
#define ZKL_RC_WENT_BACK	2	/* transaction ids went back: the session must
								 * be given up too */
#define ZKL_RC_ABSURD		3	/* a transaction id that cannot be right */

typedef struct ZklManager ZklManager;
typedef struct ZklWing ZklWing;

/* Where memory comes from.  alloc does not return without success. */
typedef struct ZklMemory
{
	void	   *(*alloc) (void *context, size_t size);
	void		(*release) (void *context, void *pointer);
	void	   *context;
} ZklMemory;

typedef enum ZklRecalledState
{
	ZKL_RECALLED_HELD,
	ZKL_RECALLED_CACHED,		/* released, by a session that left it cached */
	ZKL_RECALLED_ENDED			/* released as any lock, or lost: the host is
								 * about to tell */
} ZklRecalledState;

/* What a recall finds; strings live until the next event */
typedef struct ZklRecalled
{
	ZklRecalledState state;
	uint64_t	owner;			/* the last one */
	int32_t		pid;
	int64_t		token;
	int64_t		released_at;	/* CACHED: in us */
	const char *data;			/* for the znode, of that owner */
	size_t		data_length;
} ZklRecalled;

/*
 * From now on the releases of a request that is granted, or is about to be, may
 * leave it cached, unless it has ended meanwhile.
 */
typedef void (*ZklOffer) (void *host, uint32_t request);

/*
 * Ends that a request may be cached, in one step: from then on no session takes
 * its lock without asking.  CACHED becomes released, without another event.  If
 * "idle_since" is not 0, that happens only to a request that is CACHED since then
 * or longer: else the result is false, and *found only tells.
 */
typedef bool (*ZklRecall) (void *host, uint32_t request, int64_t idle_since,
						   ZklRecalled *found);

typedef struct ZklConfig
{
	const char *root;			/* such as /zklock */
	const char *server;			/* this server's name, for other servers to
								 * show; copied, NULL: none */
	uint32_t	max_requests;	/* requests are numbered from 0 */
	uint32_t	max_directories;	/* idle directories to remember */
	uint32_t	batches_in_flight;	/* at least 1 */
	uint32_t	batch_operations;	/* the largest batch: 2 .. 4096 */
	uint32_t	batch_bytes;
	uint32_t	worker_start;	/* another one for each manager, in case that
								 * ZooKeeper gives a session id twice */
	ZklOffer	offer;			/* both NULL: no lock is ever cached */
	ZklRecall	recall;
	void	   *host;			/* for these */
	const ZklWing *const *wings;	/* what there is beside the core: ends
									 * with NULL; NULL: nothing */
	ZklMemory	memory;
} ZklConfig;

typedef struct ZklDemand
{
	const char *name;			/* of the lock, checked, NUL terminated */
	uint64_t	owner;
	ZklLockMode mode;
	ZklDialect	dialect;		/* part of the lock's identity */
	int32_t		sibling;		/* a request of the same owner that holds the
								 * same lock, or -1 */
	bool		timed_out;		/* deny unless it can be granted at once */
	bool		together;		/* say so (BLOCKED) if it has to wait for
								 * others; not in dialect PERMIT */
	bool		plain;			/* a lock without bounds, for one session
								 * after the other: it may be cached */
	bool		guard;			/* its holder reads ZooKeeper and relies on
								 * that: see lock.c */
	uint32_t	max;			/* dialect PERMIT: how many there may be */
	int32_t		pid;			/* of the owner, for other servers to show */
	int64_t		waited;			/* in µs, so far or until the grant */
	int64_t		patience;		/* in µs, for the wings: how long a wait is
								 * nothing unusual; 0: it never gets so */
	const char *data;			/* for the znode; copied */
	size_t		data_length;	/* at most ZKL_MAX_NODE_DATA */
} ZklDemand;

/* How a backend ends a request */
typedef struct ZklEnd
{
	int64_t		keep_until;		/* in µs: until then the hold goes on without
								 * a holder, and keeps everyone out; 0: no. It
								 * ends then, or at the next event behind that */
	bool		epilogue;		/* something is to be written first; a second
								 * release tells that it is */
} ZklEnd;

typedef struct ZklSession
{
	int64_t		id;
	uint32_t	generation;		/* the host's, one per ZooKeeper session */
	uint32_t	timeout_ms;		/* as negotiated */
	int64_t		begun_at;		/* µs: when the attempt began that led to
								 * this connection */
	int64_t		zxid_seen;		/* the greatest that this server ever saw */
} ZklSession;

typedef struct ZklStat
{
	int64_t		czxid;
	int64_t		mzxid;
	int64_t		ephemeral_owner;
	int32_t		version;		/* of the data */
} ZklStat;

typedef struct ZklMultiResult
{
	int32_t		rc;
	const char *path;			/* created, or NULL */
} ZklMultiResult;

typedef struct ZklReply
{
	int32_t		rc;
	ZklStat		stat;			/* GET; and of the first operation of MULTI */
	const char *data;			/* GET */
	size_t		data_length;
	const char *const *children;	/* LIST; GET_ACL, see wire.h */
	size_t		nchildren;
	const ZklMultiResult *results;	/* MULTI */
	size_t		nresults;
} ZklReply;

/*
 * What a server tells another one, without ZooKeeper: lock.h says when, and what it
 * means.  A message may be lost, late or doubled.
 */
typedef struct ZklPeerMessage
{
	int64_t		session;		/* ZooKeeper's: of the other server */
	ZklUuid		znode;			/* that is asked for, or has departed */
	ZklUuid		waiter;			/* of the server that asks; answered as it is */
} ZklPeerMessage;

typedef enum ZklEventKind
{
	/* from backends */
	ZKL_EVENT_SUBMIT,			/* a new request, of a number that is free */
	ZKL_EVENT_TIME_OUT,			/* a try: it is denied as soon as that is
								 * certain */
	ZKL_EVENT_NEWS,				/* of a request, for the wings */
	ZKL_EVENT_RELEASE,
	ZKL_EVENT_OVERDUE,
	ZKL_EVENT_CACHE,
	ZKL_EVENT_PROVE,			/* somebody outside of the server relies on
								 * its lease, and has asked how long it is */

	/* from ZooKeeper */
	ZKL_EVENT_CONNECTED,		/* if the session is another one, the last
								 * event was SESSION_LOST */
	ZKL_EVENT_DISCONNECTED,		/* the session may live on */
	ZKL_EVENT_SESSION_LOST,		/* and all its znodes with it */
	ZKL_EVENT_REPLY,
	ZKL_EVENT_DELETED,			/* watches: this znode is gone */
	ZKL_EVENT_CHANGED,			/* or anything else that ends a data watch */
	ZKL_EVENT_CHILDREN,

	/* from other servers; the sender has been proved to be of the fleet */
	ZKL_EVENT_PEERS,			/* whether messages can be sent, and are
								 * heard. At first they are not */
	ZKL_EVENT_ASK,
	ZKL_EVENT_WORD
} ZklEventKind;

/*
 * What happened; what it points to must live until zkl_manager_event returns.
 *
 * RELEASE: the backend has finished with the request, whatever its state: a
 * release, a cancel, or the acknowledgement of DENY, FAIL and LOSE.  Ends in FREE;
 * at once if the manager does not know the request.  A kept hold that is lost or
 * broken waits for another RELEASE, which says until when it is kept all the same.
 * Until an epilogue is written no one gets the lock, not even the former holder.
 *
 * OVERDUE: a hold had an end set and has reached it, or was lost with UNREADABLE or
 * OVERTAKEN.  Its slot says so, and its backend can no longer pass its commit check
 * with it.  Its node is deleted; FREE comes only after the release.
 */
typedef struct ZklEvent
{
	ZklEventKind kind;
	uint32_t	request;		/* that a backend's event is about */
	const ZklDemand *demand;	/* SUBMIT */
	ZklEnd		end;			/* RELEASE */
	const void *news;			/* NEWS, in a form that they know */
	int64_t		cache_time;		/* CACHE: for how long, in us, an unused lock
								 * stays cached; 0: what is cached is
								 * recalled.  At first 0 */
	const ZklSession *session;	/* CONNECTED */
	uint64_t	tag;			/* REPLY */
	const ZklReply *reply;
	const char *path;			/* of a watch */
	bool		peers;			/* PEERS */
	const ZklPeerMessage *peer; /* ASK, WORD: its session is the sender's */
} ZklEvent;

/* ZKL_EVENT(OVERDUE, .request = i): a pointer to such an event */
#define ZKL_EVENT(what, ...) \
	(&(ZklEvent) {.kind = ZKL_EVENT_##what, __VA_ARGS__})

typedef enum ZklActionKind
{
	ZKL_ACTION_SEND,			/* send an operation to ZooKeeper */
	ZKL_ACTION_RECORD,			/* show what became of a request and its
								 * znode; before the GRANT */
	ZKL_ACTION_GRANT,
	ZKL_ACTION_BLOCKED,			/* it waits for others; once per request */
	ZKL_ACTION_BEHIND_CACHED,	/* it timed out, and waits only for a server
								 * that may have the lock cached; or does so
								 * no longer */
	ZKL_ACTION_DENY,
	ZKL_ACTION_FAIL,
	ZKL_ACTION_LOSE,
	ZKL_ACTION_RELEASE_REQUEST, /* granted, but a client asks to give it up */
	ZKL_ACTION_FREE,			/* released, and its znode gone */
	ZKL_ACTION_REVIVED,			/* granted, but somebody stands ahead: tell
								 * that ZooKeeper has lost writes */
	ZKL_ACTION_LOST_WRITES,		/* log that ZooKeeper has lost writes which it
								 * had acknowledged */
	ZKL_ACTION_ASK,				/* send the message to the server of its
								 * session */
	ZKL_ACTION_WORD,			/* likewise, once all actions before this one
								 * are carried out */
	ZKL_ACTION_ASKED,			/* granted, and no longer solitary: somebody
								 * waits for its end */
	ZKL_ACTION_RECONNECT		/* give this connection up; rc says why */
} ZklActionKind;

typedef enum ZklFailure
{
	ZKL_FAILURE_DEADLOCK,
	ZKL_FAILURE_ZOOKEEPER,
	ZKL_FAILURE_PARENTS,
	ZKL_FAILURE_NO_NUMBER,		/* the directory's counter is at its end */
	ZKL_FAILURE_SESSION_EXPIRED,
	ZKL_FAILURE_NODE_DELETED,
	ZKL_FAILURE_BROKEN,			/* an operator breaks the lock */
	ZKL_FAILURE_UNREADABLE,		/* our znode is not ours to read any more */
	ZKL_FAILURE_OVERTAKEN		/* ZooKeeper may have ended our session, and
								 * lost that: another client may have the lock */
} ZklFailure;

typedef struct ZklMultiOp
{
	ZklMultiKind kind;
	int32_t		version;
	const char *path;
	const char *data;
	size_t		data_length;
} ZklMultiOp;

typedef struct ZklAction
{
	ZklActionKind kind;
	uint32_t	request;

	/* SEND */
	ZklSendKind send;
	uint64_t	tag;			/* comes back with the reply; below 2^54 */
	const char *path;
	bool		watch;
	const ZklMultiOp *multi;
	size_t		nmulti;

	union
	{
		ZklRecord	record;		/* RECORD */
		ZklPeerMessage peer;	/* ASK, WORD */
	};

	int64_t		token;			/* GRANT */
	bool		solitary;		/* GRANT: no one seems to wait for its end */
	ZklFailure	failure;		/* FAIL, LOSE */
	const char *asker;			/* RELEASE_REQUEST, REVIVED: who, in UTF-8;
								 * empty: not known */
	int64_t		asked_zxid;		/* RELEASE_REQUEST: tells this one from others */
	const char *server;			/* BEHIND_CACHED: its name, in UTF-8, empty:
								 * not known; NULL: no longer */
	int32_t		rc;				/* FAIL, RECONNECT */
	const void *reason;			/* FAIL: what the wing says that ended the
								 * wait; NULL: none did */
} ZklAction;

typedef struct ZklCounters
{
	uint64_t	batches;		/* acknowledged */
	uint64_t	operations;		/* sent to ZooKeeper, a batch being one */
	uint64_t	listings;
	uint64_t	creates;		/* znodes of requests that were created */
	uint64_t	continuous;		/* of these, with a number right behind that
								 * of our last one: no listing needed */
	uint64_t	watches;		/* now set on nodes and directories */
	uint64_t	recalls;
	uint64_t	asks;			/* sent to other servers */
	uint64_t	words;			/* likewise */
	uint64_t	words_taken;	/* that came, and were news, for a request of
								 * ours */
	uint64_t	words_late;		/* that came, and were not */
} ZklCounters;

extern ZklManager *zkl_manager_create(const ZklConfig *config);

/* Gives all memory back. */
extern void zkl_manager_destroy(ZklManager *m);

extern void zkl_manager_event(ZklManager *m, int64_t now,
							  const ZklEvent *event);

/* Whether the manager has a request of this number. */
extern bool zkl_manager_knows(const ZklManager *m, uint32_t request);

/* Whether it is a hold that is kept after its release. */
extern bool zkl_manager_keeps(const ZklManager *m, uint32_t request);

/* ---- after the events ---- */

/* Decides, and sends all pending operations. Also when the timer is due. */
extern void zkl_manager_flush(ZklManager *m, int64_t now);

extern const ZklAction *zkl_manager_actions(const ZklManager *m, size_t *n);
extern void zkl_manager_clear_actions(ZklManager *m);

/* When to call flush at the latest, in µs; -1: no need. */
extern int64_t zkl_manager_timer(const ZklManager *m);

/*
 * How many new demands the next batch waits for, until the timer is due at
 * the latest.  If not 0, the host need not look before so many have come in,
 * nor when a solitary grant is released.
 */
extern uint32_t zkl_manager_awaited(const ZklManager *m);

/* ---- questions ---- */

/* Whether the connection is proved, so that we can believe its reads. */
extern bool zkl_manager_ready(const ZklManager *m);

/*
 * Whether the connection is proved, no request holds or awaits anything, and
 * no write of ours is under way: the session could end now without a loss.
 */
extern bool zkl_manager_at_rest(const ZklManager *m);

/* Until when, in µs, the server may rely on its grants; 0: not at all. */
extern int64_t zkl_manager_lease(const ZklManager *m);

/*
 * The greatest transaction id of ZooKeeper that we have seen, and dealt with.  Tokens are
 * made of them: if an ensemble is behind it, it was wiped, or restored from a
 * backup.
 */
extern int64_t zkl_manager_zxid(const ZklManager *m);

/* One that stands in a queue; what is pointed to lives until the next event. */
typedef struct ZklQueued
{
	int64_t		request;		/* of this server; -1: of another client */
	const char *znode;			/* its name, of another client */
	const char *data;			/* of that znode, as last read; NULL: not read */
	size_t		data_length;
} ZklQueued;

/* What is ahead of a request that waits */
typedef struct ZklNearest
{
	ZklQueued	nearest;		/* that is in its way */
	ZklQueued	first;			/* of all; perhaps the same one */
	int64_t		place;			/* of the waiting request in the queue, from
								 * 1; as far as its queue is known */
} ZklNearest;

/* False: nothing is known to be ahead. */
extern bool zkl_manager_nearest(const ZklManager *m, uint32_t request,
								ZklNearest *nearest);

/* How many requests hold a lock or wait for one. */
extern uint32_t zkl_manager_live(const ZklManager *m);
extern void zkl_manager_counters(const ZklManager *m, ZklCounters *counters);

#endif							/* ZKL_CORE_MANAGER_H */
