/*
 * rawclient.c
 *	  What ZooKeeper's C client can do with zklock's batches: the limit.
 *
 *	  rawclient HOSTS ROOT run CLIENTS NAMES SECONDS WARMUP IN_FLIGHT
 *	  rawclient HOSTS ROOT fill COUNT CREDENTIALS
 *
 * "run" plays so many logical clients, each of which acquires, releases, and
 * acquires again: all writes at hand go out as one multi of set(heartbeat),
 * deletes, creates.  NAMES is "distinct" (one lock per client) or the number of
 * names to draw from.  It looks at nothing that it gets back but the results,
 * so it decides nothing: no client that knows whether it has the lock can be
 * faster.  It prints one line of name=value pairs.
 *
 * "fill" makes the directories ROOT/0 .. ROOT/COUNT-1, which are open to all, with
 * CREDENTIALS (user:password) for what is above them.
 *
 * One thread, one connection.  It must not know zklock.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

#define MAX_CLIENTS		1024
#define BATCH_MAX		256		/* operations, the set included */
#define IN_FLIGHT_MAX	8
#define PATH_SIZE		200
#define SAMPLES_MAX		(4 * 1000 * 1000)

typedef struct Client
{
	char		node[PATH_SIZE];	/* held; "" when none */
	char		wanted[PATH_SIZE];
	int64_t		since;			/* when it wanted the next one, in ns */
} Client;

typedef struct Batch
{
	bool		busy;
	int			nops;
	int			ndeletes;
	zoo_op_t	ops[BATCH_MAX];
	zoo_op_result_t results[BATCH_MAX];
	int			creator[BATCH_MAX]; /* the client of an operation */
	char		deleted[BATCH_MAX][PATH_SIZE];
	char		created[BATCH_MAX][PATH_SIZE];
	struct Stat stat;
} Batch;

static zhandle_t *zh;
static const char *root;
static char beat[PATH_SIZE];
static int	beat_version;

static Client clients[MAX_CLIENTS];
static Batch batches[IN_FLIGHT_MAX];
static int	nclients;
static int	nnames;				/* 0: one per client */
static int	in_flight_max;

/* Rings of clients that want something; each client is in each once at most */
static int	to_create[MAX_CLIENTS];
static int	create_first,
			create_count;
static char (*to_delete)[PATH_SIZE];
static int	delete_first,
			delete_count;

static int64_t warm_at;
static int64_t end_at;
static uint64_t total;
static uint64_t measured;
static uint64_t multis;
static uint32_t *samples;
static int	pending;

static int64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void
fail(const char *what, int rc)
{
	printf("error %s: %s\n", what, zerror(rc));
	exit(1);
}

/* ---- the connection ---- */

static void
turn(void)
{
	struct pollfd pfd;
	struct timeval wait;
	int			interest = 0;
	int			events = 0;
	int			rc = zookeeper_interest(zh, &pfd.fd, &interest, &wait);

	if (rc != ZOK)
		fail("connection", rc);
	pfd.events = ((interest & ZOOKEEPER_READ) ? POLLIN : 0) |
		((interest & ZOOKEEPER_WRITE) ? POLLOUT : 0);
	pfd.revents = 0;
	poll(&pfd, 1, (int) (wait.tv_sec * 1000 + wait.tv_usec / 1000));
	if (pfd.revents & (POLLIN | POLLHUP | POLLERR))
		events |= ZOOKEEPER_READ;
	if (pfd.revents & POLLOUT)
		events |= ZOOKEEPER_WRITE;
	rc = zookeeper_process(zh, events);
	if (rc != ZOK && rc != ZNOTHING)
		fail("connection", rc);
}

static void
created(int rc, const char *value, const void *data)
{
	(void) value;
	(void) data;
	if (rc != ZOK && rc != ZNODEEXISTS)
		fail("create", rc);
	pending--;
}

static void
make_node(const char *path, int flags)
{
	int			rc = zoo_acreate(zh, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, flags,
								 created, NULL);

	if (rc != ZOK)
		fail("create", rc);
	pending++;
	while (pending > 500)
		turn();
}

static void
make_parents(const char *path)
{
	char		part[PATH_SIZE];

	for (const char *slash = strchr(path + 1, '/'); slash != NULL;
		 slash = strchr(slash + 1, '/'))
	{
		snprintf(part, sizeof(part), "%.*s", (int) (slash - path), path);
		make_node(part, 0);
	}
	make_node(path, 0);
}

/* ---- batches ---- */

static void
want(int c)
{
	int			name = nnames > 0 ? (int) (random() % nnames) : c;

	/* as long as the names that zklock and Curator use */
	snprintf(clients[c].wanted, PATH_SIZE,
			 "%s/%d/_c_%08x-0000-4000-8000-%012x-__WRIT__", root, name,
			 (unsigned) random(), (unsigned) c);
	clients[c].since = now_ns();
	to_create[(create_first + create_count++) % MAX_CLIENTS] = c;
}

static void
release(int c)
{
	int			at = (delete_first + delete_count++) % (2 * MAX_CLIENTS);

	memcpy(to_delete[at], clients[c].node, PATH_SIZE);
}

static void send_batches(void);

static void
done(int rc, const void *data)
{
	Batch	   *batch = (Batch *) data;
	int64_t		now = now_ns();

	if (rc != ZOK)
		fail("multi", rc);
	for (int i = 1 + batch->ndeletes; i < batch->nops; i++)
	{
		int			c = batch->creator[i];

		memcpy(clients[c].node, batch->created[i], PATH_SIZE);
		total++;
		if (now >= warm_at && now < end_at)
		{
			if (measured < SAMPLES_MAX)
				samples[measured] = (uint32_t) ((now - clients[c].since) / 1000);
			measured++;
		}
		release(c);
		if (now < end_at)
			want(c);
	}
	batch->busy = false;
	multis++;
	send_batches();
}

static void
fill_batch(Batch *batch)
{
	zoo_set_op_init(&batch->ops[0], beat, "", 0, beat_version++, &batch->stat);
	batch->nops = 1;
	while (delete_count > 0 && batch->nops < BATCH_MAX)
	{
		char	   *path = batch->deleted[batch->nops];

		memcpy(path, to_delete[delete_first], PATH_SIZE);
		delete_first = (delete_first + 1) % (2 * MAX_CLIENTS);
		delete_count--;
		zoo_delete_op_init(&batch->ops[batch->nops++], path, -1);
	}
	batch->ndeletes = batch->nops - 1;
	while (create_count > 0 && batch->nops < BATCH_MAX)
	{
		int			c = to_create[create_first];
		int			i = batch->nops++;

		create_first = (create_first + 1) % MAX_CLIENTS;
		create_count--;
		batch->creator[i] = c;
		zoo_create_op_init(&batch->ops[i], clients[c].wanted, "", 0,
						   &ZOO_OPEN_ACL_UNSAFE,
						   ZOO_EPHEMERAL | ZOO_SEQUENCE,
						   batch->created[i], PATH_SIZE);
	}
}

static void
send_batches(void)
{
	for (int i = 0; i < in_flight_max; i++)
	{
		int			rc;

		if (batches[i].busy || create_count + delete_count == 0)
			continue;
		fill_batch(&batches[i]);
		batches[i].busy = true;
		rc = zoo_amulti(zh, batches[i].nops, batches[i].ops,
						batches[i].results, done, &batches[i]);
		if (rc != ZOK)
			fail("multi", rc);
	}
}

/* ---- commands ---- */

static int
compare(const void *a, const void *b)
{
	uint32_t	x = *(const uint32_t *) a;
	uint32_t	y = *(const uint32_t *) b;

	return (x > y) - (x < y);
}

static void
report(double seconds)
{
	size_t		n = measured < SAMPLES_MAX ? measured : SAMPLES_MAX;

	if (n == 0)
		fail("no pair was done", ZOK);
	qsort(samples, n, sizeof(*samples), compare);
	printf("ok rate=%.1f total=%llu p50=%.4f p99=%.4f batches=%llu\n",
		   measured / seconds, (unsigned long long) total,
		   samples[n / 2] / 1000.0, samples[n - 1 - n / 100] / 1000.0,
		   (unsigned long long) multis);
}

static void
run(char **argv)
{
	double		seconds = atof(argv[2]);
	int			ndirs;
	char		path[PATH_SIZE];

	nclients = atoi(argv[0]);
	nnames = strcmp(argv[1], "distinct") == 0 ? 0 : atoi(argv[1]);
	in_flight_max = atoi(argv[4]);
	ndirs = nnames > 0 ? 0 : nclients;	/* names to draw from: see "fill" */
	samples = malloc(SAMPLES_MAX * sizeof(*samples));
	to_delete = calloc(2 * MAX_CLIENTS, PATH_SIZE);

	snprintf(beat, sizeof(beat), "%s/beat%d", root, (int) getpid());
	make_node(beat, ZOO_EPHEMERAL);
	for (int i = 0; i < ndirs; i++)
	{
		snprintf(path, sizeof(path), "%s/%d", root, i);
		make_node(path, 0);
	}
	while (pending > 0)
		turn();

	warm_at = now_ns() + (int64_t) (atof(argv[3]) * 1e9);
	end_at = warm_at + (int64_t) (seconds * 1e9);
	for (int c = 0; c < nclients; c++)
		want(c);
	send_batches();
	for (;;)
	{
		bool		busy = false;

		for (int i = 0; i < in_flight_max; i++)
			busy = busy || batches[i].busy;
		if (!busy)
			break;
		turn();
	}
	report(seconds);
}

int
main(int argc, char **argv)
{
	int			args = argc - 4;
	char	  **arg = argv + 4;

	if (!(args == 5 && strcmp(argv[3], "run") == 0 &&
		  atoi(arg[0]) > 0 && atoi(arg[0]) <= MAX_CLIENTS &&
		  atoi(arg[4]) > 0 && atoi(arg[4]) <= IN_FLIGHT_MAX) &&
		!(args == 2 && strcmp(argv[3], "fill") == 0))
	{
		fprintf(stderr, "usage: see the head of rawclient.c\n");
		return 2;
	}
	root = argv[2];
	zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
	zh = zookeeper_init(argv[1], NULL, 10000, NULL, NULL, 0);
	if (zh == NULL)
		fail("init", ZSYSTEMERROR);
	while (zoo_state(zh) != ZOO_CONNECTED_STATE)
		turn();
	if (strcmp(argv[3], "fill") == 0)
		zoo_add_auth(zh, "digest", arg[1], (int) strlen(arg[1]), NULL, NULL);
	make_parents(root);
	while (pending > 0)
		turn();
	if (strcmp(argv[3], "run") == 0)
		run(arg);
	else
	{
		for (int i = 0; i < atoi(arg[0]); i++)
		{
			char		path[PATH_SIZE];

			snprintf(path, sizeof(path), "%s/%d", root, i);
			make_node(path, 0);
		}
		while (pending > 0)
			turn();
		printf("ok\n");
	}
	zookeeper_close(zh);
	return 0;
}
