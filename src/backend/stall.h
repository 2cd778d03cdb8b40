/*
 * stall.h
 *	  What a wait is for: ZooKeeper, the worker, or other sessions that have the
 *	  lock; and who these are.
 */
#ifndef ZKL_BACKEND_STALL_H
#define ZKL_BACKEND_STALL_H

#include "shared/compat.h"
#include "shared/slot.h"
#include "storage/dsm.h"

/* In the place of a slot: the worker has yet to free one for the request. */
#define ZKL_NO_SLOT		(-1)

/*
 * For how many µs a slot has waited for ZooKeeper or the worker; -1: it waits
 * for other sessions; PG_INT64_MAX: all of its time, as far as is known.
 */
extern int64 zkl_stall_time(int slotno);

/* Which wait event shows for what the slot waits now */
extern ZklWaitEvent zkl_stall_event(int slotno);

/* A NOTICE that says so; this and the next take a name that the client can show. */
extern void zkl_stall_notice(int slotno, const char *name);

/* What a wait is for when it ends */
typedef enum ZklStallCause
{
	ZKL_STALL_OTHERS,			/* they have the lock, or are ahead */
	ZKL_STALL_WORKER,			/* has yet to look at the request; one that
								 * runs does that at once */
	ZKL_STALL_ZOOKEEPER,
	ZKL_STALL_ROOT,				/* its dialects are yet to be read */
	ZKL_STALL_CACHED			/* a server that may have the lock cached */
} ZklStallCause;

typedef struct ZklStallReason
{
	ZklStallCause cause;
	bool		young;			/* it was for no other session, but too short
								 * to blame anybody: the answer may still come */
	const char *detail;			/* in words for the client; these two may be
								 * NULL */
	const char *hint;
} ZklStallReason;

/*
 * Finds that out before a wait of that many µs ends with an error: also, for a second at
 * most, by asking the worker.
 */
extern void zkl_stall_explain(int slotno, const char *name, int64 waited_us,
							  ZklStallReason *reason);

/* What to tell of a reservation, by a copy of its slot, to the role that made it */
extern void zkl_stall_explain_reserved(const ZklSlot *slot, ZklStallReason *reason);

/*
 * Gives the request up: error 55P03 if the wait was for other sessions; 08006 if not, as
 * it is not known then whether others have the lock.  "timeout_ms" is that of the call, or
 * 0: it was "lock_timeout".
 */
pg_noreturn extern void zkl_stall_raise_timeout(int slotno, const char *name,
												const ZklStallReason *reason, int64 timeout_ms);

/* The same for "lock_timeout" in a call that has no request under way */
pg_noreturn extern void zkl_stall_raise_lock_timeout(const char *name);

/*
 * For a request that has no slot yet, as none was given back in time: error 53400, or 08006
 * if ZooKeeper is away.
 */
pg_noreturn extern void zkl_stall_raise_unclaimed(const char *name, int64 timeout_ms);

/* Error 08006: no answer came within "zklock.answer_timeout". */
pg_noreturn extern void zkl_stall_raise_unanswered(int slotno, const char *name);

/* How long a session waits for the worker to say who is ahead */
#define ZKL_AHEAD_WAIT_MS	1000

typedef struct ZklAheadQuestion
{
	int			asked;			/* the slot of the question; -1: there is none */
	int			under_way;		/* how many requests were, before it */
	dsm_segment *segment;		/* for the answer */
} ZklAheadQuestion;

extern void zkl_stall_ahead_init(ZklAheadQuestion *ahead);

/*
 * Asks who is ahead of the request in a slot of this session.  "reads": a znode that
 * the worker does not know is read from ZooKeeper.  False: there is no slot or no
 * memory for that now.
 */
extern bool zkl_stall_ahead_ask(ZklAheadQuestion *ahead, int slotno, const char *name, bool reads);

/* Whether the worker has answered, or cannot */
extern bool zkl_stall_ahead_is_known(const ZklAheadQuestion *ahead);

/*
 * Who has the lock, who is nearest in the way, and how many are ahead, in sentences
 * that a client can show; NULL: not known, or not yet.  "names": with the users and
 * applications, and the znodes of other clients.
 */
extern const char *zkl_stall_ahead_words(const ZklAheadQuestion *ahead, const char *name, bool names);

/* Forgets question and answer. */
extern void zkl_stall_ahead_forget(ZklAheadQuestion *ahead);

#endif							/* ZKL_BACKEND_STALL_H */
