/*
 * breakhead.h
 *	  Which znode a zk_break_lock() is about.  Worker only.
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
 * Finds the first contender of a listing; of two with one number the writer,
 * whose reader the other is.  False: nobody contends.
 */
extern bool zkl_breakhead_first(ZklDialect dialect, const ZklReply *reply,
								ZklBreakHead *head);

/*
 * Finds what a listing shows of the same contender: the head itself, or else a
 * znode that zkl_breakhead_is_left may be true of.
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
 * Whether a znode that was found is the same contender as the head: it has the
 * same name or unique id, or is a reader with its number, and of the same
 * session, or in the same directory.  (In a directory that was made anew
 * numbers begin again.)
 */
extern bool zkl_breakhead_is_left(const ZklBreakHead *head,
								  const ZklBreakHead *found,
								  bool same_directory);

extern void zkl_breakhead_free(ZklBreakHead *head);

#endif							/* ZKL_WORKER_BREAKHEAD_H */
