/*
 * hooks.h
 *	  What the core tells its wings, and asks them.
 *
 * A wing is a part of a manager that the core does not know: the host passes its
 * table of hooks along (ZklConfig).  A hook may be NULL.  It gets what the wing's
 * "begin" returned.  A wing sends operations of its own in "send" only.
 */
#ifndef ZKL_CORE_HOOKS_H
#define ZKL_CORE_HOOKS_H

#include "core/state.h"

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

#endif							/* ZKL_CORE_HOOKS_H */
