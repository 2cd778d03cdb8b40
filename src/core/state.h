/*
 * state.h
 *	  What a manager knows: requests, locks, batches, operations under way.
 *	  For the files of the core only; hosts see manager.h.
 *
 * A request has two states.  Its demand is the backend's side; its node is
 * ZooKeeper's.  They move on their own:
 *
 *	  demand:  UNUSED -> WAITING -> GRANTED -> RELEASED -> UNUSED
 *						    |          | (lost)    ^
 *						    +-> ANSWERED <---------+ (denied, failed, lost)
 *
 *	  node:    NONE -> NEW -> SENT -> EXISTS -> DELETE -> DELETING -> NONE
 *						        |                  ^
 *						        +-> UNSETTLED -> EXISTS, NEW or NONE
 *
 * A request is UNUSED again (action FREE) when its demand is RELEASED and its
 * node is NONE.  A granted request whose owner already held the lock has no
 * node of its own; "cover" is the one whose node it shares.
 */
#ifndef ZKL_CORE_STATE_H
#define ZKL_CORE_STATE_H

#include "core/manager.h"
#include "core/mutant.h"
#include "core/queue.h"
#include "core/table.h"

#define ZKL_MAX_DIRECTORY	(ZKL_MAX_ROOT + ZKL_MAX_NAME)
#define ZKL_MAX_ATTEMPTS	5	/* to make a lock's directory, for one create */
#define ZKL_RETRY_DELAY		1000000 /* µs until what was refused is tried
									 * again */
#define ZKL_VISITS			16384	/* a power of 2 */
#define ZKL_CONTACTS		24	/* to remember; one per T/24 at most */

typedef enum ZklDemandState
{
	ZKL_DEMAND_UNUSED = 0,
	ZKL_DEMAND_WAITING,
	ZKL_DEMAND_GRANTED,
	ZKL_DEMAND_ANSWERED,		/* denied, failed or lost; not yet released */
	ZKL_DEMAND_RELEASED
} ZklDemandState;

typedef enum ZklNodeState
{
	ZKL_NODE_NONE = 0,
	ZKL_NODE_NEW,				/* to be created */
	ZKL_NODE_SENT,				/* in a batch that is not answered */
	ZKL_NODE_UNSETTLED,			/* the answer is lost */
	ZKL_NODE_EXISTS,
	ZKL_NODE_DELETE,			/* to be deleted */
	ZKL_NODE_DELETING
} ZklNodeState;

/* How a node is to be deleted */
typedef enum ZklDelete
{
	ZKL_DELETE_NOW,				/* in a batch */
	ZKL_DELETE_LATE,			/* in a batch that goes anyway, or soon; see
								 * pace.c */
	ZKL_DELETE_ALONE,			/* by a single operation */
	ZKL_DELETE_STUCK,			/* it was refused: not before stuck_until */
	ZKL_DELETES
} ZklDelete;

/* A one-shot data watch of ours */
typedef enum ZklWatchState
{
	ZKL_WATCH_NONE = 0,
	ZKL_WATCH_WANTED,
	ZKL_WATCH_SENT,
	ZKL_WATCH_ARMED
} ZklWatchState;

/* An exclusive node that goes on as a shared one; see downgrade.c */
typedef enum ZklDowngradeState
{
	ZKL_DOWNGRADE_NONE = 0,
	ZKL_DOWNGRADE_WANTED,
	ZKL_DOWNGRADE_SENT,			/* in a batch that is not answered */
	ZKL_DOWNGRADE_UNSETTLED		/* the answer is lost */
} ZklDowngradeState;

/* For a GRANTED request whose holder has let go */
typedef struct ZklKept
{
	int64_t		until;
	ZklLink		link;			/* in m->kept, in this order */
} ZklKept;

typedef struct ZklLock ZklLock;
typedef struct ZklRequest ZklRequest;

/* A znode of ours; see node.c */
typedef struct ZklNode
{
	ZklNodeState state;
	ZklLockMode mode;			/* wider than the request's in a node taken
								 * over */
	ZklUuid		uuid;
	ZklSeq		seq;			/* -1: not known */
	uint32_t	index;			/* in its batch */
	int32_t		version;		/* of its data, when it was last read */
	int64_t		czxid;			/* 0: not known, ask */
	uint64_t	seen;			/* order of the last listing that showed it */
	bool		alone;			/* no one else came between our last create in
								 * this directory and its own */
	bool		again;			/* once deleted, create it again: its number
								 * was no place in the queue */
	bool		parked;			/* NEW, but not before the directory drained */
	ZklLink		by_uuid;
	ZklLink		write;			/* in one of the lists of m->nodes */
	size_t		data_length;
	char		data[ZKL_MAX_NODE_DATA];
} ZklNode;

/* What we have read of a znode of ours, and have yet to read; see look.c */
typedef struct ZklLook
{
	ZklWatchState watch;
	bool		token_sent;		/* its czxid has been asked for */
	bool		verified;		/* GRANTED: it was seen on this connection,
								 * and is watched */
	int64_t		placed_at;		/* the znode; 0: watch it at once */
	int64_t		unseen_since;	/* it was not marked then; what came later we
								 * do not know, unless the watch is armed */
	ZklLink		unwatched;		/* in m->looks.unwatched, by placed_at */
	ZklLink		unseen;			/* in m->looks.unseen, by unseen_since */
} ZklLook;

struct ZklRequest
{
	uint32_t	id;
	uint64_t	submitted;		/* order of submission, over all requests */
	ZklDemandState demand;
	ZklLockMode mode;
	uint64_t	owner;
	uint32_t	max;			/* dialect PERMIT: see permits.h */
	ZklLock    *lock;
	ZklRequest *cover;
	int64_t		token;
	bool		timed_out;		/* deny it unless it can be granted now */
	bool		together;		/* to be told once it is blocked */
	bool		broken;			/* GRANTED, but lost to its holder: an
								 * operator broke it, or it cannot be read;
								 * the node stays until the release */
	bool		upgrade;		/* in the queue on top of a shared hold */
	ZklLink		all;			/* in lock->requests.all */
	ZklLink		queued;			/* in lock->queue.own: EXISTS, and WAITING or
								 * GRANTED */
	ZklLink		trying;			/* in lock->tries.all */
	ZklRequest *sibling_next;	/* ring of one owner's requests on one lock */
	ZklRequest *sibling_prev;
	ZklKept		keep;

	/* the znode */
	ZklDowngradeState downgrade;
	ZklLink		downgrading;	/* in m->downgrades or m->stuck_downgrades */
	uint32_t	attempts;		/* failed because parents were missing */
	int64_t		asked_zxid;		/* of the last write to its node that asked to
								 * give it up, and that the holder was told */
	bool		asked_early;	/* there may be one from before the grant */
	ZklLook		look;
	ZklNode		node;			/* last: not all of its data is cleared */
};

/* The requests of a lock, and those that want an answer while they wait */
typedef struct ZklLockRequests
{
	ZklList		all;
	uint32_t	n;
	uint32_t	ntimed_out;		/* to be denied if they are blocked */
	uint32_t	ntogether;		/* to be told that they are blocked */
} ZklLockRequests;

/* The local queue; see lock.c */
typedef struct ZklQueue
{
	ZklList		own;			/* contenders of ours, by number */
	ZklRequest *waiting;		/* the first of own that waits */
	uint32_t	nheld;			/* of own that are granted */
	uint32_t	nexclusive;		/* of these, with an exclusive node */
	ZklRequest *exclusive_holder;	/* the last of them */
	uint32_t	nupgrades;		/* shared -> exclusive that wait */
} ZklQueue;

/* What the last listing told of others, and what became of them since */
typedef struct ZklForeign
{
	ZklContender *all;
	size_t		n;
	char	   *names;			/* of all of them, NUL terminated each */
	ZklSeq		unknown_from;
	ZklSeq		passed;			/* since the last listing one with this number
								 * has gone: so may those before it; 0: none */
	bool		tainted;
	uint64_t	tainted_at;		/* order; a later listing clears it */
	uint32_t	strangers;		/* listed children that are no contenders; for
								 * dialect PERMIT: see permits.h */
} ZklForeign;

/*
 * Continuity: seq and zxid are of the last create of ours.  While the
 * directory's watch is armed and its czxid is smaller than that zxid, the next
 * create continues from seq: every number in between belongs to another
 * client.  Foreign contenders up to seq are all listed, except those from
 * unknown_from on.
 */
typedef struct ZklBase
{
	bool		known;
	ZklSeq		seq;
	int64_t		zxid;
} ZklBase;

/* The watch on the directory */
typedef struct ZklDirectory
{
	ZklWatchState watch;
	int64_t		czxid;
	bool		visited;		/* we come here again and again: watch it */
} ZklDirectory;

/* The watch on the foreign contender ahead */
typedef struct ZklAhead
{
	ZklWatchState watch;
	ZklContender contender;
	char	   *name;
	uint64_t	order;			/* of the get that sets the watch */
	bool		plain;			/* a zklock writer that is not downgrading */
} ZklAhead;

/* The listings of the directory */
typedef struct ZklListing
{
	bool		wanted;
	bool		sent;
	ZklWatchState watch;		/* on the children, along with a listing; for
								 * dialect PERMIT: see permits.h */
	uint64_t	order;			/* of the listing that sets it */
	ZklLink		stuck;			/* in m->stuck_locks: to be listed later */
} ZklListing;

/* Tries that look before they create; see probe.c */
typedef struct ZklTries
{
	ZklList		all;
	bool		sent;			/* the look */
	bool		stale;			/* the sync ahead of its listing was refused */
} ZklTries;

/* The directory, if it has to be made */
typedef struct ZklParents
{
	bool		missing;		/* make it ahead of the next create */
	int32_t		rc;				/* why it could not be made */
} ZklParents;

/* The counter is at its end; see drain.c */
typedef struct ZklDrain
{
	bool		wanted;
	bool		sent;			/* the delete of the directory, or a listing
								 * that tells when to try it again */
} ZklDrain;

/* One lock, and what we know of its directory */
struct ZklLock
{
	char		path[ZKL_MAX_DIRECTORY + 1];
	size_t		path_length;
	ZklDialect	dialect;
	ZklLink		by_path;
	ZklLink		idle;			/* in m->idle while it has no requests */
	ZklLink		dirty;			/* in m->dirty: to be decided */
	ZklLink		reader;			/* in m->readers: has reads to send */
	uint32_t	pins;			/* operations under way that refer to it */

	ZklLockRequests requests;
	ZklQueue	queue;
	ZklForeign	foreign;
	ZklBase		base;
	ZklDirectory directory;
	ZklAhead	ahead;
	ZklListing	listing;
	ZklTries	tries;
	ZklParents	parents;
	ZklDrain	drain;
};

typedef enum ZklOpKind
{
	ZKL_OP_FREE = 0,
	ZKL_OP_BATCH,
	ZKL_OP_CHAIN,				/* opens the next chain of heartbeats */
	ZKL_OP_LIST,
	ZKL_OP_PROBE,
	ZKL_OP_WATCH_AHEAD,
	ZKL_OP_WATCH_DIRECTORY,
	ZKL_OP_WATCH_OWN,
	ZKL_OP_TOKEN,				/* get a node's czxid */
	ZKL_OP_PARENT,
	ZKL_OP_DELETE,				/* of a request's node */
	ZKL_OP_DRAIN_DELETE,
	ZKL_OP_DRAIN_LIST,
	ZKL_OP_JANITOR,				/* looks for nodes that no request claims */
	ZKL_OP_SWEEP,				/* delete of an earlier heartbeat node */
	ZKL_OP_PROBE_SYNC,			/* a listing behind it is new */
	ZKL_OP_IGNORE				/* nothing hangs on its answer */
} ZklOpKind;

/* An operation under way */
typedef struct ZklOp
{
	ZklOpKind	kind;
	uint32_t	serial;			/* part of the tag: tells reuse */
	uint32_t	next_free;
	ZklLock    *lock;			/* pinned */
	ZklRequest *request;
	uint64_t	submitted;		/* the request's, to tell reuse; without one:
								 * the latest of all, when it was sent */
	uint64_t	order;
	int64_t		sent_at;
	size_t		bytes;			/* of its path, for reads */
} ZklOp;

/* All znodes of ours, and the lists of those that are to be written */
typedef struct ZklNodes
{
	uint64_t	uuids;			/* made so far */
	ZklTable	by_uuid;
	ZklList		creates;		/* NEW, not parked */
	ZklList		resends;		/* NEW, from batches that failed: they go
								 * first */
	ZklList		deletes[ZKL_DELETES];	/* DELETE */
} ZklNodes;

/* Holds, and the first that waits for each lock */
typedef struct ZklLooks
{
	ZklList		unwatched;		/* in want of a watch */
	ZklList		unseen;			/* the same, until the watch is armed */
} ZklLooks;

/* All operations under way */
typedef struct ZklOperations
{
	ZklOp	   *all;
	uint32_t	n;				/* allocated */
	uint32_t	free;			/* head of the list of free ones */
	uint64_t	order;			/* of the last one that was sent */
	int64_t		sent_at;		/* likewise */
	size_t		read_bytes;		/* the window of reads: of their paths */
} ZklOperations;

typedef struct ZklChunk ZklChunk;

/* The actions for the host, in order */
typedef struct ZklActions
{
	ZklAction  *all;
	size_t		n;
	size_t		allocated;
	ZklChunk   *chunks;			/* their strings */
} ZklActions;

/*
 * One batch.  members[0] is what operation 1 is about, and so on; operation 0
 * is the beat.  A member's node is SENT for a create, DELETING for a delete.
 * Downgrades come last, take several operations each, and can be NULL.
 */
typedef struct ZklBatch
{
	int32_t		version;		/* that the beat expects */
	uint32_t	nmembers;
	uint32_t	ndeletes;		/* members before the creates */
	uint32_t	nsingle;		/* members before the downgrades */
	int64_t		sent_at;
	ZklRequest **members;
} ZklBatch;

/* The batches under way, oldest first; see batches.c */
typedef struct ZklBatches
{
	ZklBatch   *all;			/* config.batches_in_flight of them */
	uint32_t	first;
	uint32_t	n;
	uint64_t	number;			/* of the last one that was sent */
	int64_t		sent_at;		/* likewise */
	int64_t		acknowledged_at;	/* of the last one that was applied: when
									 * it was sent */
	uint64_t	napplied;
	bool		beat_wanted;	/* send one, even if there is nothing to write */
	bool		broken;			/* one failed: those behind it fail too */
	uint32_t	unknown_streak; /* batches in a row whose answer was lost */
	uint32_t	limit;			/* operations, after unknown batches */
} ZklBatches;

typedef enum ZklConnectionState
{
	ZKL_CONNECTION_DOWN = 0,
	ZKL_CONNECTION_OPENING,		/* a new heartbeat node is being made */
	ZKL_CONNECTION_PROVING,		/* the first beat is not yet acknowledged */
	ZKL_CONNECTION_READY
} ZklConnectionState;

typedef struct ZklConnection
{
	ZklConnectionState state;
	uint64_t	proved_at;		/* order: earlier reads settle nothing */
} ZklConnection;

/* The heartbeat nodes; see session.c */
typedef struct ZklChain
{
	uint32_t	number;			/* of the last one used */
	uint32_t	kept;			/* from here on they may exist */
	uint32_t	swept;			/* up to here they are surely gone */
	int32_t		version;		/* that the next beat expects */
	uint32_t	attempts;		/* on this connection, since the last beat */
	bool		needed;
	bool		sent;
	bool		refused;		/* the latest attempt: not applied, for sure */
	bool		replaces;		/* the multi under way deletes the old one */
	bool		old_gone;		/* the old one is known to be gone */
	bool		parents;		/* their directory is missing */
	bool		sweep_refused;	/* once more, after stuck_until */
	int32_t		rc;				/* why the directory could not be made */
	int32_t		why;			/* what the last attempt was answered */
} ZklChain;

/* Something that ZooKeeper has answered */
typedef struct ZklContact
{
	int64_t		sent_at;
	int64_t		answered_at;
} ZklContact;

/* How long the session surely lives; see session_lease.c */
typedef struct ZklSessionLease
{
	int64_t		until;
	int64_t		limit;			/* for leases from before this connection */
	bool		relied;			/* something was in a queue when it was valid */
	bool		verified;		/* all holds from before this connection are */
	int64_t		connecting_since;	/* until the connection stood */
	ZklContact	contacts[ZKL_CONTACTS]; /* a ring, the latest last */
	uint32_t	ncontacts;		/* on this connection, ever */
} ZklSessionLease;

typedef struct ZklZxid
{
	int64_t		seen;
	int64_t		doubted;		/* answered, but not believed; see zxid.c */
} ZklZxid;

/* A walk through all directories below the root; see janitor.c */
typedef struct ZklJanitor
{
	bool		wanted;			/* once the connection is proved */
	bool		asking;			/* about the first of to_do */
	bool		unfinished;		/* something got errors, and was left out */
	struct ZklJanitorPath *to_do;	/* directories to list, znodes to look at
									 * or to delete */
	struct ZklJanitorPath *later;	/* likewise, but not before later_at */
	int64_t		later_at;
} ZklJanitor;

/* Why a batch waits for a moment; see pace.c */
typedef struct ZklPace
{
	int64_t		late_until;		/* then the late deletes are due */
	int64_t		gather_until;	/* then pending creates go in any case */
	uint32_t	expected;		/* granted by batches, not yet back with a new
								 * demand */
	bool		returning;		/* those before them all were */
	bool		counting;		/* what follows is a batch's doing */
} ZklPace;

/* Where the lines of the trace go; see trace.c */
typedef struct ZklTrace
{
	ZklWriteLine write;			/* NULL: the trace is off */
	void	   *context;
	size_t		ntraced;		/* of the actions */
} ZklTrace;

struct ZklManager
{
	ZklConfig	config;
	char		root[ZKL_MAX_ROOT + 1];
	int64_t		now;
	ZklActions	actions;
	ZklOperations operations;
	ZklNodes	nodes;
	ZklLooks	looks;
	uint64_t	submissions;

	ZklRequest *requests;		/* config.max_requests of them */
	uint32_t	nlive;			/* WAITING or GRANTED */
	uint32_t	nqueued;		/* in the queue of their lock: their nodes are
								 * known to exist */
	uint32_t	nwaiting;		/* locks with a first that waits */
	ZklTable	by_path;

	ZklList		downgrades;		/* WANTED */
	ZklList		stuck_downgrades;	/* WANTED, refused: likewise */
	ZklList		stuck_locks;	/* their listing was refused: likewise */
	int64_t		stuck_until;
	ZklList		kept;			/* after their release; see keep.c */
	ZklList		dirty;
	ZklList		readers;
	ZklList		idle;
	uint32_t	nidle;
	uint32_t	visits[ZKL_VISITS]; /* of directories that we came to lately,
									 * a part of the hash, by another part */

	/* the connection and the session */
	ZklConnection connection;
	ZklSession	session;		/* id 0: none */
	ZklChain	chain;
	ZklSessionLease session_lease;
	ZklZxid		zxid;
	int64_t		unanswered_until;	/* no reconnect before, because a read was
									 * not answered */
	ZklJanitor	janitor;
	ZklBatches	batches;
	ZklPace		pace;

	ZklTrace	trace;

	ZklLock    *spare_locks;	/* linked through by_path.next */
	ZklCounters counters;
};

#endif							/* ZKL_CORE_STATE_H */
