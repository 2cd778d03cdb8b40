/*
 * crowd.c
 *	  What many sessions cost ZooKeeper, each with batches as zklock's.
 *
 *	  crowd HOSTS ROOT SESSIONS DIRECTORIES
 *
 * Makes the directories ROOT/0 .. and opens the sessions, each with a heartbeat
 * node; then reads commands, one a line, and answers each with one line "ok
 * name=value ...", or "error ...":
 *
 *	  run SECONDS READS PAUSE	each session sends one batch after the other, of
 *								set(heartbeat), delete and create, which is
 *								what a server with one lock at a time sends;
 *								right behind each so many listings of its
 *								directory; and pauses so many ms then
 *	  watch FROM COUNT SHIFT	each session watches so many directories, each
 *								further session that many further ones
 *	  nodes COUNT				each session makes so many znodes like those of
 *								requests
 *	  quit
 *
 * One thread.  It must not know zklock.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

#define PATH_SIZE		200
#define BATCH			3		/* operations */
#define IN_FLIGHT		5000	/* single operations, of all sessions */

/* As long as what zklock writes into the znodes of requests */
static const char node_data[] =
"{\"zklock\":1,\"server\":\"db-0001.example.org:5432\",\"database\":\"app\","
"\"user\":\"app\",\"application\":\"worker\",\"pid\":12345,"
"\"lifetime\":\"transaction\",\"since\":1700000000000,\"timeout\":10000}";

typedef struct Session
{
	int			number;
	zhandle_t  *zh;
	char		beat[PATH_SIZE];
	int			version;
	char		wanted[PATH_SIZE];
	char		node[PATH_SIZE];	/* "": none yet */
	char		deleted[PATH_SIZE];
	int			answers;		/* that are awaited */
	int64_t		due;			/* the next batch; 0: not yet */
	zoo_op_t	ops[BATCH];
	zoo_op_result_t results[BATCH];
} Session;

static const char *root;
static Session *sessions;
static struct pollfd *polled;
static int	nsessions;
static int	pending;			/* single operations */

static int	reads;				/* behind each batch */
static int64_t pause_ns;
static int64_t end_at;
static uint64_t batches;

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

/* ---- the connections ---- */

/* Waits for the sockets, for so many ms at most, and serves them. */
static void
turn(int timeout)
{
	for (int i = 0; i < nsessions; i++)
	{
		struct timeval wait;
		int			interest = 0;
		int			rc = zookeeper_interest(sessions[i].zh, &polled[i].fd,
											&interest, &wait);
		int			ms = (int) (wait.tv_sec * 1000 + wait.tv_usec / 1000);

		if (rc != ZOK)
			fail("connection", rc);
		polled[i].events = ((interest & ZOOKEEPER_READ) ? POLLIN : 0) |
			((interest & ZOOKEEPER_WRITE) ? POLLOUT : 0);
		timeout = ms < timeout ? ms : timeout;
	}
	poll(polled, (nfds_t) nsessions, timeout);
	for (int i = 0; i < nsessions; i++)
	{
		int			events = 0;
		int			rc;

		if (polled[i].revents & (POLLIN | POLLHUP | POLLERR))
			events |= ZOOKEEPER_READ;
		if (polled[i].revents & POLLOUT)
			events |= ZOOKEEPER_WRITE;
		rc = zookeeper_process(sessions[i].zh, events);
		if (rc != ZOK && rc != ZNOTHING)
			fail("connection", rc);
	}
}

static void
settle(int most)
{
	while (pending > most)
		turn(1000);
}

static void
made(int rc, const char *value, const void *data)
{
	(void) value;
	(void) data;
	if (rc != ZOK && rc != ZNODEEXISTS)
		fail("create", rc);
	pending--;
}

static void
make_node(Session *s, const char *path, const char *data, int flags)
{
	int			rc = zoo_acreate(s->zh, path, data, (int) strlen(data),
								 &ZOO_OPEN_ACL_UNSAFE, flags, made, NULL);

	if (rc != ZOK)
		fail("create", rc);
	pending++;
	settle(IN_FLIGHT);
}

static bool
all_connected(void)
{
	for (int i = 0; i < nsessions; i++)
	{
		if (zoo_state(sessions[i].zh) != ZOO_CONNECTED_STATE)
			return false;
	}
	return true;
}

/* A few at a time: ZooKeeper's port has a queue of 50. */
static void
connect_all(const char *hosts, int count)
{
	sessions = calloc((size_t) count, sizeof(Session));
	polled = calloc((size_t) count, sizeof(struct pollfd));
	while (nsessions < count)
	{
		Session    *s = &sessions[nsessions];

		s->number = nsessions;
		s->zh = zookeeper_init(hosts, NULL, 30000, NULL, NULL, 0);
		if (s->zh == NULL)
			fail("init", ZSYSTEMERROR);
		nsessions++;
		while (nsessions % 20 == 0 && !all_connected())
			turn(1000);
	}
	while (!all_connected())
		turn(1000);
}

static void
make_nodes(int directories)
{
	char		path[PATH_SIZE];

	make_node(&sessions[0], root, "", 0);
	settle(0);
	for (int i = 0; i < directories; i++)
	{
		snprintf(path, sizeof(path), "%s/%d", root, i);
		make_node(&sessions[0], path, "", 0);
	}
	for (int i = 0; i < nsessions; i++)
	{
		snprintf(sessions[i].beat, PATH_SIZE, "%s/.beat%d.%d", root,
				 (int) getpid(), i);
		make_node(&sessions[i], sessions[i].beat, "", ZOO_EPHEMERAL);
	}
	settle(0);
}

/* ---- run ---- */

static void send_batch(Session *s);

static void
answered(Session *s)
{
	if (--s->answers > 0 || now_ns() >= end_at)
		return;
	if (pause_ns == 0)
		send_batch(s);
	else
		s->due = now_ns() + pause_ns;
}

static void
batch_done(int rc, const void *data)
{
	if (rc != ZOK)
		fail("multi", rc);
	batches++;
	answered((Session *) data);
}

static void
listed(int rc, const struct String_vector *strings, const void *data)
{
	(void) strings;
	if (rc != ZOK)
		fail("list", rc);
	answered((Session *) data);
}

static void
send_batch(Session *s)
{
	char		directory[PATH_SIZE - 60];
	int			n = 0;
	int			rc;

	snprintf(directory, sizeof(directory), "%s/%d", root, s->number);
	snprintf(s->wanted, PATH_SIZE,
			 "%s/_c_0b7c1c3c-5d4e-8f4a-9a55-%012d-__WRIT__", directory,
			 s->number);
	zoo_set_op_init(&s->ops[n++], s->beat, "1", 1, s->version++, NULL);
	if (s->node[0] != '\0')
	{
		memcpy(s->deleted, s->node, PATH_SIZE);
		zoo_delete_op_init(&s->ops[n++], s->deleted, -1);
	}
	zoo_create_op_init(&s->ops[n++], s->wanted, node_data,
					   sizeof(node_data) - 1, &ZOO_OPEN_ACL_UNSAFE,
					   ZOO_EPHEMERAL | ZOO_SEQUENCE, s->node, PATH_SIZE);
	s->answers = 1 + reads;
	rc = zoo_amulti(s->zh, n, s->ops, s->results, batch_done, s);
	for (int i = 0; rc == ZOK && i < reads; i++)
		rc = zoo_aget_children(s->zh, directory, 0, listed, s);
	if (rc != ZOK)
		fail("send", rc);
}

/* Sends what is due.  False: nothing is under way, nor will be. */
static bool
go_on(void)
{
	int64_t		now = now_ns();
	bool		busy = now < end_at;

	for (int i = 0; i < nsessions; i++)
	{
		Session    *s = &sessions[i];

		if (s->due != 0 && s->due <= now && now < end_at)
		{
			s->due = 0;
			send_batch(s);
		}
		busy = busy || s->answers > 0;
	}
	return busy;
}

static void
run(double seconds, double pause)
{
	int64_t		begin = now_ns();

	batches = 0;
	pause_ns = (int64_t) (pause * 1e6);
	end_at = begin + (int64_t) (seconds * 1e9);
	for (int i = 0; i < nsessions; i++)
		sessions[i].due = begin + 1 + pause_ns * i / nsessions;
	while (go_on())
		turn(1);
	printf("ok rate=%.1f batches=%llu\n",
		   batches / ((now_ns() - begin) / 1e9), (unsigned long long) batches);
}

/* ---- what takes memory ---- */

static void
watched(int rc, const char *value, int length, const struct Stat *stat,
		const void *data)
{
	(void) value;
	(void) length;
	(void) stat;
	(void) data;
	if (rc != ZOK)
		fail("get", rc);
	pending--;
}

static void
ignore_event(zhandle_t *zh, int type, int state, const char *path,
			 void *context)
{
	(void) zh;
	(void) type;
	(void) state;
	(void) path;
	(void) context;
}

static void
watch(int from, int count, int shift)
{
	char		path[PATH_SIZE];

	for (int n = 0; n < count; n++)
	{
		for (int i = 0; i < nsessions; i++)
		{
			int			rc;

			snprintf(path, sizeof(path), "%s/%d", root, from + n + i * shift);
			rc = zoo_awget(sessions[i].zh, path, ignore_event, NULL, watched,
						   NULL);
			if (rc != ZOK)
				fail("get", rc);
			pending++;
			settle(IN_FLIGHT);
		}
	}
	settle(0);
	printf("ok watches=%d\n", nsessions * count);
}

static void
nodes(int count)
{
	char		path[PATH_SIZE];

	for (int n = 0; n < count; n++)
	{
		for (int i = 0; i < nsessions; i++)
		{
			snprintf(path, sizeof(path),
					 "%s/%d/_c_0b7c1c3c-5d4e-8f4a-9a55-%012d-__WRIT__", root,
					 i, n);
			make_node(&sessions[i], path, node_data,
					  ZOO_EPHEMERAL | ZOO_SEQUENCE);
		}
	}
	settle(0);
	printf("ok nodes=%d\n", nsessions * count);
}

/* ---- commands ---- */

/* False: it is the last.  Sessions are kept alive only while it works. */
static bool
obey(const char *line)
{
	double		seconds;
	double		pause;
	int			a;
	int			b;
	int			c;

	if (sscanf(line, "run %lf %d %lf", &seconds, &reads, &pause) == 3)
		run(seconds, pause);
	else if (sscanf(line, "watch %d %d %d", &a, &b, &c) == 3)
		watch(a, b, c);
	else if (sscanf(line, "nodes %d", &a) == 1)
		nodes(a);
	else
		return false;
	return true;
}

int
main(int argc, char **argv)
{
	char		line[100];

	if (argc != 5 || atoi(argv[3]) <= 0)
	{
		fprintf(stderr, "usage: see the head of crowd.c\n");
		return 2;
	}
	root = argv[2];
	zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
	setvbuf(stdout, NULL, _IOLBF, 0);
	connect_all(argv[1], atoi(argv[3]));
	make_nodes(atoi(argv[4]));
	printf("ok\n");
	while (fgets(line, sizeof(line), stdin) != NULL && obey(line))
		;
	for (int i = 0; i < nsessions; i++)
		zookeeper_close(sessions[i].zh);
	return 0;
}
