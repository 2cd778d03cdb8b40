/*
 * host.h
 *	  What the core wants of its host, and what it tells its wings.
 */
#ifndef ZKL_CORE_HOST_H
#define ZKL_CORE_HOST_H

#include "core/state.h"

/* ---- arena: memory that is given back all at once ---- */

/* Aligned to 16; lives until the arena is cleared. */
extern void *zkl_arena_alloc(ZklManager *m, ZklArena *arena, size_t size);

/* Gives it all back, but for one piece for the next use; or all of it. */
extern void zkl_arena_free(ZklManager *m, ZklArena *arena);

/* ---- actions: the actions for the host, in order ---- */

/*
 * Adds an action, all zero but its kind; the pointer is good until the next.
 */
extern ZklAction *zkl_actions_add(ZklManager *m, ZklActionKind kind);

/* Memory for an action, until the actions are cleared; aligned to 16. */
extern char *zkl_actions_text(ZklManager *m, size_t size);
extern char *zkl_actions_join(ZklManager *m, const char *a, const char *b,
							  const char *c);

/* Forgets all actions and their strings, and gives the memory back. */
extern void zkl_actions_clear(ZklManager *m);
extern void zkl_actions_free(ZklManager *m);

/* ---- operations: the operations that are under way ---- */

/* For a manager with nothing but its config, and at its end. */
extern void zkl_operations_init(ZklManager *m);
extern void zkl_operations_free(ZklManager *m);

/*
 * Sends another operation.  Its lock, if any, is pinned: the lock stays until
 * the caller has taken the answer and unpins it.  A read counts in the window
 * of reads.
 */
extern ZklAction *zkl_operations_send(ZklManager *m, ZklOpKind kind,
									  ZklLock *lock, ZklRequest *request,
									  ZklSendKind send, const char *path);
extern void zkl_operations_read(ZklManager *m, ZklOpKind kind, ZklLock *lock,
								ZklRequest *request, ZklSendKind send,
								const char *path, bool watch);

/* The operation under way with this tag, or NULL */
extern ZklOp *zkl_operations_find(const ZklManager *m, uint64_t tag);

/* Whether the window has room for more reads */
extern bool zkl_operations_may_read(const ZklManager *m);

/* Ends the operation with this tag, and copies it. False: there is none. */
extern bool zkl_operations_end(ZklManager *m, uint64_t tag, ZklOp *op);

/*
 * No operation under way will be answered: ends the first one from number
 * *next on.  False: there is none.
 */
extern bool zkl_operations_abandon(ZklManager *m, uint32_t *next, ZklOp *op);

/* The work that an ended operation was for is done. */
extern void zkl_operations_unpin(ZklLock *lock);

/* A number that is larger than those of all operations so far */
extern uint64_t zkl_operations_next_order(ZklManager *m);

/* ---- hooks: what the core tells its wings, and asks them ---- */

/*
 * A wing is a part of a manager that the core does not know: the host passes its
 * table of hooks along (ZklConfig).  A hook may be NULL.  It gets what the wing's
 * "begin" returned.  A wing sends operations of its own in "send" only.
 */

struct ZklDump;

struct ZklWing
{
	/* The names of its kinds of operations, from ZKL_OP_WING on */
	const char *const *operations;

	/* A manager that knows nothing yet; its end */
	void	   *(*begin) (ZklManager *m);
	void		(*end) (void *wing);

	/* ---- requests ---- */

	void		(*began) (void *wing, ZklRequest *r, const ZklDemand *demand);

	/* The host has news of it: NEWS. */
	void		(*told) (void *wing, ZklRequest *r, const void *news);

	/* It waits in a queue from now on; and no longer. */
	void		(*queued) (void *wing, ZklRequest *r);
	void		(*waited) (void *wing, ZklRequest *r);

	/*
	 * Nobody waits for its owner because of its znode: that leaves the queue,
	 * is broken or kept, or gets another owner.
	 */
	void		(*hold_ended) (void *wing, const ZklRequest *r);

	/* ---- ZooKeeper ---- */

	void		(*disconnected) (void *wing);
	void		(*session_lost) (void *wing);

	/* It has lost writes that it had acknowledged. */
	void		(*writes_lost) (void *wing);

	/* The answer to an operation of a wing's */
	void		(*reply) (void *wing, const ZklOp *op, const ZklReply *reply);

	/* ---- a flush ---- */

	/* All locks are decided, and no batch is sent yet. */
	void		(*decide) (void *wing);

	/* Behind all else */
	void		(*send) (void *wing);

	/* When to flush at the latest; -1: no need. */
	int64_t		(*timer) (const void *wing);

	/* ---- the janitor ---- */

	/* There is a znode whose name begins with a dot. */
	void		(*found) (void *wing, const char *path);

	/*
	 * Whether a znode of this name is one of its kind that it does not know
	 * of, nor will: if it is of our session, it is deleted
	 */
	bool		(*disowns) (const void *wing, const char *name);

	/* ---- words ---- */

	/*
	 * Whether others may read something in ZooKeeper that is named by the id
	 * of a znode, and tells of its holder
	 */
	bool		(*may_tell) (const void *wing, const ZklUuid *uuid);

	/* ---- for people and tests ---- */

	void		(*dump) (const void *wing, const struct ZklDump *dump);
	const char *(*check) (const void *wing);
};

/* Calls a hook of all wings. */
#define ZKL_HOOKS(m, hook, ...) \
	do { \
		const ZklWingState *w_; \
\
		for (w_ = (m)->wings; w_->wing != NULL; w_++) \
		{ \
			if (w_->wing->hook != NULL) \
				w_->wing->hook(w_->state, ##__VA_ARGS__); \
		} \
	} while (0)

/* For a manager that is otherwise complete, and at its end. */
extern void zkl_hooks_begin(ZklManager *m);
extern void zkl_hooks_end(ZklManager *m);

/* What the wings say together */
extern int64_t zkl_hooks_timer(const ZklManager *m);
extern bool zkl_hooks_disown(const ZklManager *m, const char *name);
extern bool zkl_hooks_may_tell(const ZklManager *m, const ZklUuid *uuid);

/* The state of this wing; NULL: the manager has no such wing. */
extern void *zkl_hooks_find(const ZklManager *m, const ZklWing *wing);

/* ---- memory: the host's memory ---- */

static inline void *
zkl_memory_alloc(ZklManager *m, size_t size)
{
	return m->config.memory.alloc(m->config.memory.context, size);
}

static inline void
zkl_memory_release(ZklManager *m, void *pointer)
{
	m->config.memory.release(m->config.memory.context, pointer);
}

static inline void
zkl_memory_make_table(ZklManager *m, ZklTable *table, size_t elements)
{
	size_t		n = zkl_table_size(elements);

	zkl_table_init(table, zkl_memory_alloc(m, n * sizeof(ZklList)), n);
}

#endif							/* ZKL_CORE_HOST_H */
