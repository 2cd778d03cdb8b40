/*
 * scale.h
 *	  Many servers on one ZooKeeper: what is simulated, and what is counted.
 *
 * One simulation runs in one process, in virtual time, and all of it follows
 * from its options.  Nothing fails in it.
 */
#ifndef SCALE_H
#define SCALE_H

#include <stdbool.h>
#include <stdint.h>

#include "../model/memory.h"
#include "../model/model.h"
#include "../model/worker.h"
#include "../random.h"

#define SCALE_ROOT		"/zklock"
#define SCALE_SESSION	1000	/* the first one's id */

typedef struct Options
{
	uint32_t	servers;
	uint32_t	backends;		/* per server */
	uint32_t	names;
	double		skew;			/* a name is drawn as 1/rank^skew: 0 is
								 * uniform */
	double		own;			/* how many draws are from a share of the
								 * names that is the server's own */
	double		think;			/* µs, on average */
	double		hold;			/* µs, on average */
	bool		for_ever;		/* who has a lock keeps it; each has a name of
								 * its own */
	uint32_t	max_requests;
	uint32_t	max_directories;
	uint32_t	timeout_ms;		/* of the sessions */
	double		latency;		/* µs, each way */
	double		batch_cost;		/* µs of the one processor of ZooKeeper's */
	double		operation_cost; /* likewise, of each in a batch but the beat */
	double		read_cost;
	double		reap;			/* µs in which the reaper looks at each
								 * directory once; 0: there is none */
	double		warmup;			/* µs that are not counted */
	double		duration;		/* µs that are */
	uint32_t	seed;
	double		most;			/* requests per acquire: more is a failure */
} Options;

extern Options options;

/* A rule is broken: says so, and ends the program. */
extern void broken(const char *format,...)
			__attribute__((noreturn, format(printf, 1, 2)));

/* ---- zookeeper.c ---- */

extern Model zookeeper;

extern void zookeeper_begin(void);
extern const char *zookeeper_path(uint32_t name);

/* The number of a name, of its path or that of a znode in its directory */
extern bool zookeeper_name(const char *path, uint32_t *name);

/* What a connection sends is executed, and then answered, some time later. */
extern void zookeeper_send(ModelConnection *connection, uint32_t server,
						   const ZklAction *action);
extern void zookeeper_noticed(ModelConnection *connection);
extern void zookeeper_serve(ModelConnection *connection);
extern void zookeeper_reap(uint32_t name);

/* µs of its processor, in the time that counts */
extern double zookeeper_busy(void);
extern void zookeeper_check_empty(void);

/* ---- server.c ---- */

typedef struct Server
{
	uint32_t	number;
	Worker		worker;
	ModelConnection connection;
	int64_t		timer_at;		/* -1: none */
	uint32_t	most_watches;
} Server;

extern Server *servers;

extern void servers_begin(void);
extern void server_submit(Server *s, uint32_t backend, const char *name);
extern void server_release(Server *s, uint32_t request);
extern void server_deliver(Server *s);
extern void server_timer(Server *s);
extern void servers_check(void);
extern bool servers_at_rest(void);

/* ---- backends.c ---- */

extern void backends_begin(void);

/* Lets no backend ask again. */
extern void backends_stop(void);
extern void backend_step(uint32_t backend);
extern void backend_granted(uint32_t backend, uint32_t request, int64_t token);

/* ---- figures.c ---- */

extern void figures_begin(void);

/* Counting begins, and ends. */
extern void figures_start(void);
extern void figures_stop(void);
extern void figures_sent(const ZklAction *action);
extern void figures_submitted(uint32_t name);
extern void figures_granted(uint32_t name, uint32_t server, int64_t waited);
extern void figures_released(uint32_t name, uint32_t server);
extern double figures_requests(void);	/* per acquire */
extern void figures_print(void);

#endif							/* SCALE_H */
