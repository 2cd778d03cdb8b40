/*
 * mutant_list.h
 *	  Deliberate bugs, one at a time, for testing the simulation.
 *
 * The compiler reads it ahead of each file (-include) in a build with mutants.
 * From then on ZKL_MUTANT(name) of core/assert.h is true for the mutant that was
 * chosen at run time.  Each is a bug that a lock client has had, or that a rule of
 * ours invites; the simulation must catch them all.  If two guards keep one rule,
 * a mutant takes both away.
 */
#ifndef SIM_MUTANT_LIST_H
#define SIM_MUTANT_LIST_H

/* X(name, the bug) */
#define ZKL_MUTANT_LIST(X) \
	X(NONE, "none") \
	X(LOOKUP_WITHOUT_CHAIN, "an unknown create is looked up by its id, although it could still be applied later") \
	X(RESEND_UNKNOWN, "a batch without an answer is sent again as if it had been refused") \
	X(DYING_SESSION, "a place in the queue survives the end of the session") \
	X(KEEP_HOLDS, "a new session goes on with the holds of the old one") \
	X(LEASE_FROM_REPLY, "the lease is counted from the answer") \
	X(LEASE_OF_TIMEOUT, "the lease is a whole session timeout from the send") \
	X(DOWNGRADE_UNMARKED, "a writer that goes on as a reader leaves no mark before it goes") \
	X(LEASE_WITHOUT_CONTACT, "the lease is counted from the send, even if the leader has not heard of the session lately") \
	X(LEASE_WITHOUT_GENERATION, "the published lease does not say which session it belongs to") \
	X(GRANT_WITHOUT_LEASE, "locks are granted and denied after the lease has ended") \
	X(EXISTS_WATCH, "a request waits for the watch on a predecessor that is already gone") \
	X(NONODE_FAILS, "a predecessor that has left counts as a failure") \
	X(CANCEL_FORGETS_NODE, "a cancelled request leaves its node behind") \
	X(DELETE_ONCE, "a delete without an answer counts as done") \
	X(STRING_ORDER, "names are compared as strings: readers sort before writers") \
	X(IGNORE_GAP, "numbers of other clients in between are ignored") \
	X(RESEND_AFTER_BADVERSION, "a batch without an answer is sent again with the version that it expected, and BADVERSION counts as not applied") \
	X(HEARTBEAT_REUSED, "the heartbeat node is created again under its old name") \
	X(TOKEN_FROM_HEARTBEAT, "a token is taken from the heartbeat although the reply was lost") \
	X(READ_BEFORE_BEAT, "a new connection is believed before its first beat") \
	X(WATCH_FORGOTTEN, "the watch on the predecessor is not set again on a new connection") \
	X(CONTINUITY_RECONNECT, "continuity of numbers is kept over a reconnection") \
	X(CONTINUITY_WITHOUT_WATCH, "continuity without the watch on the directory") \
	X(CONTINUITY_FROM_LISTED, "continuity based on a listed name") \
	X(NO_TAINT, "a writer that vanishes is thought to leave no reader behind") \
	X(TAINT_PER_REQUEST, "the taint of a lock is forgotten with the request that found it") \
	X(HANDOVER_TO_CANCELLED, "the next local request is handed the lock although it was cancelled meanwhile") \
	X(NO_OWN_WATCH, "no watch is set on the znode of a hold") \
	X(PROBE_WITHOUT_SYNC, "a try reads from a server that may lag") \
	X(PROBE_OF_RELEASED, "a try is denied because of a znode of our own that is about to be deleted") \
	X(LATE_DELETE_FORGOTTEN, "a delete that waits for other work is never sent alone") \
	X(SEMAPHORE_ONE_MORE, "a request is granted although as many permits as the maximum are ahead") \
	X(SEMAPHORE_OWN_ONLY, "only the permits of this server are counted") \
	X(SEMAPHORE_UNWATCHED, "a request that waits for a permit does not watch the permits of others") \
	X(UPGRADE_WAITS, "shared to exclusive waits, even if another writer stands in between") \
	X(BACKWARDS_ZXID, "an ensemble whose transaction ids went back is used") \
	X(OVERDUE_IN_COMMIT, "the znode of a lock that was held too long is deleted while its holder commits") \
	X(KEPT_FOR_ITS_OWNER, "a kept lock does not keep out the session that held it") \
	X(STAYS_FOR_ITS_OWNER, "a hold that stays for a kept one does not keep out the session that held it") \
	X(STAYS_FOR_NOBODY, "a hold that stays for another one stays when that one ends") \
	X(KEPT_FOR_EVER, "a kept lock is never released") \
	X(RENEWAL_IGNORED, "a reservation ends at its first time although it was renewed") \
	X(CONNECTION_FROM_ITS_END, "a connection counts as a contact from its end, not from the start of connecting") \
	X(CLOCK_SLEWED, "leases are measured with a clock that NTP slews by up to 8.3 %") \
	X(LEASE_WITHOUT_RATES, "the lease has no margin for clocks of different rates") \
	X(SEMAPHORE_ONLY_CONTENDERS, "children of a semaphore that no client of ours made are not counted") \
	X(UPGRADE_BY_OLD_LISTING, "shared to exclusive is refused because of a listing from before the request") \
	X(LOST_WRITES_UNNOTICED, "an ensemble that lost writes which it had acknowledged is taken for one that has them all") \
	X(LATER_HEARTBEAT_UNSEEN, "writes count as lost although a later heartbeat node is there") \
	X(REVIVED_UNNOTICED, "a session whose end may be lost goes on with all that it had") \
	X(REVIVED_KEEPS_PLACE, "a request that waits keeps its place although the end of its session may be lost") \
	X(DOUBT_FORGOTTEN, "the next connection does not know that the end of the session may be lost") \
	X(REFUSED_DELETE_IS_DONE, "a delete that is refused counts as done") \
	X(OLDER_INCARNATION_KEPT, "numbers that start again are not taken for a new directory") \
	X(BROKEN_GOES_ON_AS_READER, "a writer that an operator has marked goes on as a reader without a mark") \
	X(VERDICT_UNCHECKED, "a deadlock is decided without a check that it still exists") \
	X(ORDER_BY_ZXID_ALONE, "publications of one batch have no order") \
	X(QUEUE_UNSEEN, "a reader does not wait for those before a writer that waits ahead of it") \
	X(OWN_CONTENDER_BLOCKS, "a session waits for its own hold") \
	X(STALE_DEPENDENTS, "a wait in PostgreSQL counts although it is over") \
	X(PUBLICATION_OUTLIVES, "a publication stays when its wait is over") \
	X(GRANTED_STILL_WAITS, "a holder waits for those behind it") \
	X(RECALL_LOST, "a change of the children does not recall a lock that may be cached") \
	X(OWNER_AT_DEMANDS_ONLY, "only a demand of the same server makes a recall tell the owner") \
	X(OWNER_BEFORE_CLEAR, "a recall reads the owner before it ends that the lock can be taken") \
	X(CACHED_HOLDS_UNKNOWN, "a long wait is published without the cached locks that its owner has taken") \
	X(TOKEN_NOT_TOLD, "a recall does not tell the token") \
	X(TAKE_PAST_LEASE, "a cached lock is taken after the lease has ended") \
	X(TAKE_SAME_TOKEN, "a take has the token of the holder before") \
	X(TAKE_TOO_OFTEN, "a lock is cached although its znode has no token left") \
	X(TAKE_QUIET, "the quiet of a holder before stays at the take") \
	X(RELEASE_FORGETS_BOUND, "a lock that is to be kept is cached") \
	X(CACHED_UNWATCHED, "a lock is cached without a watch on its directory") \
	X(CACHED_BEFORE_OTHERS, "a lock is cached although a contender stands behind it") \
	X(SESSION_ANSWER_COUNTS, "an answer about the session counts as one about what was read") \
	X(CACHED_IN_COMPANY, "a lock is cached although others of its server want it") \
	X(LOST_WHILE_CACHED, "a lock that is lost while it is cached can still be taken") \
	X(MARK_STAYS, "the mark is not taken away when a lock is cached no longer") \
	X(ASKED_BY_OWN_WRITE, "a holder is asked once more by the write that takes the mark away") \
	X(BEHIND_UNWATCHED, "a try is said to wait for a cached lock that no watch is on") \
	X(BEHIND_STAYS, "a try is still said to wait for a cached lock when it has no place in the queue") \
	X(TRY_IGNORES_MARK, "a try takes a cached lock of another server for a held one") \
	X(UNMARKED_STAYS_CACHED, "a lock stays cached although others have written over its mark") \
	X(NAME_NOT_TOLD, "a recall does not tell the name of the session that has the lock") \
	X(PID_NOT_TOLD, "a recall does not tell the process that has the lock") \
	X(CONTACT_BY_ERROR, "an answer that is an error counts as a contact") \
	X(ANSWER_OF_ANY_BATCH, "an answer that overtakes those before it is taken for the oldest batch's") \
	X(MARK_WRITTEN_OVER, "a writer that goes on as a reader writes over what others have written") \
	X(VERDICT_TOO_SOON, "a wait that another server saw in PostgreSQL counts at once") \
	X(BROKEN_STAYS_PUBLISHED, "a lock that an operator breaks stays published as if its owner held it") \
	X(KEPT_IS_OBSTACLE, "a lock that is only kept is published as if its owner held it") \
	X(QUESTION_UNMARKED, "a question is forgotten while the mark is taken away") \
	X(WRITTEN_OVER, "our own write to the data of a znode goes over what others have written") \
	X(WAIT_UNTOLD, "the znode of a hold that waited does not say so") \
	X(LOST_SLOT_KEPT, "a worker that takes over leaves the holds of the session before as they are") \
	X(OLD_SESSION_CLOSED, "a worker that ends closes its session although locks are held") \
	X(END_BREAKS_PROMISE, "a worker that ends closes its session although a lost lock was promised") \
	X(NEXT_SESSION_AT_ONCE, "the next worker begins a session while the one before lives on") \
	X(WORD_FOR_GUARD, "a word is said for a lock under which ZooKeeper is read") \
	X(WORD_FOR_LEANING_GUARD, "a word is said for a znode by which ZooKeeper was read, because it was made for another hold") \
	X(WORD_FOR_WAIT, "a word is said for the end of a wait") \
	X(WORD_FOR_PUBLISHED, "a word is said for a znode whose id is published") \
	X(WORD_BEFORE_EPILOGUE, "a word is said before the epilogue is written") \
	X(SENDER_NOT_OWNER, "a word counts although another server made the znode") \
	X(DEPARTED_PER_LOCK, "a word is forgotten with the last request of its lock") \
	X(DEPARTED_ANYWHERE, "a word counts in other locks, too, where its znode was copied") \
	X(DEPARTED_WATCHED, "a try is denied for a znode that is watched and has departed") \
	X(LISTING_BRINGS_BACK, "a listing brings back a znode that has departed") \
	X(PROBE_OF_DEPARTED, "a try is denied for a listed znode that has departed") \
	X(ASKED_IS_SOLITARY, "the delete of a znode that was asked for may be put off") \
	X(STOP_BREAKS_PROMISE, "a planned stop closes the session although a lock is promised") \
	X(PROMISE_PAST_LEASE, "a lock is promised for longer than the lease") \
	X(PROMISE_FORGOTTEN, "a lock that is lost is let go although it is promised") \
	X(EXIT_BREAKS_PROMISE, "the end of a process lets go what is promised") \
	X(CANCEL_BREAKS_PROMISE, "another one cancels a reservation at once, although it is promised") \
	X(NAME_REUSED, "a publication that is made again has the name of the one before") \
	X(TICKET_STAYS_GRANTED, "a ticket that is granted is not released, so nobody's lock never ends") \
	X(TICKET_CLAIMED_LATE, "a ticket is claimed when its time is over, and the core is not asked") \
	X(GIVEN_BACK_ALTHOUGH_TOLD, "a ticket is given back although somebody was told until when it is reserved") \
	X(TICKET_WITHDRAWN_UNTOLD, "nobody tells the core of a ticket that is withdrawn") \
	X(RENEWAL_OUT_OF_ORDER, "a renewal leaves the order of ends, so that other kept locks end late") \
	X(NUMBER_PAST_LIMIT, "a request gets the lock by a number that others take for less than zero") \
	X(GRANT_AT_ANY_NUMBER, "a znode in a directory that was made on a guess counts as the first, whatever its number") \
	X(GRANT_AFTER_LOST_ANSWER, "so it does if the answer to its create is lost") \
	X(DIRECTORY_OF_KAZOO, "a directory goes although it is one of kazoo's clients") \
	X(COUNTER_STAYS, "a directory whose counter is at its end is not deleted when it is empty") \
	X(REVIVED_UNANSWERED, "a request whose create has no answer keeps its place although the end of its session may be lost") \
	X(VERDICT_TAKEN_BACK, "a verdict goes on although its own publication was taken back") \
	X(UNPINNED_TWICE, "an answer lets go of its lock twice")

#define ZKL_MUTANT_ENUM(name, text) ZKL_MUTANT_##name,
enum
{
	ZKL_MUTANT_LIST(ZKL_MUTANT_ENUM)
	ZKL_MUTANT_COUNT
};
extern int	zkl_mutant;			/* the one that is chosen */
#define ZKL_MUTANT(name) (zkl_mutant == ZKL_MUTANT_##name)

#endif							/* SIM_MUTANT_LIST_H */
