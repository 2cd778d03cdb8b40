/*
 * found.h
 *	  What a search has read: publications, and the directories in which waits
 *	  stand.
 */
#ifndef ZKL_DEADLOCK_FOUND_H
#define ZKL_DEADLOCK_FOUND_H

#include "deadlock/deadlock_state.h"

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
	const char *name;
	ZklUuid		uuid;			/* of the znode that is held */
	ZklReadState state;
	uint64_t	order;			/* of the operation that reads it */
	int64_t		czxid;
	ZklWaitData *data;			/* DONE */
	struct ZklFoundDirectory *directory;	/* where its wait stands */
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
typedef struct ZklFoundDirectory
{
	ZklReadState state;
	uint64_t	order;
	ZklDialect	dialect;
	ZklLink		link;
	ZklLink		to_list;
	ZklStanding *all;			/* as they queue */
	size_t		n;
	char	   *names;
	size_t		matter;			/* the first so many are waits in question, or
								 * ahead of one */
	size_t		wanted;			/* entries of the first so many */
	uint32_t	first;			/* node of a graph */
	char		path[];			/* NUL terminated */
} ZklFoundDirectory;

/* Nothing is found; and what was found is not needed any more. */
extern void zkl_found_init(ZklDeadlock *d);
extern void zkl_found_forget(ZklDeadlock *d);

/* Memory until then */
extern void *zkl_found_alloc(ZklDeadlock *d, size_t size);

/* The listing of all publications, with which reading begins */
extern void zkl_found_begin(ZklDeadlock *d, const ZklReply *reply);

/* Goes on reading.  True: all is read. */
extern bool zkl_found_send(ZklDeadlock *d);
extern void zkl_found_reply(ZklDeadlock *d, const ZklOp *op,
							const ZklReply *reply);

/* The directory of this lock, if there is one; path with the root */
extern ZklFoundDirectory *zkl_found_directory(const ZklDeadlock *d,
											  const char *path,
											  ZklDialect dialect);

/* The contender of this id in a directory that is DONE, or NULL */
extern ZklStanding *zkl_found_standing(const ZklFoundDirectory *directory,
									   const ZklUuid *uuid);

#endif							/* ZKL_DEADLOCK_FOUND_H */
