/*
 * spec.h
 *	  What a reader of traces knows of servers: the state machine that rules.c has the
 *	  rules of.
 *
 * It follows the argument (src/ARGUMENT.md) and the lines of src/observe/trace.h, and
 * includes nothing of src/: so it is a second reading of both.  It knows only what the
 * lines say.
 */
#ifndef SPEC_SPEC_H
#define SPEC_SPEC_H

#include "line.h"
#include "validate.h"

#define MOST_REQUESTS	4096
#define NUMBER_LIMIT	(((int64_t) 1 << 31) - ((int64_t) 1 << 20))
#define NO_NUMBER		INT64_MAX
#define MOST_PATH		700

#define RC_OK			0
#define RC_NONODE		(-101)
#define RC_NOAUTH		(-102)
#define RC_BADVERSION	(-103)
#define RC_NODEEXISTS	(-110)

typedef struct Request Request;
typedef struct Lock Lock;
typedef struct Server Server;

/* ---- what is known of ZooKeeper ---- */

/* A contender of another server or client */
typedef struct Child
{
	struct Child *next;
	const char *name;
	Name		parsed;
} Child;

typedef enum NodeState
{
	NODE_NAMED,					/* it has an id, and nothing was sent */
	NODE_SENT,
	NODE_UNSETTLED,				/* the answer is lost */
	NODE_EXISTS,				/* or is to be deleted */
	NODE_GONE
} NodeState;

/* A znode of ours, by its id */
typedef struct Node
{
	struct Node *next;
	char		uuid[UUID_TEXT + 1];
	Lock	   *lock;
	Request    *request;		/* whose it is */
	NodeState	state;
	bool		exclusive;
	int64_t		seq;			/* -1: not known */
	int64_t		czxid;			/* 0: not known on this connection */
	int			index;			/* in its batch */
	bool		may_exist[2];	/* under a reader's name, a writer's */
	bool		downgrade_sent;
	bool		downgrade_unsettled;
	uint64_t	seen;			/* order of the last listing that shows it */
	uint64_t	seen_on;		/* the last connection on which it was seen */
	bool		watched;
	int64_t		unmarked;		/* it was so then; from then on its watch
								 * tells, or nobody knows */
	bool		marked;			/* an operator breaks it */
	bool		going;			/* it is no place in the queue any more */
	bool		overtaken;		/* others may have got the lock */
	bool		unreadable;
	int64_t		asked;			/* zxid of the last question that was read */
	bool		word;			/* it supports no hold, and that may be told */
} Node;

/* A name that a watch was set on */
typedef struct Watch
{
	struct Watch *next;
	const char *path;
	bool		plain;			/* a zklock writer that does not go on as a
								 * reader */
	bool		cached;
} Watch;

typedef struct Departed
{
	struct Departed *next;
	char		uuid[UUID_TEXT + 1];
} Departed;

/* What a try has read */
typedef struct Probe
{
	uint64_t	submits;		/* tries up to this one */
	bool		fresh;			/* a sync ahead of it was answered */
	bool		answered;
	Child	   *children;
	bool		mark_read;
	bool		cached;
} Probe;

struct Lock
{
	Lock	   *next;
	const char *path;
	Dialect		dialect;
	Child	   *others;			/* who may be in the queue, as far as known */
	int64_t		known;			/* all with a number below this one are known */
	uint32_t	strangers;		/* children that are no contenders */
	bool		tainted;
	uint64_t	tainted_at;		/* order */
	bool		base_known;		/* our last create */
	int64_t		base_seq;
	int64_t		base_zxid;
	bool		directory_watched;
	int64_t		directory_czxid;
	Watch	   *watches;		/* on contenders ahead */
	bool		children_watched;
	uint64_t	alone_at;		/* order of a listing under that watch that
								 * shows nobody else; 0: none does */
	Departed   *departed;
	Probe		probe;
	bool		number_ended;
	Request    *offered;
	bool		must_recall;
	int64_t		granted[2];		/* the greatest token of readers, of writers */
	uint64_t	granted_to[2];
};

/* ---- requests ---- */

typedef enum Demand
{
	UNUSED,
	WAITING,
	GRANTED,
	ANSWERED,
	RELEASED
} Demand;

struct Request
{
	uint32_t	id;
	Demand		demand;
	bool		exclusive;
	uint32_t	max;
	Lock	   *lock;
	uint64_t	owner;
	bool		nobodys;		/* the core says so */
	bool		disowned;		/* it must be so */
	bool		timed_out;
	bool		together;
	bool		plain;
	bool		guard;
	bool		kept;			/* a hold without a holder */
	int64_t		kept_until;
	bool		epilogue;
	bool		stays;			/* for those that lean on it */
	Demand		then;
	Request    *cover;			/* whose znode it shares */
	bool		broken;			/* lost, and its znode still there */
	bool		doubt;			/* the end of its session may be lost */
	bool		must_lose;
	bool		behind_cached;
	int64_t		token;
	int64_t		told_zxid;
	uint64_t	submitted;
	bool		unproved;		/* granted, and not yet compared with the log */
	int64_t		unproved_since;
	Node	   *node;
};

/* ---- what is under way ---- */

typedef struct Write
{
	char		kind[20];
	const char *path;
	int64_t		version;
	Node	   *node;
	int32_t		rc;				/* its result */
	const char *made;			/* the path that a create came to; NULL: none */
} Write;

typedef struct Op
{
	struct Op  *next;
	int64_t		tag;
	char		what[24];		/* "for" */
	char		send[24];
	const char *path;
	Lock	   *lock;
	Node	   *node;
	bool		watch;
	uint64_t	order;
	int64_t		sent_at;
	uint64_t	submits;
	int64_t		version;		/* BATCH: that its beat expects */
	Write	   *writes;
	int			nwrites;
	int			most_writes;
} Op;

typedef struct Text
{
	struct Text *next;
	const char *text;
	bool		unsure;			/* a write to it has no answer */
} Text;

/* An answer, with its results and children */
typedef struct Answer
{
	Op		   *op;				/* NULL: there is none */
	int32_t		rc;
	int			nresults;
	int			culprit;		/* the first that failed; -1: none */
	int64_t		czxid;
	int64_t		mzxid;
	int64_t		version;
	int64_t		owner;
	bool		breaking;
	bool		downgrading;
	bool		cached;
	bool		revoking;
	bool		has_children;
	Child	   *children;		/* in no order, not parsed */
} Answer;

typedef enum Connection
{
	DOWN,
	OPENING,
	PROVING,
	READY
} Connection;

#define MOST_CONTACTS	32768	/* in less than a third of a timeout */

typedef struct Contact
{
	int64_t		sent_at;
	int64_t		answered_at;
} Contact;

struct Server
{
	Server	   *next;
	int			id;
	bool		known;			/* the beginning of its worker was seen */
	char		root[200];
	int64_t		tokens;			/* of each transaction */
	int64_t		now;
	int64_t		clock;			/* what its clock shows ... */
	int64_t		seen_at;		/* ... at this time of all servers */
	char		event[24];		/* the last one */

	/* session and connection */
	Connection	state;
	uint64_t	connection;		/* so many */
	int64_t		session;		/* 0: none */
	int64_t		generation;
	int64_t		timeout;		/* us */
	int64_t		begun;
	int64_t		zxid;			/* the greatest that was believed */
	int64_t		unbelieved;
	bool		lapsed;			/* the lease had ended when it connected */
	bool		peers;
	uint64_t	order;
	uint64_t	proved_at;		/* order: reads from before tell nothing */
	uint64_t	submits;

	/* the chain of heartbeat nodes */
	const char *beat;			/* NULL: none */
	const char *next_beat;		/* is being made */
	Text	   *beats;			/* all names that were used, or may be */
	bool		chain;			/* batches may name it */
	bool		checked;
	int64_t		version;		/* that the next batch expects */
	int64_t		acknowledged;	/* version */
	bool		refused;		/* a batch: those behind it, too */

	/* the lease */
	int64_t		lease;
	int64_t		lease_bound;	/* to which this event may extend it */
	int64_t		lease_most;		/* that a new connection allows; 0: any */
	bool		lost_now;		/* a loss was told in this event */
	bool		lost_writes;	/* the heartbeat node says so, in this event */
	Contact    *contacts;		/* a ring */
	uint32_t	ncontacts;
	uint32_t	taken;			/* of these, into "heard" */
	int64_t		heard;			/* the latest contact that counts */
	int64_t		acknowledged_at;	/* when the last good batch was sent */
	bool		must_reconnect;
	const char *wrong;			/* in ZooKeeper's log, as the last answer
								 * tells */

	Op		   *ops;			/* oldest first */
	Op		   *sending;		/* whose writes are being told */
	Answer		answer;
	bool		answering;
	Lock	   *locks;
	Node	   *nodes[256];
	Text	   *published;		/* that may exist */
	Text	   *publications;	/* all names that were used */
	Text	   *asks;
	uint32_t	nrequests;
	Request    *requests;		/* MOST_REQUESTS of them */

	/* what the line is about */
	Request    *r;
	Op		   *op;
};

/* ---- store.c ---- */

extern void *spec_take(size_t size);
extern const char *spec_copy(const char *text);
extern Server *spec_servers(void);
extern Server *spec_server(int id);
extern void spec_server_anew(Server *s);
extern void spec_request_clear(Request *r);
extern Lock *spec_lock(Server *s, const char *path, Dialect dialect);
extern Node *spec_node(Server *s, const char *uuid);
extern Node *spec_node_new(Server *s, const char *uuid);

/* The znode of ours at this path; NULL: it is none. */
extern Node *spec_node_at(Server *s, const char *path);
extern bool spec_is_child(const Lock *lock, const char *path, const char **child);
extern Op  *spec_op(Server *s, int64_t tag);
extern void spec_op_end(Server *s, Op *op);
extern Watch *spec_watch(const Lock *lock, const char *path);
extern void spec_watch_end(Lock *lock, const char *path);
extern bool spec_has_text(const Text *list, const char *text);
extern void spec_add_text(Text **list, const char *text);
extern void spec_drop_text(Text **list, const char *text);
extern void spec_doubt_text(Text *list, const char *text);
extern void spec_drop_doubted(Text **list);
extern bool spec_departed(const Lock *lock, const Child *c);

/* ---- what follows from others ---- */

extern bool spec_conflict(bool a, bool b);
extern bool spec_same_owner(const Request *a, const Request *b);
extern bool spec_in_queue(const Request *r);
extern bool spec_holds(const Request *r);
extern Request *spec_leaning(const Server *s, const Request *r);
extern Request *spec_covering(const Server *s, const Request *r, int64_t token);
extern Node *spec_node_of(const Request *r);

/* ---- events.c, answers.c, reads.c, actions.c: what changes ---- */

typedef void (*Change) (Server *s, const Line *line);

extern void spec_down(Server *s);
extern void spec_gone(Server *s, Node *node);
extern void spec_gone_soon(Server *s, Node *node);
extern void spec_name_gone(Server *s, Node *node, const char *path);
extern void spec_queue_gone(Server *s, const Lock *lock, int64_t from);
extern void spec_own_read(Server *s, Op *op, const Answer *a);
extern void spec_lock_read(Server *s, Op *op, const Answer *a);
extern bool spec_may_tell(const Server *s, const Request *r);
extern void spec_forget_all(Server *s);
extern void spec_release(Server *s, Request *r);
extern void spec_due(Server *s);
extern void spec_answer_over(Server *s);

#define CHANGES(X) \
	X(begin) X(connected) X(disconnected) X(session_lost) X(submit) X(time_out) \
	X(nothing) X(release) X(overdue) X(reply) X(result) X(child) X(node_event) X(peers) \
	X(asked_for) X(heard) X(recalled) X(flush) X(lease) X(send) X(write) X(record) X(grant) \
	X(cover) X(blocked) X(behind_cached) X(deny) X(fail) X(lose) X(asks) X(free) \
	X(lost_writes) X(reconnect) X(offer)
#define DECLARE(name) extern void then_##name(Server *s, const Line *line);
CHANGES(DECLARE)

/* ---- when.c: what is wanted ---- */

typedef bool (*When) (Server *s, const Line *line);

/* What makes a condition fail, for people */
extern void spec_because(const char *format,...)
			__attribute__((format(printf, 1, 2)));
extern const char *spec_why(void);

/* ---- fleet.c: several servers, and ZooKeeper's log ---- */

extern void fleet_begin(void);
extern void fleet_log(const Line *line);

/* What breaks a rule, if the line that was just read does; NULL: nothing */
extern const char *fleet_grant(const Server *s, Request *r, int64_t at);
extern const char *fleet_batch(Server *s, int64_t sent_at, int64_t zxid);

#endif							/* SPEC_SPEC_H */
