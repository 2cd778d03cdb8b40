/*
 * predecessor.h
 *	  Who is ahead of a request that waits: the question to the worker, and the
 *	  answer in words.
 */
#ifndef ZKL_BACKEND_PREDECESSOR_H
#define ZKL_BACKEND_PREDECESSOR_H

#include "shared/slot.h"
#include "storage/dsm.h"

typedef struct ZklPredecessor
{
	int			asked;			/* the slot of the question; -1: there is none */
	int			under_way;		/* how many requests were, before it */
	dsm_segment *segment;		/* for the answer */
} ZklPredecessor;

extern void zkl_predecessor_init(ZklPredecessor *ahead);

/*
 * Asks who is ahead of the request in a slot of this session.  "reads": a znode that
 * the worker does not know is read from ZooKeeper.  False: there is no slot or no
 * memory for that now.
 */
extern bool zkl_predecessor_ask(ZklPredecessor *ahead, int slotno, const char *name, bool reads);

/* Whether the worker has answered, or cannot */
extern bool zkl_predecessor_is_answered(const ZklPredecessor *ahead);

/*
 * Who has the lock, who is nearest in the way, and how many are ahead, in sentences
 * that a client can show; NULL: not known, or not yet.  "names": with the users and
 * applications, and the znodes of other clients.
 */
extern const char *zkl_predecessor_words(const ZklPredecessor *ahead, const char *name, bool names);

/* Forgets question and answer. */
extern void zkl_predecessor_forget(ZklPredecessor *ahead);

#endif							/* ZKL_BACKEND_PREDECESSOR_H */
