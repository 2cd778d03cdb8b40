/*
 * deadlock_state.h
 *	  What the search for deadlocks knows of a manager's waits.  For the files of
 *	  this folder.
 *
 * As in the core, each struct is written by one part: test/check-writers.pl says by
 * which.
 */
#ifndef ZKL_DEADLOCK_DEADLOCK_STATE_H
#define ZKL_DEADLOCK_DEADLOCK_STATE_H

#include "core/wing.h"
#include "deadlock/deadlock.h"
#include "znode/znode.h"

/* Its kinds of operations; deadlock.c has their names */
#define ZKL_DEADLOCK_LIST_ALL	(ZKL_OP_WING + 0)	/* lists all publications */
#define ZKL_DEADLOCK_GET		(ZKL_OP_WING + 1)	/* reads one */
#define ZKL_DEADLOCK_LIST		(ZKL_OP_WING + 2)	/* lists a directory */
#define ZKL_DEADLOCK_VERDICT	(ZKL_OP_WING + 3)

/* A wait that gets long, and what is published of it; see publication.c */
typedef struct ZklWait
{
	ZklRequest *r;
	int64_t		patience;		/* in µs; 0: nothing is ever published */
	int64_t		since;
	int64_t		due;			/* the next look at what is to be published */
	uint32_t	looks;			/* so far */
	bool		counted;		/* as one that cannot be published */
	uint64_t	dependents[ZKL_MAX_DEPENDENTS]; /* owners that wait for this
												 * one's */
	size_t		ndependents;
	int64_t		dependents_at;	/* when that was seen */
	int64_t		cycle_at;		/* a cycle whose publications are not newer */
	int64_t		cycle_zxid;		/* than that was seen; see verdict.c */
	uint32_t	refusals;		/* of decisions in a row */
	bool		again;			/* wanted once more, while it is asked for */
	ZklLink		by_due;			/* in d->waits.fresh or due: in the queue, and
								 * waits */
	ZklLink		wanted;			/* in d->waits.wanted, or in a search */
	ZklList		publications;
} ZklWait;

/* What we tell others of a long wait; see publication.c */
typedef struct ZklPublication
{
	ZklWrite	write;			/* NONE: it exists */
	struct ZklDeadlock *d;		/* whose it is */
	char		name[ZKL_MAX_WAIT_NAME + 1];
	ZklUuid		uuid;			/* of the znode that is held */
	ZklWait    *wait;			/* NULL: it is only to be deleted */
	uint32_t	attempts;		/* that were refused */
	int64_t		czxid;			/* 0: not known */
	uint64_t	seen;			/* order of the last listing that showed it */
	ZklLink		all;
	ZklLink		by_uuid;
	ZklLink		of_wait;
	size_t		data_length;
	char		data[];
} ZklPublication;

/* All of them */
typedef struct ZklPublications
{
	ZklTable	by_uuid;
	ZklList		all;
	uint64_t	made;			/* so far */
	bool		unsettled;		/* some are */
	bool		unlisted;		/* some may be there that are to be found */
	bool		list_wanted;
	bool		list_sent;
	int64_t		retry_at;		/* no listing before, because one was refused */
} ZklPublications;

/* Long waits; see publication.c */
typedef struct ZklWaits
{
	ZklWait    *all;			/* by the number of the request */
	ZklList		fresh;			/* those that wait and were not looked at, by
								 * due: each request begins here, at the end */
	ZklList		due;			/* the others that wait, by due */
	ZklList		wanted;			/* want a search */
	uint64_t	unpublished;	/* for they hold too much */
} ZklWaits;

typedef enum ZklSearchState
{
	ZKL_SEARCH_IDLE = 0,
	ZKL_SEARCH_LISTING,			/* which publications there are */
	ZKL_SEARCH_READING
} ZklSearchState;

/* What a search has read; see found.c */
typedef struct ZklFound
{
	ZklArena	arena;			/* all that it leads to */
	ZklTable	by_uuid;		/* entries */
	struct ZklEntry *entries;	/* publications that there are */
	size_t		nentries;
	ZklList		directories;
	ZklList		to_get;			/* entries that are to be read */
	ZklList		to_list;		/* directories */
	uint32_t	under_way;
	bool		failed;			/* something could not be read */
} ZklFound;

/* A look at all that some waits wait for; see search.c */
typedef struct ZklSearch
{
	ZklSearchState state;
	uint64_t	order;			/* of the operation before its first */
	uint64_t	n;				/* so far */
	uint64_t	given_up;
	ZklList		asked;			/* the waits */
	ZklFound	found;
} ZklSearch;

typedef enum ZklVerdictState
{
	ZKL_VERDICT_NONE = 0,
	ZKL_VERDICT_SENT,
	ZKL_VERDICT_UNSETTLED		/* the answer is lost */
} ZklVerdictState;

/* The decision that a wait of ours ends for a deadlock; see verdict.c */
typedef struct ZklVerdict
{
	ZklVerdictState state;
	ZklWait    *wait;
	uint64_t	submitted;		/* the request's, to tell reuse */
	ZklUuid		uuid;			/* of the znode that waits */
	char		publication[ZKL_MAX_WAIT_NAME + 1]; /* one of those that it
													 * deletes */
	ZklDeadlockSteps *steps;
	uint64_t	deadlocks;		/* so far */
} ZklVerdict;

/* All of it, for one manager */
typedef struct ZklDeadlock
{
	ZklManager *m;
	ZklWaits	waits;
	ZklPublications publications;
	ZklSearch	search;
	ZklVerdict	verdict;
} ZklDeadlock;

#endif							/* ZKL_DEADLOCK_DEADLOCK_STATE_H */
