/*
 * seen.h
 *	  What many seeds together must have shown, so that the rules about it mean
 *	  something: run.sh fails if one of these never occurred.
 */
#ifndef SIM_SEEN_H
#define SIM_SEEN_H

#include "base.h"

/* X(name, what occurred) */
#define SEEN_LIST(X) \
	X(SESSION_ENDED, "a worker that ended by a signal closed its session") \
	X(TAKE_OVER, "a worker took over from one that had a session") \
	X(TAKE_STOPPED, "a stop between a take and the check of the lease") \
	X(TAKE_LAPSED, "the lease ended between them") \
	X(TAKE_LOST, "the lock was lost between them") \
	X(TAKE_RECALLED, "the lock was recalled between them") \
	X(TAKE_SHRUNK, "cache_time became less between them") \
	X(TAKER_NAMED, "a znode without its mark names the session that took the lock") \
	X(TAKER_PUBLISHED, "a publication names the process that took the lock") \
	X(DEPENDENTS_TOO_MANY, "more sessions depend on a wait than are told") \
	X(HELD_TOO_MANY, "more znodes were held than are published") \
	X(RESIGNED, "a leader resigned for a drain") \
	X(DETECTION_OFF, "deadlock_detection went off with waits published") \
	X(CLIENT_REFUSED, "ZooKeeper's client refused to send") \
	X(ASKED, "a holder was asked to give the lock up") \
	X(ASKED_BEFORE_GRANT, "a request was asked before its grant") \
	X(QUESTION_REWRITTEN, "a question was put again by the write that took the mark away") \
	X(MARK_OVERWRITTEN, "a server read what others wrote over the mark of a cached lock") \
	X(WORD_TAKEN, "a server heard that a znode has departed") \
	X(WORD_LATE, "it heard so when nobody waited any more") \
	X(GUARD, "a lock was held under which ZooKeeper is read") \
	X(NO_NUMBER, "a request failed because the counter of its directory was at its end") \
	X(BEGUN_ANEW, "a lock was granted in a directory that has begun anew since") \
	X(GUESSED_RIGHT, "a directory was made on a guess ahead of its first znode") \
	X(GUESSED_WRONG, "a directory that seemed to be missing was there") \
	X(DIRECTORIES_DELETED, "directories were deleted because nobody used them any more") \
	X(DIRECTORY_USED, "one of them was in use, or gone") \
	X(EPILOGUE, "something was to be written when a lock was released") \
	X(PROMISE, "a holder was told for how long nobody else gets the lock") \
	X(PROMISE_OUTLIVES, "a process ended before the time that it was told") \
	X(PROMISE_STOPS, "a server was stopped before the time that was told") \
	X(TICKET, "a ticket was requested, for which nobody waits") \
	X(TICKET_GIVEN_BACK, "a ticket was given back, as nobody had the answer to its claim") \
	X(TICKET_CLAIMED, "a ticket that was granted was claimed") \
	X(NO_WING, "a core had no wing") \
	X(VERDICT, "a deadlock was decided") \
	X(VERDICT_BEHIND, "a deadlock was decided that leads through PostgreSQL's own locks")

enum
{
#define SEEN_ENUM(name, text) SEEN_##name,
	SEEN_LIST(SEEN_ENUM)
#undef SEEN_ENUM
	SEEN_COUNT
};

/* Shared by all processes of a run */
extern uint64_t *seen_counts;

/* Before any process begins */
extern void seen_begin(void);

/* One line each */
extern void seen_print(void);

#define SEEN(name) \
	((void) __atomic_fetch_add(&seen_counts[SEEN_##name], 1, __ATOMIC_RELAXED))

#endif							/* SIM_SEEN_H */
