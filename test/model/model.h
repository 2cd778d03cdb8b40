/*
 * model.h
 *	  A ZooKeeper of one server: connections of ours, and other clients that
 *	  act on the tree directly.
 *
 * What a connection sends waits in its inbox until the test lets the model
 * execute it, and what comes of it waits in its outbox until the test has it
 * delivered: both in order, as ZooKeeper does it.  Watches fire into the same
 * outbox.
 */
#ifndef ZKL_MODEL_MODEL_H
#define ZKL_MODEL_MODEL_H

#include "message.h"

#define MODEL_THROTTLED		(-127)

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
	int64_t		zxid;
	ModelCounts counts;
	int32_t		multi_rc;		/* what the next multi is answered instead */
	bool		multi_applied;	/* although it is executed */
	int32_t		single_rc;		/* what the next of single_kind on a path with */
	ZklSendKind single_kind;	/* single_path in it is answered instead */
	const char *single_path;
	uint32_t	singles;		/* or the next so many of these */
	const char *no_write;		/* parts of paths that our connections have no */
	const char *no_read;		/* right to */
} Model;

typedef struct ModelConnection
{
	Watcher		watcher;		/* first, to be found by it */
	Model	   *zk;
	int64_t		session;		/* 0: none */
	Request    *inbox;
	Request   **inbox_end;
	Frame	   *outbox;
	Frame	  **outbox_end;

	/* Told of all that gets into the outbox, if not NULL */
	void		(*noticed) (struct ModelConnection *connection);
	void	   *owner;			/* the test's */
} ModelConnection;

extern void model_start(Model *zk);

/* ---- other clients: they return 0 or ZooKeeper's error ---- */

/*
 * Creates a node; "sequential" appends the number.  created may be NULL, or has
 * room for the path.
 */
extern int32_t model_create(Model *zk, const char *path, bool sequential,
							int64_t owner, const char *data, char *created);

/* Creates a directory and its parents, as far as missing. */
extern void model_mkdir(Model *zk, const char *path);
extern int32_t model_delete(Model *zk, const char *path);
extern int32_t model_set(Model *zk, const char *path, const char *data);
extern void model_expire(Model *zk, int64_t session);

/* ---- a connection ---- */

extern void model_open(ModelConnection *connection, Model *zk);
extern void model_connect(ModelConnection *connection, int64_t session);

/* Drops watches, and everything that is under way in either direction. */
extern void model_disconnect(ModelConnection *connection);
extern void model_send(ModelConnection *connection, const ZklAction *action);

/* Executes the oldest in the inbox; false: it is empty. */
extern bool model_serve(ModelConnection *connection);

/* Takes the oldest out of the outbox, or NULL; message_free_frame is the caller's. */
extern Frame *model_receive(ModelConnection *connection);

#endif							/* ZKL_MODEL_MODEL_H */
