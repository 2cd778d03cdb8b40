/*
 * state.h
 *	  What a manager knows: operations and batches under way, the session, and
 *	  all requests and locks.  For the files of the core only.
 *
 * As in lock_state.h, each struct is written by one part.
 */
#ifndef ZKL_CORE_STATE_H
#define ZKL_CORE_STATE_H

#include "core/assert.h"
#include "core/lock_state.h"
#include "core/mutant.h"

#define ZKL_MAX_ATTEMPTS	5	/* to make a lock's directory, for one create */
#define ZKL_RETRY_DELAY		1000000 /* µs until what was refused is tried
									 * again */
#define ZKL_PARENT_GUESSES	256 /* a power of 2 */
#define ZKL_MAX_GOING		64	/* directories that one transaction deletes */

/* Tests define fewer. */
#ifndef ZKL_VISITS
#define ZKL_VISITS			16384	/* a power of 2 */
#endif
#ifndef ZKL_MAX_LEFT
#define ZKL_MAX_LEFT		1024	/* directories to be deleted later */
#endif
#define ZKL_CONTACTS		48	/* to remember; one per T/48 at most */

typedef enum ZklOpKind
{
	ZKL_OP_FREE = 0,
	ZKL_OP_BATCH,
	ZKL_OP_CHAIN,				/* opens the next chain of heartbeats */
	ZKL_OP_CHAIN_FENCE,			/* reads behind it are not old */
	ZKL_OP_CHAIN_IN_USE,		/* reads the heartbeat that batches name */
	ZKL_OP_CHAIN_LIST,			/* lists all heartbeats */
	ZKL_OP_LIST,
	ZKL_OP_PROBE,
	ZKL_OP_PROBE_MARK,			/* reads the only node in the way of tries */
	ZKL_OP_WATCH_AHEAD,
	ZKL_OP_WATCH_DIRECTORY,
	ZKL_OP_WATCH_OWN,
	ZKL_OP_TOKEN,				/* get a node's czxid */
	ZKL_OP_PARENT,
	ZKL_OP_DIRECTORY,			/* create of a lock's directory itself */
	ZKL_OP_DIRECTORIES,			/* delete of some that nobody uses */
	ZKL_OP_DELETE,				/* of a request's node */
	ZKL_OP_RESET,				/* delete of a directory whose counter ended */
	ZKL_OP_JANITOR,				/* looks for nodes that no request claims */
	ZKL_OP_SWEEP,				/* delete of an earlier heartbeat node */
	ZKL_OP_PROBE_SYNC,			/* a listing behind it is new */
	ZKL_OP_REWRITE,				/* of the data of a request's node */
	ZKL_OP_REVIVED,				/* reads the node ahead of a hold */
	ZKL_OP_IGNORE,				/* nothing hangs on its answer */
	ZKL_OP_WING					/* from here on: a wing's */
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

/* All znodes of ours */
typedef struct ZklNodes
{
	uint64_t	uuids;			/* made so far */
	int64_t		session;		/* that the last id names */
	int64_t		session_before; /* the last other one that an id names */
	uint64_t	created;		/* nodes, so far */
	uint64_t	alone;			/* of these, as in ZklNode */
	ZklTable	by_uuid;
} ZklNodes;

/* All writes that are in a list; see write.c */
typedef struct ZklWrites
{
	ZklList		pending[ZKL_RANKS];
	ZklList		stuck;			/* HELD: refused, not before stuck_until */
	ZklList		alone;			/* ALONE */
} ZklWrites;

/* Holds, and the first that waits for each lock */
typedef struct ZklLooks
{
	ZklList		unwatched;		/* in want of a watch */
	ZklList		unseen;			/* the same, until the watch is armed */
} ZklLooks;

/* The requests; see request.c */
typedef struct ZklRequests
{
	ZklRequest *all;			/* config.max_requests of them */
	uint64_t	submitted;		/* so far */
	uint32_t	nlive;			/* WAITING or GRANTED */
} ZklRequests;

/* The locks; see lock.c */
typedef struct ZklLocks
{
	ZklTable	by_path;
	ZklList		dirty;			/* to be decided */
	ZklList		idle;			/* without requests */
	uint32_t	nidle;
	uint32_t	nqueued;		/* requests in the queues: their nodes are
								 * known to exist */
	uint32_t	nwaiting;		/* locks with a first that waits */
	ZklLock    *spare;			/* linked through by_path.next */
} ZklLocks;

/* Listings and watches; see reads.c */
typedef struct ZklReads
{
	ZklList		readers;		/* locks that have reads to send */
	ZklList		stuck;			/* locks whose listing was refused */
	uint64_t	listings;		/* so far */
	uint64_t	watches;		/* armed now */
	uint32_t	visits[ZKL_VISITS]; /* of directories that we came to lately,
									 * a part of the hash, by another part */
} ZklReads;

/* What was met last under one parent, for a part of its hash */
typedef struct ZklParentGuess
{
	uint32_t	tag;			/* another part of it */
	bool		missing;		/* the directory of a name that came new */
} ZklParentGuess;

typedef struct ZklLeft ZklLeft;

/* The directories of locks; see directories.c */
typedef struct ZklDirectories
{
	ZklParentGuess guesses[ZKL_PARENT_GUESSES];
	ZklList		left;			/* to be deleted, in the order of their time */
	ZklTable	by_path;		/* those whose delete is not under way */
	uint32_t	nleft;
	uint32_t	ngoing;			/* the first ones: their delete is under way */
} ZklDirectories;

/* All operations under way */
typedef struct ZklOperations
{
	uint64_t	sent;			/* so far */
	ZklOp	   *all;
	uint32_t	n;				/* allocated */
	uint32_t	free;			/* head of the list of free ones */
	uint64_t	order;			/* of the last one that was sent */
	int64_t		sent_at;		/* likewise */
	size_t		read_bytes;		/* the window of reads: of their paths */
} ZklOperations;

typedef struct ZklChunk ZklChunk;

/* Pieces of memory that are given back together; see arena.c */
typedef struct ZklArena
{
	ZklChunk   *chunks;
} ZklArena;

/* The actions for the host, in order */
typedef struct ZklActions
{
	ZklAction  *all;
	size_t		n;
	size_t		nlosses;		/* how many of them are LOSE */
	size_t		allocated;
	ZklArena	text;			/* their strings */
} ZklActions;

/* One batch: the beat, and then the operations of each seat */
typedef struct ZklBatch
{
	int32_t		version;		/* that the beat expects */
	uint64_t	order;			/* of its operation */
	int64_t		sent_at;
	uint32_t	nops;			/* operations, the beat included */
	uint32_t	nseats;
	ZklSeat    *seats;
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
	uint64_t	unproved_until; /* the number of the batch that proves what
								 * was done, or seen to be done, outside of
								 * batches; 0: all proved */
	bool		beat_wanted;	/* send one, even if there is nothing to write */
	bool		broken;			/* one failed: those behind it fail too */
	bool		refused;		/* the last one that was answered */
	uint32_t	unknown_streak; /* batches in a row whose answer was lost */
	uint32_t	limit;			/* operations, after unknown batches */
} ZklBatches;

typedef enum ZklConnectionState
{
	ZKL_CONNECTION_DOWN = 0,
	ZKL_CONNECTION_OPENING,		/* lost writes are looked for, or a new
								 * heartbeat node is being made */
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
	uint32_t	in_use;			/* from here on they may exist */
	uint32_t	swept;			/* up to here they are surely gone */
	int32_t		version;		/* that the next beat expects */
	int32_t		acknowledged;	/* the version of "in_use", at least */
	bool		checked;		/* that this is so, on this connection */
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
	bool		relied;			/* something was in a queue when it was valid */
	bool		verified;		/* all holds from before this connection are */
	bool		looking;		/* they were never yet, on this connection */
	int64_t		connecting_since;	/* until the connection stood */
	ZklContact	contacts[ZKL_CONTACTS]; /* a ring, the latest last */
	uint32_t	ncontacts;		/* on this connection, ever */
	int64_t		asked_at;		/* somebody outside relied on it */
} ZklSessionLease;

typedef struct ZklZxid
{
	int64_t		seen;
	int64_t		unbelieved;		/* answered, but not believed; see session.c */
	bool		hidden;			/* the host is not told "seen", but "before" */
	int64_t		before;
} ZklZxid;

/* Sessions whose end ZooKeeper may have lost; see revived.c */
typedef struct ZklRevived
{
	bool		lapsed;			/* the lease had ended when the connection
								 * stood */
	size_t		next;			/* bucket of m->locks: those from here on are
								 * to be listed, if they are held */
} ZklRevived;

/* A walk through all directories below the root; see janitor.c */
typedef struct ZklJanitor
{
	bool		wanted;			/* once the connection is proved */
	bool		asking;			/* about the first of to_do */
	struct ZklJanitorPath *to_do;	/* directories to list, znodes to look at
									 * or to delete */
	struct ZklJanitorPath *later;	/* likewise, but not before later_at */
	int64_t		later_at;
} ZklJanitor;

/* Why a batch waits for a moment; see batches.c */
typedef struct ZklPace
{
	int64_t		late_until;		/* then the late deletes are due */
	int64_t		gather_until;	/* then pending creates go in any case */
	uint32_t	expected;		/* granted by batches, not yet back with a new
								 * demand */
	bool		returning;		/* those before them all were */
	bool		counting;		/* what follows is a batch's doing */
} ZklPace;

/* How a lock was used here lately; see cache.c */
typedef struct ZklHeat
{
	uint32_t	tag;			/* of its path */
	uint32_t	released_ms;	/* when it was last */
	uint8_t		in_a_row;		/* releases that a demand followed soon */
	uint8_t		needed;			/* of these, for the lock to be hot */
	bool		released;		/* and no demand came since */
} ZklHeat;

#define ZKL_HEATS	16384		/* a power of 2 */

/* Locks that may be cached; see cache.c */
typedef struct ZklCaching
{
	int64_t		time;			/* us that an unused lock stays; 0: none does */
	ZklList		hoped;
	ZklList		cacheable;		/* by due */
	uint64_t	recalls;
} ZklCaching;

/* Nodes whose data is to be written once more; see rewrite.c */
typedef struct ZklRewrites
{
	ZklList		late;			/* by due */
	ZklList		wanted;
	ZklList		refused;		/* not before retry_at */
	int64_t		retry_at;
} ZklRewrites;

/* A wing, and what it knows; see hooks.c */
typedef struct ZklWingState
{
	const ZklWing *wing;		/* NULL: no more */
	void	   *state;
} ZklWingState;

/* What servers tell each other; see words.c */
typedef struct ZklWords
{
	bool		peers;			/* messages can be sent */
	uint64_t	asks;			/* so far, as the others */
	uint64_t	said;
	uint64_t	taken;
	uint64_t	late;
} ZklWords;

#define ZKL_MAX_DEPARTED	1024

typedef struct ZklDepartedId
{
	ZklUuid		uuid;
	uint64_t	lock;			/* hash_lock() of its lock */
	ZklLink		by_uuid;
} ZklDepartedId;

/* Znodes of others that are in nobody's way; see departed.c */
typedef struct ZklDeparted
{
	ZklTable	by_uuid;
	uint32_t	next;			/* in all, a ring: the oldest entry */
	ZklDepartedId all[ZKL_MAX_DEPARTED];
} ZklDeparted;

struct ZklManager
{
	ZklConfig	config;
	char		root[ZKL_MAX_ROOT + 1];
	char		server[ZKL_MAX_SERVER_NAME + 1];
	int64_t		now;
	ZklActions	actions;
	ZklOperations operations;
	ZklNodes	nodes;
	ZklWrites	writes;
	ZklLooks	looks;
	ZklRequests requests;
	ZklTable	owners;			/* all requests; see siblings.c */
	ZklLocks	locks;
	ZklReads	reads;
	ZklDirectories directories;
	ZklList		kept;			/* after their release; see keep.c */
	int64_t		stuck_until;	/* then what was refused is tried again */
	int64_t		unanswered_until;	/* no reconnect before, because a read was
									 * not answered */
	ZklConnection connection;
	ZklSession	session;		/* id 0: none */
	ZklChain	chain;
	ZklSessionLease session_lease;
	ZklZxid		zxid;
	ZklBatches	batches;
	ZklPace		pace;
	ZklRevived	revived;
	ZklJanitor	janitor;
	ZklCaching	cache;
	ZklRewrites rewrites;
	ZklWords	words;
	ZklDeparted *departed;		/* NULL: there are none */
	ZklWingState *wings;
	ZklHeat		heat[ZKL_HEATS];
};

#endif							/* ZKL_CORE_STATE_H */
