/*
 * search.h
 *	  What some waits of ours wait for, and what that waits for, and so on.
 */
#ifndef ZKL_CORE_SEARCH_H
#define ZKL_CORE_SEARCH_H

#include "core/state.h"

typedef enum ZklReadState
{
	ZKL_READ_NONE = 0,
	ZKL_READ_WANTED,
	ZKL_READ_SENT,
	ZKL_READ_DONE,
	ZKL_READ_GONE				/* there is none, or none that we can use */
} ZklReadState;

/* A publication */
typedef struct ZklEntry
{
	ZklUuid		uuid;
	ZklReadState state;
	uint64_t	order;			/* of the operation that reads it */
	int64_t		czxid;
	ZklWaitData *data;			/* DONE */
	struct ZklFoundLock *directory; /* where its wait stands */
	ZklLink		by_uuid;
	ZklLink		to_get;
} ZklEntry;

/* A contender in a directory */
typedef struct ZklStanding
{
	ZklLockMode mode;
	const char *name;
	bool		has_uuid;
	ZklUuid		uuid;
	ZklEntry   *entry;			/* of that id, or NULL */
	ptrdiff_t	writer;			/* the nearest ahead, or -1 */
} ZklStanding;

/* A directory */
typedef struct ZklFoundLock
{
	ZklReadState state;
	uint64_t	order;
	ZklDialect	dialect;
	ZklLink		link;
	ZklLink		to_list;
	ZklStanding *all;			/* as they queue */
	size_t		n;
	char	   *names;
	size_t		matter;			/* so many of the first ones are behind which,
								 * or before which, a wait in question is */
	size_t		wanted;			/* of so many of the first ones the entries */
	uint32_t	first;			/* node of a graph */
	char		path[];			/* NUL terminated */
} ZklFoundLock;

extern void zkl_search_init_all(ZklManager *m);

/* The contender of this id in a directory that is DONE, or NULL */
extern ZklStanding *zkl_search_find(const ZklFoundLock *directory,
									const ZklUuid *uuid);

/* The directory of this lock, if there is one; path with the root */
extern ZklFoundLock *zkl_search_directory(const ZklManager *m, const char *path,
										  ZklDialect dialect);

/* Begins a search, if one is wanted, and goes on with it. */
extern void zkl_search_send(ZklManager *m);

/* The answers: to the listing of all publications ("good": it tells something) */
extern void zkl_search_listed(ZklManager *m, const ZklOp *op,
							  const ZklReply *reply, bool good);
extern void zkl_search_reply(ZklManager *m, const ZklOp *op,
							 const ZklReply *reply);

/* The connection is gone: it begins again. Also at the end of a manager. */
extern void zkl_search_stop(ZklManager *m);

/* Something was found that is too large to be decided. */
extern void zkl_search_give_up(ZklManager *m);

#endif							/* ZKL_CORE_SEARCH_H */
