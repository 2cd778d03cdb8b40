/*
 * operation.h
 *	  The frame for the worker's own operations on ZooKeeper, apart from locks,
 *	  and the DSM segments that they fill.
 *
 * A task is the work for one slot (an errand, a zk_dump() or an epilogue), or the
 * worker's own.  Its owner is one file, which says in a
 * ZklTaskOwner what to send for a task and what an answer means.  The frame does
 * the rest:
 *
 *	  submit --> PAUSED --begin--> BUSY --reply--> (end)
 *	               ^                 |
 *	               +-----------------+	zkl_operation_retry, _pause, or a new
 *									connection
 *
 * The frame finds the task that an answer belongs to, begins every task again
 * on a new connection, paces the retries, and knows when the next task is due.
 * A task begins only while the core believes what it reads.  Times are in µs
 * of boottime.h.
 */
#ifndef ZKL_WORKER_OPERATION_H
#define ZKL_WORKER_OPERATION_H

#include "core/manager.h"
#include "lib/ilist.h"
#include "shared/errand_layout.h"
#include "shared/slot.h"
#include "storage/dsm.h"
#include "wire/wire.h"

/* ---- segment ---- */

/* The DSM segments of backends, as the worker uses them.  Worker only. */

/*
 * Attaches a segment, for the caller to detach.  NULL: it is gone with its backend,
 * or cannot be attached, which is logged.
 */
extern dsm_segment *zkl_segment_attach(dsm_handle handle);

/*
 * Attaches a segment, calls fn, which must not throw, and detaches the segment.
 * False: it cannot be attached.
 */
extern bool zkl_segment_use(dsm_handle handle,
							void (*fn) (void *address, Size size, void *arg),
							void *arg);

/*
 * Answers a slot: "write" puts the answer into the backend's segment, or as much
 * of it as fits, and returns the bytes that it takes.
 */
extern void zkl_segment_answer(int slotno, dsm_handle handle,
							   Size (*write) (void *address, Size size,
											  void *arg),
							   void *arg);

/*
 * Unpins a segment.  A missing segment was already unpinned by an earlier
 * worker.
 */
extern void zkl_segment_unpin(dsm_handle handle);

/* ---- operation ---- */

/*
 * The frame for the worker's own operations on ZooKeeper, apart from locks.  Worker
 * only.
 */

/* An owner's struct begins with a ZklTask, which the frame changes. */
typedef struct ZklTask
{
	const struct ZklTaskOwner *owner;
	int			slotno;			/* -1: the worker's own */
	bool		large;			/* at most one such task is BUSY; the owner's,
								 * as it submits it */
	bool		busy;			/* else it begins at retry.due */
	bool		over;			/* it has ended, and stays only until all its
								 * operations are answered */
	uint32		round;			/* grows with each pause; answers to earlier
								 * rounds are dropped */
	int			unanswered;		/* operations, of all rounds */
	ZklRetry	retry;			/* on this connection */
	dlist_node	node;
} ZklTask;

typedef struct ZklTaskOwner
{
	size_t		size;			/* of the owner's struct */

	/*
	 * Fills in a new task, all zero so far, from a copy of its slot.
	 * "restored": an earlier worker may have begun the same task.  False:
	 * there is nothing to do, and the slot has its answer.  NULL: there are
	 * no slots for it.
	 */
	bool		(*submit) (ZklTask *task, const ZklSlot *slot, bool restored);

	/* Sends the first operation, or the next one after a pause. */
	void		(*begin) (ZklTask *task);

	/*
	 * An operation was answered; "part" is what it was sent with.  In the
	 * answer to a MULTI, rc is the result of the operation that failed.
	 */
	void		(*reply) (ZklTask *task, uint32 part, const ZklReply *reply,
						  const ZklWireStat *stat);

	/* The next three may be NULL. */

	/* The connection is gone: the task begins again unless this ends it. */
	void		(*lost) (ZklTask *task, bool was_busy);

	/* The time of the backend is over. */
	void		(*timed_out) (ZklTask *task);

	/* The task is about to be freed. */
	void		(*end) (ZklTask *task, bool connected);
} ZklTaskOwner;

/* ---- for the loop ---- */

/* "send" puts one operation on the link. */
extern void zkl_operation_init(void (*send) (const ZklAction *action));

/*
 * A slot has work for this owner.  Returns whether it has a task now, which may
 * be one that it had before.
 */
extern bool zkl_operation_submit(const ZklTaskOwner *owner, int slotno,
								 const ZklSlot *slot, bool restored);

/* The time of the slot's backend is over. */
extern void zkl_operation_time_out(int slotno);

/* The backend no longer waits for the answer. */
extern void zkl_operation_cancel(int slotno);

/* Takes an answer.  False: the answer is for the core. */
extern bool zkl_operation_reply(uint64 tag, const ZklReply *reply,
								const ZklWireStat *stat);

/*
 * Begins the tasks that are due; "ready" tells whether reads can be believed.
 * Tasks of an earlier connection begin again.
 */
extern void zkl_operation_tick(bool ready, int64 now);

/* When to call tick at the latest; -1: no need. */
extern int64 zkl_operation_timer(void);

/* ---- for owners ---- */

/* Makes a task of the worker's own, all zero but for the frame's part. */
extern ZklTask *zkl_operation_make(const ZklTaskOwner *owner);

/*
 * Sends an operation for a task, which is BUSY from then on; "watch" is for GET
 * and LIST.  If task is NULL, the answer is dropped.
 */
extern void zkl_operation_send(ZklTask *task, uint32 part, ZklSendKind kind,
							   const char *path, bool watch);
extern void zkl_operation_send_multi(ZklTask *task, uint32 part,
									 const ZklMultiOp *ops, size_t nops);

/*
 * Something failed: begins again after a pause, which grows from try to try.
 * False: that was the last try, and the task has to end.
 */
extern bool zkl_operation_retry(ZklTask *task);

/* Begins again at that time, or at once.  This is no failure. */
extern void zkl_operation_pause(ZklTask *task, int64 until);

/* The tries until now no longer count. */
extern void zkl_operation_reset(ZklTask *task);

/*
 * Creates the parents of a path, top down, one right behind the other.  What the
 * task sends next shows whether they exist.
 */
extern void zkl_operation_send_parents(const char *path);

/* Nothing is left to do. */
extern void zkl_operation_end(ZklTask *task);

#endif							/* ZKL_WORKER_OPERATION_H */
