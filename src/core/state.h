/*
 * state.h
 *	  What a manager knows: requests and locks, operations and batches under way,
 *	  and the session.  For the files of the core only; hosts see manager.h.
 *
 * Each struct is written by one part of the core (see README.md), and so are the
 * fields of ZklRequest and ZklLock beside them: test/check-writers.pl says by which.
 */
#ifndef ZKL_CORE_STATE_H
#define ZKL_CORE_STATE_H

#include "core/assert.h"
#include "core/list.h"
#include "core/manager.h"
#include "core/queue.h"

/* ---- lock_state ---- */

/*
 * What a manager knows of a request, and of a lock.  For the files of the core only;
 * hosts see manager.h.
 *
 * Each struct in ZklRequest and ZklLock is written by one part of the core (see
 * README.md), and so are the fields beside them: test/check-writers.pl says by which.
 *
 * A request has two states.  Its demand is the backend's side; its node is
 * ZooKeeper's.  They move on their own:
 *
 *	  demand:  UNUSED -> WAITING -> GRANTED -> RELEASED -> UNUSED
 *						    |          | (lost)    ^
 *						    +-> ANSWERED <---------+ (denied, failed, lost)
 *
 *	  node:    NONE -> NEW -> EXISTS -> DELETE -> NONE
 *
 * A request is UNUSED again (action FREE) when its demand is RELEASED and its
 * node is NONE.  A granted request whose owner already held the lock has no
 * node of its own; "cover" is the one whose node it shares.  When its holder lets go,
 * that one stays GRANTED until none shares its node; see owner.c.
 */

#define ZKL_MAX_DIRECTORY	(ZKL_MAX_ROOT + ZKL_MAX_NAME)

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
	ZKL_NODE_NEW,				/* to be created: "write" says how far that is */
	ZKL_NODE_EXISTS,
	ZKL_NODE_DELETE				/* to be deleted, likewise */
} ZklNodeState;

/* A one-shot data watch of ours */
typedef enum ZklWatchState
{
	ZKL_WATCH_NONE = 0,
	ZKL_WATCH_WANTED,
	ZKL_WATCH_SENT,
	ZKL_WATCH_ARMED
} ZklWatchState;

typedef struct ZklLock ZklLock;
typedef struct ZklRequest ZklRequest;

/* Where a write is; see write.h */
typedef enum ZklWriteState
{
	ZKL_WRITE_NONE = 0,			/* there is nothing to write */
	ZKL_WRITE_HELD,				/* something has to come first, or some time
								 * has to pass */
	ZKL_WRITE_PENDING,			/* in the list of its rank */
	ZKL_WRITE_BATCH,			/* in a batch that is not answered */
	ZKL_WRITE_ALONE,			/* in what its writer has sent, likewise */
	ZKL_WRITE_UNSETTLED			/* the answer is lost */
} ZklWriteState;

/* The order of pending writes in a batch; the last rank is in none. */
typedef enum ZklWriteRank
{
	ZKL_RANK_DELETE,
	ZKL_RANK_LATE_DELETE,		/* goes with another one, or soon; see write.c */
	ZKL_RANK_RESEND,			/* creates of a batch that failed */
	ZKL_RANK_CREATE,
	ZKL_RANK_CHANGE,
	ZKL_RANK_WING_DELETE,
	ZKL_RANK_WING_CREATE,
	ZKL_RANK_ALONE,
	ZKL_RANKS
} ZklWriteRank;

typedef struct ZklWriter ZklWriter;
typedef struct ZklWrite ZklWrite;

/* A place in a batch */
typedef struct ZklSeat
{
	ZklWrite   *write;			/* NULL: nobody wants its outcome any more */
	uint32_t	index;			/* of the first of its operations */
} ZklSeat;

struct ZklWrite
{
	ZklWriteState state;
	ZklWriteRank rank;			/* PENDING; or HELD, because it was refused */
	const ZklWriter *by;
	ZklLink		link;			/* in a list of m->writes */
	ZklSeat    *seat;			/* BATCH */
};

/* The place in the local queue; see lock.c */
typedef struct ZklPlace
{
	ZklLink		link;			/* in lock->queue.own: EXISTS, and WAITING or
								 * GRANTED */
	bool		upgrade;		/* in the queue on top of a shared hold */
} ZklPlace;

/* The ring of one owner's requests on one lock; see owner.c */
typedef struct ZklRing
{
	uint64_t	owner;
	ZklRequest *next;
	ZklRequest *prev;
	ZklRequest *cover;			/* a hold whose node this one shares */
	ZklDemandState then;		/* GRANTED, but it only stays for those that
								 * lean on its node: what its demand becomes
								 * without them; else UNUSED */
	ZklLink		by_owner;		/* in m->owners, whatever the request does */
} ZklRing;

/* For a GRANTED request whose holder has let go */
typedef struct ZklKept
{
	int64_t		until;
	ZklLink		link;			/* in m->kept, in this order */
} ZklKept;

/* The change of an exclusive node to a shared one; see node.c */
typedef struct ZklDowngrade
{
	ZklWrite	write;
	bool		either;			/* its node is deleted as the writer's, and
								 * then as the reader's */
} ZklDowngrade;

/* What other clients wrote to the node, to ask for the lock; see node.c */
typedef struct ZklAsked
{
	int64_t		zxid;			/* of the last such write that the holder was
								 * told of */
	bool		early;			/* there may be one from before the grant */
} ZklAsked;

/* A znode of ours; see node.c */
typedef struct ZklNode
{
	ZklNodeState state;
	ZklLockMode mode;			/* narrower than the request's after a
								 * downgrade */
	ZklUuid		uuid;
	ZklSeq		seq;			/* -1: not known */
	uint32_t	index;			/* in its batch */
	int32_t		version;		/* of its data, when it was last read on this
								 * connection; 0: as it was created */
	int64_t		czxid;			/* 0: not known, ask */
	uint64_t	seen;			/* order of the last listing that showed it */
	bool		alone;			/* no one else came between our last create in
								 * this directory and its own */
	bool		recreate;		/* once deleted, create it again: its number
								 * was no place in the queue */
	ZklLink		by_uuid;
	ZklWrite	write;			/* HELD: DELETE, until its name is known, or
								 * because it was refused */
	size_t		data_length;
	char		data[ZKL_MAX_NODE_DATA];
} ZklNode;

/* What we have read of a znode of ours, and have yet to read; see node.c */
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

typedef enum ZklCacheState
{
	ZKL_CACHE_NONE = 0,
	ZKL_CACHE_HOPED,			/* its node is created with the mark */
	ZKL_CACHE_CACHEABLE			/* the slot says whether it is cached */
} ZklCacheState;

/* Whether the lock may stay here after its release; see cache.c */
typedef struct ZklCache
{
	ZklCacheState state;
	bool		clear;			/* HOPED: no other contender is listed */
	bool		contended;		/* it was recalled for somebody */
	int64_t		due;			/* CACHEABLE: the next look whether it is used */
	ZklLink		link;			/* in m->cache.hoped or cacheable, by due */
} ZklCache;

/* What its node says, and what has yet to be written there; see node.c */
typedef struct ZklRewrite
{
	int64_t		asked_at;		/* when the session asked for the lock */
	bool		marked;			/* the node says that it may be cached */
	bool		lacks_wait;		/* the node does not say that r has waited */
	bool		writing;		/* a write is under way */
	bool		writes_wait;	/* it says how long r has waited, if r has */
	int64_t		question;		/* zxid of the one that this write puts again */
	bool		late;			/* in m->rewrites.late, until "due" */
	int64_t		due;
	ZklLink		link;			/* in a list of m->rewrites */
} ZklRewrite;

#define ZKL_MAX_ASKERS	8		/* of one node, each another server */

/* The servers that asked for the word of a node; see lock.c */
typedef struct ZklAskers
{
	bool		over;			/* the word may be said: nothing holds by it */
	uint32_t	n;
	ZklPeerMessage all[ZKL_MAX_ASKERS];
} ZklAskers;

struct ZklRequest
{
	uint32_t	id;
	uint64_t	submitted;		/* order of submission, over all requests */
	int32_t		pid;			/* for others to show */
	ZklDemandState demand;
	ZklLockMode mode;
	uint32_t	max;			/* dialect PERMIT: see decide.c */
	ZklLock    *lock;
	int64_t		token;
	bool		timed_out;		/* deny it unless it can be granted now */
	bool		together;		/* to be told once it is blocked */
	bool		behind_cached;	/* it was told that it waits for a server that
								 * may have the lock cached */
	bool		plain;			/* may be cached */
	bool		guard;			/* there is no word for its node */
	bool		by_word;		/* GRANTED, and a departed znode may still
								 * stand ahead of its node */
	bool		broken;			/* GRANTED, but lost to its holder: an
								 * operator broke it, or it cannot be read;
								 * the node stays until the release */
	bool		perhaps_overtaken;	/* its session may have ended before, so
									 * that another client may have got the
									 * lock */
	ZklLink		all;			/* in lock->requests.all */
	ZklLink		trying;			/* in lock->tries.all */
	ZklPlace	place;
	ZklRing		ring;
	ZklKept		keep;

	/* the znode */
	ZklDowngrade downgrade;
	uint32_t	attempts;		/* failed because parents were missing */
	ZklAsked	asked;
	ZklCache	cache;
	ZklRewrite	rewrite;
	ZklLook		look;
	ZklNode		node;			/* not all of its data is cleared, nor what
								 * follows */
	ZklAskers	askers;
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
								 * dialect PERMIT: see decide.c */
	bool		departed;		/* since the last listing some may still exist
								 * that are not in "all" because their server
								 * said so */
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
	bool		gap;			/* others came between the last two creates of
								 * ours: they may do so again */
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
	char	   *data;			/* of its znode, when the watch was set; for
								 * people; NULL: none, or not read */
	uint32_t	data_length;
	bool		cached;			/* by its server, perhaps: the mark says so */
	char		server[ZKL_MAX_SERVER_NAME + 1];	/* cached: its name */
} ZklAhead;

/* The listings of the directory */
typedef struct ZklListings
{
	bool		wanted;
	bool		sent;
	ZklWatchState watch;		/* on the children, along with a listing; for
								 * dialect PERMIT: see decide.c */
	uint64_t	order;			/* of the listing that sets it */
	ZklLink		stuck;			/* in m->reads.stuck: to be listed later */
} ZklListings;

/* Tries that look before they create; see reads_reply.c */
typedef struct ZklTries
{
	ZklList		all;
	bool		sent;			/* the look */
	bool		stale;			/* the sync ahead of its listing was refused */
	uint64_t	until;			/* submitted: those until then wait for what
								 * the node in their way says */
} ZklTries;

/* The directory, if it has to be made; see reads.c */
typedef struct ZklParents
{
	bool		missing;		/* make it ahead of the next create */
	int32_t		rc;				/* why it could not be made */
	bool		found;			/* a create of ours was done in it */
	bool		guessed;		/* it was made ahead of the first create,
								 * which is not answered */
	bool		made;			/* by this session, and no other client was
								 * met in it */
	ZklSeq		creates;		/* of ours in it */
} ZklParents;

/*
 * The counter of the directory, from which its znodes have their numbers.  Others
 * read what does not fit in 31 bits as less than zero, so a request whose number
 * comes near that fails.  Once all our nodes in the directory are gone, it is deleted
 * if it is empty: the next create makes it again, and begins with 0.
 */
typedef enum ZklCounter
{
	ZKL_COUNTER_GOOD = 0,		/* for all we know */
	ZKL_COUNTER_ENDED,			/* we create nothing, so that our nodes there
								 * come to an end */
	ZKL_COUNTER_RESET			/* the directory's delete is under way */
} ZklCounter;

/* One lock, and what we know of its directory */
struct ZklLock
{
	char		path[ZKL_MAX_DIRECTORY + 1];
	size_t		path_length;
	ZklDialect	dialect;
	ZklLink		by_path;
	ZklLink		idle;			/* in m->locks.idle while it has no requests */
	ZklLink		dirty;			/* in m->locks.dirty: to be decided */
	ZklLink		reader;			/* in m->reads.readers: has reads to send */
	uint32_t	pins;			/* operations under way that refer to it */
	bool		asks_due;		/* those ahead of the first that waits are to
								 * be asked for their words */
	bool		checks_holds;	/* the next listing tells whether somebody is
								 * ahead of our holds */

	ZklLockRequests requests;
	ZklRequest *cached;			/* HOPED or CACHEABLE; NULL: none */
	ZklQueue	queue;
	ZklForeign	foreign;
	ZklBase		base;
	ZklDirectory directory;
	ZklAhead	ahead;
	ZklListings listing;
	ZklTries	tries;
	ZklParents	parents;
	ZklCounter	counter;
};

/* ---- state ---- */

/*
 * What a manager knows: operations and batches under way, the session, and all
 * requests and locks.  For the files of the core only.
 */

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
	ZKL_OP_MAKE_DIRECTORY,		/* create of a lock's directory itself */
	ZKL_OP_DELETE_DIRECTORIES,	/* delete of some that nobody uses */
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

/* The directories of locks; see reads.c */
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

/* Pieces of memory that are given back together; see host.c */
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

/* The batches under way, oldest first; see write.c */
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

/* How long the session surely lives; see session.c */
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

/* Sessions whose end ZooKeeper may have lost; see session.c */
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

/* Why a batch waits for a moment; see write.c */
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

#ifndef ZKL_HEATS				/* tests define fewer */
#define ZKL_HEATS	16384		/* a power of 2 */
#endif

/* Locks that may be cached; see cache.c */
typedef struct ZklCaching
{
	int64_t		time;			/* us that an unused lock stays; 0: none does */
	ZklList		hoped;
	ZklList		cacheable;		/* by due */
	uint64_t	recalls;
} ZklCaching;

/* Nodes whose data is to be written once more; see node.c */
typedef struct ZklRewrites
{
	ZklList		late;			/* by due */
	ZklList		wanted;
	ZklList		refused;		/* not before retry_at */
	int64_t		retry_at;
} ZklRewrites;

/* A wing, and what it knows; see host.c */
typedef struct ZklWingState
{
	const ZklWing *wing;		/* NULL: no more */
	void	   *state;
} ZklWingState;

/* What servers tell each other; see lock.c */
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

/* Znodes of others that are in nobody's way; see contenders.c */
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
	ZklTable	owners;			/* all requests; see owner.c */
	ZklLocks	locks;
	ZklReads	reads;
	ZklDirectories directories;
	ZklList		kept;			/* after their release; see owner.c */
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
