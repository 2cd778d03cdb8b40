/*
 * tree.h
 *	  ZooKeeper's rules: a tree of znodes, transactions on it, and watches.
 *
 * There may be several copies of the tree.  The one at the head decides the
 * transactions; each of the others follows when it applies them.  A ZooKeeper
 * of one server needs the head only.
 *
 * A program has one tree, and one thread.
 */
#ifndef ZKL_MODEL_TREE_H
#define ZKL_MODEL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "watch.h"

#define HEAD	0				/* the copy that decides */

/* In a transaction: behind the operation that failed */
#define RC_PASSED_OVER	(-2)

/* A node as one of the copies has it */
typedef struct Node
{
	bool		exists;
	bool		container;
	int32_t		counter;		/* of the next sequential child */
	int32_t		nchildren;
	ZklStat		stat;
	const char *data;
	size_t		length;
	Watch	   *data_watch;
	Watch	   *child_watch;
} Node;

/* A path, whether there is a node of it or not, and what each copy has */
typedef struct Path
{
	const char *text;
	const char *name;			/* its last part */
	uint32_t	hash;
	int			copies;			/* that have it */
	struct Path *parent;
	struct Path *in_bucket;
	struct Path *children;		/* that are in any copy, the newest first */
	struct Path *sibling;
	struct Path *sibling_before;
	struct Path *all;			/* the next older that is in any copy */
	struct Path *all_before;	/* the next newer */
	struct Contender *contender;	/* the test's: what its name says */
	Node		node[];
} Path;

typedef enum OpKind
{
	OP_SET,
	OP_DELETE,
	OP_CREATE,
	OP_CHECK					/* that it exists */
} OpKind;

typedef struct Op
{
	OpKind		kind;
	const char *path;
	const char *data;
	size_t		length;
	int32_t		version;
	bool		sequential;
	bool		ephemeral;
	bool		container;
	bool		denied;			/* who asks has no right to write there */
} Op;

/* What a transaction does to one node */
typedef struct Effect
{
	OpKind		kind;
	Path	   *path;
	bool		container;
	int64_t		owner;			/* of what is created or was deleted */
	int32_t		counter;		/* CREATE: the parent's, from then on */
	const char *data;
	size_t		length;
	Node		before;			/* at the head */
	int32_t		counter_before; /* of the parent */
} Effect;

/* One that fails takes a zxid and does nothing. */
typedef struct Transaction
{
	int64_t		zxid;
	int64_t		session;		/* whose; 0: nobody's */
	Effect	   *effects;
	size_t		neffects;
	ZklReply	reply;
} Transaction;

/* Forgets everything, and begins with so many copies beside the head. */
extern void tree_begin(int copies);

/* Gives all memory back. */
extern void tree_finish(void);

/* ---- paths ---- */

extern Path *tree_path(const char *text);	/* never NULL */

/* The node that a copy, or the head, has at a path, or NULL */
extern Node *tree_copy(const char *text, int copy);
extern Node *tree_find(const char *text);

/* Paths that are in any copy: */
extern Path *tree_children(const char *text);	/* and on by ->sibling */
extern Path *tree_newest(void); /* and on by ->all */
extern Path *tree_oldest(void); /* and on by ->all_before */

/* Paths of another generation are no more. */
extern uint64_t tree_generation(void);

/* ---- transactions ---- */

/*
 * Decides a transaction, whose zxid and session are set, at the head: all or
 * nothing.  Fills in effects and reply.  "single": no multi, so that its answer
 * has no results.
 */
extern void tree_decide(Transaction *t, const Op *ops, size_t n, bool single);

/* Another copy follows; its watches fire. */
extern void tree_apply(int copy, const Transaction *t);

/*
 * The latest transaction is no more, neither at the head nor in the copies that
 * have applied it.  Nobody watches, and nobody is told.
 */
extern void tree_revert(const Transaction *t, const bool *applied);

/* Only the head is there: its watches fire, and what is gone is given back. */
extern void tree_settle(Transaction *t);

/* Deletes of all ephemeral nodes of a session, for tree_decide */
extern Op  *tree_end_of_session(int64_t session, size_t *n);

/* All watches that somebody has set on a copy are no more. */
extern void tree_forget_watcher(int copy, Watcher *who);

#endif							/* ZKL_MODEL_TREE_H */
