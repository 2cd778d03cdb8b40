/*
 * lock_state.h
 *	  What a manager knows of a request, and of a lock.  For the files of the
 *	  core only; hosts see manager.h.
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
 * that one stays GRANTED until none shares its node; see siblings.c.
 */
#ifndef ZKL_CORE_LOCK_STATE_H
#define ZKL_CORE_LOCK_STATE_H

#include "core/manager.h"
#include "core/queue.h"
#include "core/table.h"

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
	ZKL_RANK_LATE_DELETE,		/* goes with another one, or soon; see
								 * batches.c */
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

/* The ring of one owner's requests on one lock; see siblings.c */
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

/* The change of an exclusive node to a shared one; see downgrade.c */
typedef struct ZklDowngrade
{
	ZklWrite	write;
	bool		either;			/* its node is deleted as the writer's, and
								 * then as the reader's */
} ZklDowngrade;

/* What other clients wrote to the node, to ask for the lock; see look.c */
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

/* What its node says, and what has yet to be written there; see rewrite.c */
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

/* The servers that asked for the word of a node; see words.c */
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

/* Tries that look before they create; see probe.c */
typedef struct ZklTries
{
	ZklList		all;
	bool		sent;			/* the look */
	bool		stale;			/* the sync ahead of its listing was refused */
	uint64_t	until;			/* submitted: those until then wait for what
								 * the node in their way says */
} ZklTries;

/* The directory, if it has to be made; see directories.c */
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

#endif							/* ZKL_CORE_LOCK_STATE_H */
