/*
 * status.h
 *	  What the worker tells about itself, and how backends copy that.
 */
#ifndef ZKL_SHARED_STATUS_H
#define ZKL_SHARED_STATUS_H

#include "datatype/timestamp.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "znode/zkapi.h"
#include "znode/znode.h"

/* ---- changes: counts the changes of what the worker writes and backends copy ---- */

/*
 * With a lock, a backend that is stopped while it copies would stop the worker, and
 * so end the lease.  Instead, the worker counts its changes, and the number is odd
 * while it makes one.  A backend that sees another number behind its copy than
 * before copies again.
 *
 * If a worker ends in the middle of a change, backends wait until the next worker
 * has made one.
 */

typedef pg_atomic_uint32 ZklChanges;

#define ZKL_CHANGES_PAUSE_US	100

/* ---- for the worker, around a change ---- */

static inline void
zkl_changes_begin(ZklChanges *changes)
{
	pg_atomic_write_u32(changes, pg_atomic_read_u32(changes) | 1);
	pg_write_barrier();
}

static inline void
zkl_changes_end(ZklChanges *changes)
{
	pg_write_barrier();
	pg_atomic_write_u32(changes, pg_atomic_read_u32(changes) + 1);
}

/* ---- for backends, around a copy ---- */

/* Waits for the end of a change, and may be interrupted. */
static inline uint32
zkl_changes_so_far(ZklChanges *changes)
{
	uint32		number;

	while ((number = pg_atomic_read_u32(changes)) % 2 == 1)
	{
		CHECK_FOR_INTERRUPTS();
		pg_usleep(ZKL_CHANGES_PAUSE_US);
	}
	pg_read_barrier();
	return number;
}

/* Whether the copy made since then is of no use */
static inline bool
zkl_changes_since(ZklChanges *changes, uint32 number)
{
	pg_read_barrier();
	return pg_atomic_read_u32(changes) != number;
}

/* ---- status ---- */

/*
 * What the worker tells about itself: zk_status, zk_stat_server, and its ZooKeeper
 * session.
 */

/* zk_status.state */
typedef enum ZklWorkerState
{
	ZKL_STATE_STOPPED = 0,
	ZKL_STATE_CONNECTING,
	ZKL_STATE_CONNECTED,
	ZKL_STATE_DISCONNECTED,
	ZKL_STATE_EXPIRED,
	ZKL_STATE_AUTH_FAILED
} ZklWorkerState;

/* What an error on the way to ZooKeeper was about */
typedef enum ZklErrorKind
{
	ZKL_ABOUT_CONNECTION,		/* it failed or broke */
	ZKL_ABOUT_ANSWER,			/* ZooKeeper's answer ended it */
	ZKL_ABOUT_PROCESS,			/* zklock_session ended, or did not start */
	ZKL_ABOUT_SETTINGS			/* credentials or certificates cannot be used */
} ZklErrorKind;

#define ZKL_ERROR_KINDS		4

/* ZklStatus.last_rc: a server is not ZooKeeper, and was refused. */
#define ZKL_RC_UNSUITABLE	(-1001)

/* TLS of a connection, and until when certificates are valid */
typedef struct ZklTlsStatus
{
	char		version[16];	/* empty: no TLS */
	char		cipher[64];
	TimestampTz certificate_until;	/* our own; the times, too: 0 if there is
									 * none */
	TimestampTz ca_until;
	TimestampTz server_until;
} ZklTlsStatus;

/* What the worker tells about itself.  Only the worker writes; backends copy. */
typedef struct ZklStatus
{
	uint32		state;			/* ZklWorkerState */
	char		server[64];		/* host:port that the session is connected to */
	int64		session_id;		/* 0: none */
	uint32		generation;		/* of the session; grows with each new one */
	uint32		timeout_ms;		/* negotiated; 0: not known */
	uint32		timeout_asked_ms;	/* when the session was begun */
	TimestampTz session_since;	/* 0: no session yet */
	char		zookeeper_version[16];	/* of the server of the last
										 * connection; empty: not told */
	int			worker_pid;		/* 0: none */
	int64		worker_since;	/* ms of boottime.h: when it started */
	int64		left_until;		/* ms of boottime.h: sessions that workers
								 * have left may live until then */
	int			quick_ends;		/* how many workers in a row ended within the
								 * session timeout */
	int			worker_procno;
	int			session_pid;	/* 0: none */
	char		session_version[32];	/* of the last zklock_session that was
										 * connected; empty: not known */
	uint32		link_protocol;	/* likewise; 0: not known */
	ZklTlsStatus tls;			/* of the last connection */
	uint32		access;			/* ZklAccess: likewise */
	char		refused[ZKL_MAX_NAME + 1];	/* the last lock, in UTF-8, to
											 * which an access control list
											 * denied access; empty: none */
	uint32		fleet_generation;	/* the last one in which it was decided
									 * whether there is a clone */
	bool		clone;			/* there is: see worker/identity.c */
	TimestampTz connected_since;	/* counts in ZKL_STATE_CONNECTED only */
	int64		away_since;		/* ms of boottime.h: no connection since then;
								 * 0: there is one */
	uint64		worker_starts;	/* ctl_starts_from and this are a part of the
								 * ids of znodes: it never goes back while
								 * this memory lasts */
	uint64		errors[ZKL_ERROR_KINDS];
	uint64		lapses;			/* how often lapsed_at was set */
	uint64		connects;
	uint64		sessions_lost;
	uint64		batches;
	uint64		operations;
	uint64		listings;
	uint64		creates;
	uint64		continuous_creates;
	uint64		watches;		/* now */
	uint64		deadlocks;		/* across servers, ended here; see manager.h */
	uint64		deadlock_checks;
	uint64		given_up_checks;
	uint64		unpublished_waits;
	uint64		recalls;		/* of cached locks */
	uint64		asks;			/* messages between servers: sent, as words */
	uint64		words;
	uint64		words_taken;
	uint64		words_late;
	uint64		messages_unsent;
	uint64		messages_refused;
	uint64		messages_other_key;
	uint64		tickets_claimed;
	uint64		tickets_lapsed; /* nobody claimed them in time */
	uint64		lost_writes;	/* how often ZooKeeper was seen to have lost
								 * writes */
	int64		lost_writes_at; /* ms of boottime.h: the last time; 0: never */
	char		settings_fault[256];	/* why those of the connection are not
										 * used; empty: they are */
	bool		messages_possible;	/* between servers */
	char		messages_fault[512];	/* why they are not although they are
										 * wanted; empty: no fault is known */
	char		last_error[256];
	TimestampTz last_error_at;	/* 0: none */
	int32		last_rc;		/* ZooKeeper's result code that was this
								 * error, or ZKL_RC_UNSUITABLE; 0: none was */
	int64		lapsed_at;		/* ms of boottime.h: when the lease ended
								 * under held locks; 0: it is good */
} ZklStatus;

/* The session timeout in ms: as negotiated, or else as set */
extern uint32 zkl_status_timeout_ms(void);

/*
 * "zklock.answer_timeout" in ms: by default long enough for the session of another
 * server that died to end
 */
extern int	zkl_status_answer_timeout_ms(void);

/* A renewal is answered behind a beat, but waits no longer for it, in ms. */
#define ZKL_LONGEST_PROOF_MS	2000

/* Whether there is no connection because the server is not ZooKeeper */
extern bool zkl_status_is_refused(void);

/* Since when there has been no connection; 0: there is one */
extern TimestampTz zkl_status_away_since(void);

/*
 * Since when there has been no session: *since, if it is longer than the session
 * timeout that there was a connection
 */
extern bool zkl_status_is_away(TimestampTz *since);

/* A consistent copy of the worker's status. */
extern void zkl_status_copy(ZklStatus *copy);

/*
 * Around each change of what the first one returns.  Backends wait for its end.
 * A worker that ends sets worker_pid to 0, worker_procno to ZKL_PROCNO_NONE.
 */
extern ZklStatus *zkl_status_begin(void);
extern void zkl_status_end(void);

#endif							/* ZKL_SHARED_STATUS_H */
