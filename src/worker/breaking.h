/*
 * breaking.h
 *	  One zk_break_lock() on its way, for breaklock.c.  Worker only.
 */
#ifndef ZKL_WORKER_BREAKING_H
#define ZKL_WORKER_BREAKING_H

#include "core/manager.h"
#include "shared/retry.h"
#include "worker/breakhead.h"

typedef enum
{
	ZKL_BREAK_IDLE,				/* waits for a connection, or for its time */
	ZKL_BREAK_SYNCING,			/* so that what is read then is new */
	ZKL_BREAK_OPENING,			/* reads the directory */
	ZKL_BREAK_LISTING,
	ZKL_BREAK_READING,			/* the znode that is to go */
	ZKL_BREAK_COMPARING,		/* reads the directory again: is it the same? */
	ZKL_BREAK_MARKING,
	ZKL_BREAK_WAITING,			/* for the holder, or the time */
	ZKL_BREAK_LOOKING,			/* whether the marked znode is still there */
	ZKL_BREAK_DELETING
} ZklBreakPhase;

typedef struct
{
	int			slotno;
	uint32		attempt;		/* tells answers to earlier ones, also of an
								 * earlier Break */
	ZklBreakPhase phase;
	ZklRetry	retry;			/* when IDLE, or WAITING, is over */
	ZklDialect	dialect;
	char	   *lock;			/* its name ... */
	char	   *directory;		/* ... and its directory */
	int64		directory_czxid;	/* 0: not known */
	ZklBreakHead head;			/* the contender that is to go; it may have
								 * gone by our doing, or others' */
	bool		acted;			/* perhaps by our doing */
	bool		told;			/* of its end, in the log */
	ZklBreakHead target;		/* the znode of it that is being dealt with */
	int64		marked_at;		/* µs; 0: it is not, as far as is known */
	int32		version;		/* of its data since then */
	int64		timeout;		/* µs that its holder has from then on */
	int64		looked_at;		/* when the last look at the queue began */
	int64		search_until;	/* for what it leaves behind; 0: not yet */
	bool		over;			/* the slot has its answer */
} ZklBreak;

/* How one operation is sent; its tag lacks the bits that say whose it is. */
extern void (*zkl_breaking_send) (ZklAction *action);

/* Begins, or goes on after a pause or on a new connection. */
extern void zkl_breaking_begin(ZklBreak *b);

/* Looks at what it waits for, whose time has come. */
extern void zkl_breaking_look(ZklBreak *b, int64 now);

/* What is under way will not be answered. */
extern void zkl_breaking_stop(ZklBreak *b);

/* The answer to what is under way */
extern void zkl_breaking_reply(ZklBreak *b, const ZklReply *reply,
							   int32 version);

/* The part of a tag that tells answers to earlier operations */
extern uint32 zkl_breaking_attempt(uint64 tag);

#endif							/* ZKL_WORKER_BREAKING_H */
