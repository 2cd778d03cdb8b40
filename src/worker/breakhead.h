/*
 * breakhead.h
 *	  Which znode a zk_break_lock() removes.  Worker only.
 */
#ifndef ZKL_WORKER_BREAKHEAD_H
#define ZKL_WORKER_BREAKHEAD_H

#include "core/manager.h"

/* A znode that stands first in a queue */
typedef struct ZklBreakHead
{
	char	   *name;			/* palloc'd, of any length; NULL: none */
	ZklLockMode mode;
	ZklSeq		seq;
	bool		has_uuid;
	ZklUuid		uuid;
	bool		is_zklock;
	int64		session;		/* its ephemeralOwner; 0: not known */
} ZklBreakHead;

/*
 * Finds the first contender of a listing.  If two have the same number, that is
 * a writer and its reader, and the writer is first.  False: there is none.
 */
extern bool zkl_breakhead_first(ZklDialect dialect, const ZklReply *reply,
								ZklBreakHead *head);

/*
 * Finds a znode of the same contender in a listing: the head itself, or else one
 * for which zkl_breakhead_is_left may be true.
 */
extern bool zkl_breakhead_find(ZklDialect dialect, const ZklReply *reply,
							   const ZklBreakHead *head, ZklBreakHead *found);

/*
 * Whether a client can make a reader with the head's number after the head is
 * gone: a client other than zklock that writes as Curator's read-write lock.
 */
extern bool zkl_breakhead_may_leave(ZklDialect dialect,
									const ZklBreakHead *head);

/*
 * Whether a znode that was found belongs to the same contender as the head: it
 * has the same name or unique id, or is a reader with the same number, created
 * by the same session or in the same directory.  (If a directory is deleted and
 * created again, its numbers begin again.)
 */
extern bool zkl_breakhead_is_left(const ZklBreakHead *head,
								  const ZklBreakHead *found,
								  bool same_directory);

extern void zkl_breakhead_free(ZklBreakHead *head);

#endif							/* ZKL_WORKER_BREAKHEAD_H */
