/*
 * model.h
 *	  A tiny ZooKeeper: one tree, connections of ours, and other clients that
 *	  act on the tree directly.
 *
 * What a connection sends waits in its inbox until the test lets the model
 * execute it, and what comes of it waits in its outbox until the test has it
 * delivered: both in order, as ZooKeeper does it.  Watches fire into the same
 * outbox.
 */
#ifndef ZKL_MODEL_H
#define ZKL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/manager.h"

#define MODEL_PASSED_OVER	(-2)	/* behind the operation that failed */
#define MODEL_NO_AUTH		(-102)
#define MODEL_NO_WATCHER	(-121)
#define MODEL_THROTTLED		(-127)

typedef struct ModelConnection ModelConnection;

/* Who is to be told, once, what happens to a node */
typedef struct ModelWatch
{
	struct ModelWatch *next;
	ModelConnection *who;
} ModelWatch;

typedef struct ModelNode
{
	struct ModelNode *next;
	struct ModelNode *prev;
	struct ModelNode *parent;
	char	   *path;
	char	   *data;
	size_t		data_length;
	ZklStat		stat;
	int32_t		version;
	uint32_t	counter;		/* of children ever created */
	uint32_t	nchildren;
	struct ModelNode *youngest; /* of the children */
	struct ModelNode *older;	/* of its siblings, */
	struct ModelNode *younger;	/* the nearest each way */
	bool		deleted;		/* by the transaction under way */
	ModelWatch *data_watch;
	ModelWatch *child_watch;
} ModelNode;

/* To undo a step of a transaction, or to tell of it when it has succeeded */
typedef struct ModelStep
{
	ZklMultiKind kind;
	ModelNode  *node;
	char	   *old_data;
	size_t		old_length;
	int64_t		old_mzxid;
} ModelStep;

/* What was sent, with copies of all strings */
typedef struct ModelRequest
{
	struct ModelRequest *next;
	ZklSendKind kind;
	uint64_t	tag;
	char	   *path;
	bool		watch;
	ZklMultiOp *multi;
	size_t		nmulti;
} ModelRequest;

/* An answer or an event */
typedef struct ModelMessage
{
	struct ModelMessage *next;
	bool		is_event;
	ZklEventKind event;
	char	   *path;			/* of an event */
	uint64_t	tag;
	ZklReply	reply;
} ModelMessage;

/* How often what has been executed */
typedef struct ModelCounts
{
	uint32_t	multis;			/* that succeeded or not, chains too */
	uint32_t	failed_multis;
	uint32_t	beats;			/* multis of one set and nothing else */
	uint32_t	creates;		/* in multis */
	uint32_t	deletes;		/* in multis and alone */
	uint32_t	containers;
	uint32_t	gets;
	uint32_t	lists;
	uint32_t	unwatches;
	uint32_t	syncs;
	uint32_t	largest_multi;
	uint64_t	listed_children;
	uint64_t	listed_bytes;	/* of their names */
} ModelCounts;

typedef struct Model
{
	ModelNode  *root;			/* head of a ring of all nodes */
	void	   *by_path;		/* tsearch() */
	int64_t		zxid;
	uint32_t	watches;		/* that are set */
	ModelCounts counts;
	int32_t		multi_rc;		/* what the next multi is answered instead */
	bool		multi_applied;	/* although it is executed */
	int32_t		single_rc;		/* what the next of single_kind on a path with */
	ZklSendKind single_kind;	/* single_path in it is answered instead */
	const char *single_path;
	uint32_t	singles;		/* or the next so many of these */
	const char *no_write;		/* parts of paths that our connections have no */
	const char *no_read;		/* right to */
	bool		ours;			/* a connection of ours is served */

	/* Told of all that gets into an outbox, if not NULL */
	void		(*noticed) (ModelConnection *connection);
} Model;

struct ModelConnection
{
	Model	   *zk;
	int64_t		session;		/* 0: none */
	uint32_t	watches;
	ModelRequest *inbox;
	ModelRequest **inbox_end;
	ModelMessage *outbox;
	ModelMessage **outbox_end;
	void	   *owner;			/* the test's */
};

extern void model_start(Model *zk);
extern void model_finish(Model *zk);

/* ---- other clients ---- */

extern ModelNode *model_find(const Model *zk, const char *path);

/*
 * Creates a node; "sequential" appends the number.  Returns 0 or ZooKeeper's
 * error; created may be NULL, or has room for the path.
 */
extern int32_t model_create(Model *zk, const char *path, bool sequential,
							int64_t owner, const char *data, char *created);

/* Creates a directory and its parents, as far as missing. */
extern ModelNode *model_mkdir(Model *zk, const char *path);
extern int32_t model_delete(Model *zk, const char *path);
extern int32_t model_set(Model *zk, const char *path, const char *data);
extern void model_expire(Model *zk, int64_t session);

/* ---- between model_tree.c and model.c ---- */

extern void *model_memory(size_t size); /* zeroed */
extern char *model_bytes(const char *bytes, size_t length);
extern char *model_string(const char *string);

/*
 * All or nothing.  Returns how many steps went well: n, if all did; then each
 * is to be told to those who watch.
 */
extern size_t model_transact(Model *zk, const ZklMultiOp *ops, size_t n,
							 int64_t owner, ModelStep *steps, int32_t *rc);
extern void model_tell(Model *zk, ModelStep *step);
extern void model_watch(ModelWatch **watches, ModelConnection *who);
extern bool model_unwatch(ModelWatch **watches, ModelConnection *who);
extern void model_emit(ModelConnection *connection, ZklEventKind kind,
					   const char *path);

/* ---- a connection ---- */

extern void model_open(ModelConnection *connection, Model *zk);
extern void model_connect(ModelConnection *connection, int64_t session);

/* Drops watches, and everything that is under way in either direction. */
extern void model_disconnect(ModelConnection *connection);
extern void model_send(ModelConnection *connection, const ZklAction *action);

/* Executes the oldest in the inbox; false: it is empty. */
extern bool model_serve(ModelConnection *connection);

/* Takes the oldest out of the outbox, or NULL; free it with the other. */
extern ModelMessage *model_receive(ModelConnection *connection);
extern void model_free_message(ModelMessage *message);

#endif							/* ZKL_MODEL_H */
