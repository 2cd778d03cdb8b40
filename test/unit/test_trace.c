/*
 * test_trace.c
 *	  What a manager tells of small scenarios, line by line, and what it says
 *	  that it believes.
 */
#include <string.h>

#include "observe/inspect.h"
#include "unit.h"
#include "world.h"

#define HEARTBEAT	"/zklock/.servers/0001000000000001.1"
#define UUID(number) "00010000-0000-8000-8400-01000000000" number
#define NODE(number) "/zklock/a/_c_" UUID(number) "-"
#define OTHER	"/zklock/a/_c_beeb8da1-658e-4ec6-9c00-00ec89025cc1-__READ__0000000003"

typedef struct Lines
{
	const char *const *expected;	/* the next one; NULL: no more */
	int			n;
} Lines;

/* Times are of no interest here: each becomes a T. */
static void
leave_out_times(const char *line, char *buf)
{
	static const char *const keys[] = {" now=", " until=", " begun="};
	size_t		i;

	strcpy(buf, line);
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
	{
		char	   *value = strstr(buf, keys[i]);
		char	   *end;

		if (value == NULL)
			continue;
		value += strlen(keys[i]);
		end = value + strspn(value, "0123456789");
		*value = 'T';
		memmove(value + 1, end, strlen(end) + 1);
	}
}

static void
check_line(void *context, const char *line_with_times)
{
	Lines	   *lines = context;
	char		line[2 * ZKL_MAX_LINE];

	lines->n++;
	leave_out_times(line_with_times, line);
	CHECK_MSG(*lines->expected != NULL &&
			  strcmp(line, *lines->expected) == 0,
			  "line %d is\n#\t%s\n# expected\n#\t%s", lines->n, line,
			  *lines->expected != NULL ? *lines->expected : "nothing");
	if (*lines->expected != NULL)
		lines->expected++;
}

/* A holder, one who waits for it on the same server, and the hand-over */
static void
hand_over(void)
{
	static const char *const expected[] = {
		"in submit request=0 /zklock/a exclusive curator_rw owner=1 now=T",
		"in flush now=T",
		"out record request=0 /zklock/a exclusive uuid=" UUID("4") " index=1 generation=1",
		"out send multi tag=0x900000002 for=batch operations=2",
		"out operation set " HEARTBEAT " version=7",
		"out operation create " NODE("4") "__WRIT__",
		"in reply tag=0x900000002 for=batch rc=0 czxid=0x3eb mzxid=0x3f6 version=8 owner=0x1000000000001 now=T",
		"in result operation=1 rc=0 " NODE("4") "__WRIT__0000000003",
		"out lease until=T",
		"out record request=0 /zklock/a exclusive uuid=" UUID("4") " number=3 index=1 generation=1",
		"in flush now=T",
		"out grant request=0 /zklock/a token=4153345 solitary",
		"in submit request=1 /zklock/a shared curator_rw owner=2 now=T",
		"in flush now=T",
		"out record request=1 /zklock/a shared uuid=" UUID("5") " index=1 generation=1",
		"out send multi tag=0xa00000002 for=batch operations=2",
		"out operation set " HEARTBEAT " version=8",
		"out operation create " NODE("5") "__READ__",
		"in reply tag=0xa00000002 for=batch rc=0 czxid=0x3eb mzxid=0x3f7 version=9 owner=0x1000000000001 now=T",
		"in result operation=1 rc=0 " NODE("5") "__READ__0000000004",
		"out lease until=T",
		"out record request=1 /zklock/a shared uuid=" UUID("5") " number=4 index=1 generation=1",
		"in release request=0 /zklock/a now=T",
		"in flush now=T",
		"out grant request=1 /zklock/a token=4157441 solitary",
		"in flush now=T",
		"out send multi tag=0xb00000002 for=batch operations=2",
		"out operation set " HEARTBEAT " version=9",
		"out operation delete " NODE("4") "__WRIT__0000000003 version=-1",
		"in reply tag=0xb00000002 for=batch rc=0 czxid=0x3eb mzxid=0x3f8 version=10 owner=0x1000000000001 now=T",
		"out lease until=T",
		"out free request=0",
		NULL
	};
	Lines		lines = {expected, 0};
	World	   *w = world_ready();
	uint32_t	holder;
	uint32_t	waiter;

	world_warm_up(w, "/a");
	zkl_trace_begin(&w->worker.trace, w->worker.m, check_line, &lines);
	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	waiter = world_submit(w, "/a", 2, ZKL_SHARED);
	world_run(w);
	world_release(w, holder);
	world_run(w);
	zkl_trace_begin(&w->worker.trace, w->worker.m, NULL, NULL);
	CHECK(*lines.expected == NULL);
	CHECK(world_holds(w, waiter));
	world_wind_up(w);
}

/* A holder of another client's, found by a listing and then watched */
static void
wait_for_another_client(void)
{
	static const char *const expected[] = {
		"in submit request=0 /zklock/a exclusive curator_rw owner=1 now=T",
		"in flush now=T",
		"out record request=0 /zklock/a exclusive uuid=" UUID("4") " index=1 generation=1",
		"out send multi tag=0x900000002 for=batch operations=2",
		"out operation set " HEARTBEAT " version=7",
		"out operation create " NODE("4") "__WRIT__",
		"in reply tag=0x900000002 for=batch rc=0 czxid=0x3eb mzxid=0x3f9 version=8 owner=0x1000000000001 now=T",
		"in result operation=1 rc=0 " NODE("4") "__WRIT__0000000004",
		"out lease until=T",
		"out record request=0 /zklock/a exclusive uuid=" UUID("4") " number=4 index=1 generation=1",
		"in flush now=T",
		"out send list tag=0xa00000002 for=list /zklock/a",
		"in reply tag=0xa00000002 for=list /zklock/a rc=0 czxid=0x3ef mzxid=0x3ef version=0 children=2 now=T",
		"in child _c_" UUID("4") "-__WRIT__0000000004",
		"in child _c_beeb8da1-658e-4ec6-9c00-00ec89025cc1-__READ__0000000003",
		"in flush now=T",
		"out send get tag=0xb00000002 for=watch-ahead " OTHER " watch",
		"in reply tag=0xb00000002 for=watch-ahead /zklock/a rc=0 czxid=0x3f8 mzxid=0x3f8 version=0 owner=0x4d now=T",
		"in deleted " OTHER " now=T",
		"in flush now=T",
		"out grant request=0 /zklock/a token=4165633",
		NULL
	};
	Lines		lines = {expected, 0};
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	waiter;

	world_warm_up(w, "/a");
	unit.random = 1;
	foreign_enter(w, "/a", ZKL_SHARED, other);
	zkl_trace_begin(&w->worker.trace, w->worker.m, check_line, &lines);
	waiter = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_waits(w, waiter));
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	world_run(w);
	zkl_trace_begin(&w->worker.trace, w->worker.m, NULL, NULL);
	CHECK(*lines.expected == NULL);
	CHECK(world_holds(w, waiter));
	world_wind_up(w);
}

/* The loss of a connection, and of a session */
static void
lose_the_session(void)
{
	static const char *const expected[] = {
		"in session-lost now=T",
		"out lease until=T",
		"out lose request=0 /zklock/a failure=session-expired",
		"out record request=0 /zklock/a generation=1",
		NULL
	};
	Lines		lines = {expected, 0};
	World	   *w = world_ready();
	uint32_t	holder;

	world_warm_up(w, "/a");
	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	zkl_trace_begin(&w->worker.trace, w->worker.m, check_line, &lines);
	world_expire_session(w);
	world_flush(w);
	zkl_trace_begin(&w->worker.trace, w->worker.m, NULL, NULL);
	CHECK(*lines.expected == NULL);
	CHECK(!world_holds(w, holder));
	world_wind_up(w);
}

typedef struct Deaf
{
	ZklTrace   *trace;
	int			n;
} Deaf;

static void
stop_at_operation(void *context, const char *line)
{
	Deaf	   *deaf = context;

	deaf->n++;
	if (strncmp(line, "out operation", 13) == 0)
		zkl_trace_begin(deaf->trace, deaf->trace->m, NULL, NULL);
}

/* The one who listens ends the trace in the middle of a batch. */
static void
stop_in_between(void)
{
	World	   *w = world_ready();
	Deaf		deaf = {&w->worker.trace, 0};

	world_warm_up(w, "/a");
	zkl_trace_begin(&w->worker.trace, w->worker.m, stop_at_operation, &deaf);
	world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK_INT(deaf.n, 5);
	world_wind_up(w);
}

static void
check_item(void *context, const ZklDumpItem *item)
{
	char		line[2 * ZKL_MAX_LINE];

	snprintf(line, sizeof(line), "%s %s %d: %s", item->path, item->item,
			 (int) item->request, item->state);
	check_line(context, line);
}

/* A holder, one who waits for it, and one who waits for another client */
static void
what_is_believed(void)
{
	static const char *const expected[] = {
		" session -1: connection=down session=0x0001000000000001 generation=1 timeout_ms=6000 lease_ms=3999 zxid_seen=0x3fa chain=1 in-use=1 version=9 acknowledged=9",
		" requests -1: live=3 queued=2 creates=1 watches=0",
		"/a lock -1: curator_rw requests=2 held=1 next=1 foreign=1",
		"/a request 0: request=0 granted shared owner=1 node=exists number=4 uuid=" UUID("4") " token=4165633",
		"/a request 1: request=1 waiting exclusive owner=2 node=exists number=5 uuid=" UUID("5"),
		"/a contender -1: shared number=3 _c_beeb8da1-658e-4ec6-9c00-00ec89025cc1-__READ__0000000003",
		"/b lock -1: curator_rw requests=1 held=0 unknown_from=0",
		"/b request 2: request=2 waiting exclusive owner=3 node=new write=pending",
		NULL
	};
	Lines		lines = {expected, 0};
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];

	world_warm_up(w, "/a");
	unit.random = 1;
	foreign_enter(w, "/a", ZKL_SHARED, other);
	world_submit(w, "/a", 1, ZKL_SHARED);
	world_run(w);
	world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	world_disconnect(w);
	world_submit(w, "/b", 3, ZKL_EXCLUSIVE);
	zkl_dump_write(w->worker.m, w->worker.now, check_item, &lines);
	CHECK(*lines.expected == NULL);
	world_connect(w);
	world_run(w);
	foreign_leave_all(w, "/a");
	world_run(w);
	world_wind_up(w);
}

/* Whatever is in a line, it stays one line, and no longer than that. */
static void
lines_of_any_text(void)
{
	ZklLine		line;
	int			i;

	zkl_line_begin(&line);
	CHECK_STR(line.text, "");
	zkl_line_put(&line, "%s", "");
	CHECK_STR(line.text, "");
	zkl_line_put(&line, "%s", "a\nb\x1b\x7f\xc3\xa4");
	zkl_line_put(&line, "%s", "");
	zkl_line_if(&line, false, "no");
	zkl_line_if(&line, true, "yes=%d", 1);
	zkl_line_name(&line, "", NULL);
	zkl_line_name(&line, "A_KEY=", "A_NAME");
	CHECK_STR(line.text, "a?b??\xc3\xa4 yes=1 A_KEY=a-name");
	for (i = 0; i < ZKL_MAX_LINE; i++)
		zkl_line_name(&line, "", "WORD");
	CHECK_INT(line.length, ZKL_MAX_LINE);
	CHECK_INT(strlen(line.text), ZKL_MAX_LINE);
}

int
main(void)
{
	unit_start();
	RUN(hand_over);
	RUN(wait_for_another_client);
	RUN(lose_the_session);
	RUN(stop_in_between);
	RUN(what_is_believed);
	RUN(lines_of_any_text);
	return unit_finish();
}
