/*
 * oracle.h
 *	  What must never be seen, whatever happens.
 *
 * The oracle sees all: the head of the log, every server's memory, and true
 * time.  A rule that does not hold ends the seed.
 *
 * A hold counts from its grant until it is released or lost, as long as its
 * server's lease, by its server's clock, is of the same session and not over.
 */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include "foreign.h"
#include "host.h"

extern void oracle_begin(void);
extern void oracle_told_begin(void);	/* its part in oracle_told.c */

/*
 * A server has granted a lock; it has written to a node of its own; and its worker
 * has looked at everything.
 */
extern void oracle_told_grant(const Host *h, const Slot *s);
extern void oracle_told(const Host *h, const ZklUuid *uuid,
						const Effect *effect);
extern void oracle_told_all(const Host *h);

/* A transaction has been committed at the head of the log. */
extern void oracle_transaction(const Entry *entry);

/* The ensemble is wiped: what anybody holds is not the locks' fault. */
extern void oracle_wiped(void);

/* The ensemble has lost its latest transaction, and is about to undo it. */
extern void oracle_lost(const Entry *entry);

/*
 * Whether an operator has marked this znode of a contender.  If the mark is lost,
 * too, its server may still know of it.
 */
extern bool oracle_is_marked(Path *path);

/* A zklock server says that ZooKeeper has lost writes. */
extern void oracle_lost_writes(const Host *h);

/* oracle_marks.c: what is written to the nodes of contenders, and what it tells */
extern void oracle_marks(const Entry *entry);
extern void oracle_mark_lost(const Effect *effect);

/* The worker of a host is about to be given an answer. */
extern void oracle_read(Host *h, const Frame *frame);

/* A slot is asked to give its lock up; and whether it has yet to be. */
extern void oracle_asked(Host *h, int slot, int64_t zxid);
extern bool oracle_is_asked(Host *h, int slot);

/* Such a server says that somebody stands ahead of its hold. */
extern void oracle_revived(const Host *h, int slot);

/* ---- what hosts tell ---- */

extern void oracle_lease(Host *h);

/* Its session has been attached to, and may have got another timeout. */
extern void oracle_attached(const Host *h);

/* A worker leaves the session of the one before; a session is new. */
extern void oracle_left(Host *h);
extern void oracle_new_session(const Host *h);

/* A clock has another rate. */
extern void oracle_slewed(const Host *h);

/* The worker knows its session, and has carried out what follows. */
extern void oracle_session(Host *h);
extern void oracle_grant(Host *h, int slot);
extern void oracle_deny(Host *h, int slot);
extern void oracle_behind_cached(const Host *h, int slot, bool begins);
extern void oracle_fail(Host *h, int slot);
extern void oracle_free(Host *h, int slot);
extern void oracle_invariants(Host *h);

/* The worker has flushed. */
extern void oracle_kept(const Host *h);

/* ---- oracle_words.c: words, and who has heard them ---- */

extern void oracle_words_begin(void);
extern void oracle_word(const Host *h, const ZklUuid *znode);
extern void oracle_heard(Host *h, const ZklPeerMessage *word);

/* Its worker is gone, and with it what that has heard. */
extern void oracle_hears_nothing(const Host *h);

/*
 * Since when the worker of a host knows that a contender has departed; NEVER: it does
 * not.  It knows nothing of a copy in another lock.
 */
extern Time oracle_heard_at(const Host *h, const struct Contender *c);

/* A slot has been granted by a znode of its own. */
extern void oracle_word_holds(const Host *h, int slot);

/* ---- what backends tell ---- */

extern void oracle_taken(Host *h, int slot);

/* A try begins, or a session takes a lock; and the answer to a try is "false". */
extern void oracle_tries_look(int lock);
extern void oracle_false(const Host *h, int slot);

/* A session takes the cached lock of a slot: before, and if it now has it. */
extern void oracle_take(const Host *h, int slot);
extern void oracle_took(Host *h, int slot);

/* The holder of a slot is to be told that the lock is lost. */
extern void oracle_signal(const Host *h, int slot);
extern void oracle_commit(Host *h, int slot);

/* ---- oracle_promises.c: times that were told ---- */

extern void oracle_promises_begin(void);

/* Until then, by the host's clock, nobody else may get the lock. */
extern void oracle_promise(const Host *h, int slot, int64_t until);

/* Those who were told give it up, as of then; 0: now. */
extern void oracle_promise_ends(const Host *h, int slot, int64_t until);

/* A client gets a lock: whether that breaks a promise.  No host: it is no server. */
extern void oracle_promise_kept(int lock, ZklLockMode mode, const Host *h, uint64_t owner);

/* How many promises of a semaphore nobody holds any more */
extern uint32_t oracle_promises_left(int lock);

/* What somebody else's hand does is no fault of the locks. */
extern void oracle_promises_transaction(const Entry *entry);
extern void oracle_promises_void(void);

/* ---- what other clients tell ---- */

extern void oracle_foreign_hold(const Foreign *f);

/* All is quiet: nothing is left of anybody. */
extern void oracle_quiet(void);

#endif							/* SIM_ORACLE_H */
