/*
 * ensemble.h
 *	  A model of a ZooKeeper ensemble, with exactly ZooKeeper's promises.
 *
 * There is one log of committed transactions.  The tree at its head is what
 * the leader decides by; each server has applied a part of the log, answers
 * reads from that, and holds the watches of its connections.  A write goes to
 * the leader in the order of its connection, is decided there, and is answered
 * when the connection's server has applied it.  A server that is cut off goes
 * on answering reads from what it has, and never a write.
 */
#ifndef SIM_ENSEMBLE_H
#define SIM_ENSEMBLE_H

#include "../model/message.h"
#include "base.h"
#include "clocks.h"

#define MAX_SERVERS	4
#define MAX_CONNS	48

/* A server's copy of the tree */
#define COPY(server)	((server) + 1)

typedef struct Conn Conn;

/* A transaction of the log */
typedef struct Entry
{
	Transaction tx;
	int64_t		ends;			/* the session that it ends, or 0 */
	bool		by_vandal;		/* somebody with other tools did it */
	Conn	   *origin;			/* whom to answer */
	uint64_t	origin_serial;
	Request    *request;
} Entry;

/* ---- servers ---- */

typedef enum ServerState
{
	SERVER_JOINED,
	SERVER_CUT,					/* off, and does not know or say so */
	SERVER_DOWN
} ServerState;

typedef struct Server
{
	ServerState state;
	bool		deposed;		/* CUT: it was the leader, and thinks it is */
	size_t		applied;		/* entries of the log */
	Time		apply_at;
	size_t		apply_to;		/* then, so many at least */
	Time		report_at;		/* answers the leader's next ping */
	Time		reported_at;	/* has answered the last one */
	struct Report *reports;		/* such answers, on their way */
	Time		paused_until;	/* no traffic with the leader before that */
} Server;

typedef struct Session
{
	int64_t		id;
	bool		alive;
	bool		revived;		/* its end was lost */
	Time		revived_at;		/* the last time */
	int			host;			/* of a zklock server, or -1 */
	int			foreign;		/* of another client, or -1 */
	Time		timeout;
	Time		longest;		/* that it ever was */
	Time		ends_at;		/* at the earliest, on the leader's clock */
	Time		may_end_at;		/* the same in true time */
	Time		expires_at;
	bool		heard[MAX_SERVERS]; /* since the server's last report */
	bool		killed;			/* somebody closed it from elsewhere */
	size_t		made_at;		/* so long was the log then */
	int			rewinds;		/* and so often it had become shorter */
	Time		deposed_at;		/* when a deposed leader last answered it */
} Session;

typedef struct Ensemble
{
	int			nservers;
	Server		servers[MAX_SERVERS];
	int			leader;			/* -1: none */
	Time		elect_at;		/* the next one is elected, while there is
								 * none */
	int			rewinds;		/* how often the log became shorter */
	Time		rewound_at;		/* and when it last did */
	int64_t		zxid;
	Entry	  **log;
	size_t		nlog;
	size_t		log_room;
	Session    *sessions;		/* id - FIRST_SESSION is the index */
	int			nsessions;
	int			session_room;
	int			first_alive;	/* those before have ended */
	int			next_session;	/* to expire; -1: not known */
	Time		timeout;		/* usual, of a session */
	Time		granted;		/* what a session gets that connects now */
	Time		shortest;		/* that any ever got or may get */
	Time		longest;
	Time		tick;
	bool		in_ticks;		/* sessions end at ticks only */
	int			observer;		/* a server that follows another; -1: none */
	int			master;			/* a follower, or -1: the leader */
	Clock		leader_clock;
	Time		net;			/* usual delay of a frame */
	Time		lag;			/* usual delay of a follower */
	Time		decide;			/* usual time to commit */
	Time		late;			/* how late a lost connection's write may be */
	bool		late_after_move;	/* even after the session has moved */
	Conn	   *conns;			/* MAX_CONNS */
	uint64_t	serial;
	struct Late *late_writes;
	Time		reap_at;
	Time		reap_every;		/* NEVER: the reaper sleeps */
	Time		refuses_until;	/* servers answer with errors, once in ... */
	int			refuses_one_in; /* ... so many requests */
} Ensemble;

#define FIRST_SESSION	INT64_C(0x10000)

extern Ensemble ens;

extern void ensemble_begin(void);
extern Time ensemble_due(void);
extern void ensemble_step(void);

/* Commits on nobody's behalf (an operator, the reaper, a vandal). */
extern int32_t ensemble_write(const Op *op, bool by_vandal);

/* Decides a transaction; then it goes into the log. */
extern Entry *ensemble_commit(int64_t session, const Op *ops, size_t n,
							  bool single, bool by_vandal);
extern void ensemble_append(Entry *entry);
extern Session *session_make(void);
extern void ensemble_end_session(Session *session, bool by_vandal);

/* The end of a session is lost, and it goes on. */
extern void session_revive(int64_t id);

/* The log is no longer than that: sessions that were made later are lost. */
extern void sessions_lose(size_t nlog);
extern Session *session_find(int64_t id);
extern void session_touch(Session *session);

/* The leader's clock has another rate from now on, and they end by that. */
extern void sessions_slew(int ppm);

/* It is attached to, and gets the timeout that servers grant now. */
extern void session_negotiate(Session *session);
extern void server_hears(int server, int64_t session);

/*
 * A server answers the leader's ping: it tells whom it has heard of since it
 * last did.  The answer is under way for a while; in the order of the wire, it
 * comes before what arrived at that server later.
 */
extern void sessions_report(int server);
extern Time sessions_reports_due(int server);

/* The leader handles the answers that were sent until then, or are due. */
extern void sessions_take_reports(int server, Time sent_until);
extern void sessions_lose_reports(int server);

/* How long a server may be held up at most, as S1 assumes it; a time */
extern Time sessions_longest_pause(int server);
extern Session *sessions_next_to_expire(void);	/* or NULL */

/* ---- faults ---- */

/* A server learns all that the leader has decided. */
extern void ensemble_sync(int i);

extern void ensemble_elect(int next);	/* -1: any but the old leader */
extern void ensemble_lose_leader(bool deposed, Time until);
extern void ensemble_cut(int server, bool down);
extern void ensemble_join(int server);
extern void ensemble_wipe(void);

/*
 * A leader fails, and the next one does not have the latest n transactions,
 * although ZooKeeper promises that (ZOOKEEPER-4643, -4646, -4925).
 */
extern void ensemble_lose_writes(size_t n);

/*
 * The error with which a request is answered now, or ZKL_RC_OK; and whether an answer
 * is one of these errors, or of those of ZooKeeper's client.
 */
#define CLIENT_SENDS_NOTHING	(-8)
#define CLIENT_LACKS_MEMORY		(-5)
extern int32_t ensemble_refuses(void);
extern bool ensemble_is_refusal(int32_t rc);

/* ---- connections ---- */

typedef enum ClientKind
{
	CLIENT_HOST,
	CLIENT_FOREIGN
} ClientKind;

struct Conn
{
	Watcher		watcher;		/* first, to be found by it */
	bool		open;
	int			id;
	uint64_t	serial;
	int			server;
	int64_t		session;
	ClientKind	client_kind;
	int			client;
	Request    *sent;			/* on their way to the server */
	Request   **sent_end;
	Time		last_arrival;
	Request    *pipe;			/* arrived, not yet answered */
	Request   **pipe_end;
	Time		commit_at;		/* the next write of the pipe */
	Frame	   *out;			/* on their way to the client */
	Frame	  **out_end;
	Time		last_delivery;
	Time		frozen_until;	/* nothing goes through before that */
	Time		ping_at;
	Time		heard_at;		/* by the client */
};

typedef enum AttachResult
{
	ATTACH_DONE,
	ATTACH_FAILED,
	ATTACH_EXPIRED
} AttachResult;

/* session 0: a new one.  seen: what the client has seen of the log. */
extern AttachResult conn_attach(int server, int64_t session, size_t seen,
								ClientKind kind, int client, Conn **conn);
extern void conn_send(Conn *c, Request *request);

/*
 * Ends a connection.  What was on its way to the server arrives in part, and
 * may take effect late; "deliver": so does what was on its way to the client.
 */
extern void conn_cut(Conn *c, bool deliver);
extern void conn_answer(Conn *c, const Entry *entry);
extern Time conn_due(const Conn *c);
extern void conn_step(Conn *c);

/* Decides one request of a session.  NULL: it is none any longer. */
extern Entry *conn_decide(int64_t session, Request *request);

/*
 * Writes of connections that are gone: the first ones of these may be carried
 * out after *at, which is put off to that.
 */
extern void late_keep(const Conn *c, Request *requests, Time *at);

/*
 * Once the leader has seen a session move, it refuses what comes for it over
 * the old way.
 */
extern void late_forget(int64_t session);
extern Time late_due(void);
extern Time *late_first(void);	/* of those that are due; NULL: none is */
extern void late_step(void);

/* The server closes all its connections, or one client is told it is cut. */
extern void server_drop_conns(int server);

/* ---- what the clients do (host.c, foreign.c) ---- */

extern void client_frame(Conn *c, Frame *frame);
extern void client_gone(Conn *c);	/* the connection broke by itself */

#endif							/* SIM_ENSEMBLE_H */
