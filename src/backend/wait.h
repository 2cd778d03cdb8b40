/*
 * wait.h
 *	  The requests of this backend that are under way, and the wait for them.
 *	  For request.c; they are numbered from 0 in the order of submission.
 */
#ifndef ZKL_BACKEND_WAIT_H
#define ZKL_BACKEND_WAIT_H

#define ZKL_NEVER		PG_INT64_MAX

/* When a wait changes its mind; times of zkl_wait_clock() */
typedef struct ZklDeadlines
{
	bool		expired;		/* a try's time is over */
	int64		expire;			/* then it is */
	int64		answer;			/* nobody answers */
	int64		lock_timeout;	/* the setting of that name */
	int64		look;			/* whether it is ZooKeeper that is waited for:
								 * then a NOTICE says so */
	int64		start;			/* since when that counts */
} ZklDeadlines;

/* The time in µs, by a clock that never goes back. */
extern int64 zkl_wait_clock(void);
extern int64 zkl_wait_after_ms(int64 start, int64 ms);

/* Makes room for one more: submitting it cannot fail. */
extern void zkl_wait_make_room(void);

/* A slot that was claimed; "more": see zkl_slot_submit. */
extern void zkl_wait_submit(int slotno, bool more);

/* How many there are, and the slot of one */
extern int	zkl_wait_under_way(void);
extern int	zkl_wait_slot(int number);

/*
 * Those from number "first" on are no longer under way: ended, however far they
 * got, or the caller's.  Neither can fail.
 */
extern void zkl_wait_abandon(int first);
extern void zkl_wait_hand_over(int first);

/* The slot that was handed over last is under way again.  Cannot fail. */
extern void zkl_wait_take_back(int slotno);

/*
 * Whether there is an answer.  A grant whose lease has passed meanwhile,
 * because the worker or this backend was stopped, say, is none yet: the worker
 * will renew the lease, or find the lock lost.
 */
extern bool zkl_wait_is_answered(int slotno);

/*
 * Waits until is_over says so; latches wake it, of slots and at deadlines.
 * "where" adds to the errors, and is called with "name".
 */
extern void zkl_wait_until(bool (*is_over) (int slotno), int slotno,
						   void (*where) (void *name), const char *name,
						   ZklDeadlines *at);

#endif							/* ZKL_BACKEND_WAIT_H */
