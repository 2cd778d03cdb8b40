/*
 * test_dialect_change.c
 *	  How the dialects of a root are changed: all that can happen, in any order.
 *
 * The rules are those of src/worker/root_watch.c, src/backend/admission.c and
 * src/recipes/dialects.c, which need PostgreSQL; here they stand once more, in the
 * few words of a model.  There is one name, which two lists give two dialects.  One
 * server has the old list and one the new one, so neither sees the other's znode,
 * and only the rules keep them from holding the lock at the same time.  Two calls
 * of zk_set_dialects() change the list, and may be cancelled anywhere.  Answers and
 * events arrive late, in ZooKeeper's order; connections break, a create that was
 * sent on one is carried out later, sessions expire, and a new one may begin at a
 * ZooKeeper server that is behind.  A holder may replace its znode, as one does that
 * goes from exclusive to shared.
 *
 * Every state is visited that can be reached if each server makes one request,
 * loses its connection once and replaces its znode once.  The wait of a session
 * timeout is not in the model: it only gives those who wait the time to leave.  Nor
 * is an operator who deletes the znode of the settings.
 */
#include "unit.h"

#define MOST_VERSIONS	5		/* the first one, and two by each call */

/* The settings: the list, or the list with a mark of what it is to become */
enum
{
	LIST_OLD,
	LIST_NEW,
	MARK_TO_OLD,				/* the list is the new one */
	MARK_TO_NEW,
	UNKNOWN						/* to a server */
};

#define MARK_TO(list)	((list) == LIST_OLD ? MARK_TO_OLD : MARK_TO_NEW)
#define LIST_OF(settings) \
	((settings) == LIST_OLD || (settings) == MARK_TO_NEW ? LIST_OLD : LIST_NEW)

/* From MADE on there is a znode. */
typedef enum Stage
{
	IDLE,
	SENT,						/* checked, and its create is under way */
	MADE,
	GRANTED,					/* by the worker; the backend has not looked */
	CHECKED,					/* it has, and is about to take the lock */
	HELD
} Stage;

/* Its list is LIST_OLD + its number. */
typedef struct Server
{
	uint8_t		seen;			/* version of the settings up to which all
								 * that ZooKeeper did has reached it */
	uint8_t		known;			/* the settings */
	uint8_t		stage;
	uint8_t		born;			/* version when the znode was made */
	uint8_t		requests;		/* that it may yet make */
	uint8_t		breaks;			/* of its connection, that may yet come */
	uint8_t		znode;			/* 1: the first one has been replaced */
	bool		connected;
	bool		watches;
	bool		expired;		/* its session and, before it, its lease */
} Server;

typedef enum Step
{
	TO_READ,
	TO_MARK,
	TO_LIST,
	TO_LOOK,
	TO_WRITE,
	TO_TAKE_BACK,
	ENDED
} Step;

typedef struct Call
{
	uint8_t		step;
	uint8_t		list;			/* wanted */
	uint8_t		before;
	uint8_t		first;			/* version that it read */
	uint8_t		version;		/* that it expects */
	uint8_t		listed[2];		/* 1 + the znode of each server; 0: none */
} Call;

typedef struct State
{
	uint8_t		settings[MOST_VERSIONS];	/* by version */
	uint8_t		version;
	Server		server[2];
	Call		call[2];
} State;

/* A rule that is left out */
typedef enum Bug
{
	NO_BUG,
	TAKES_WITHOUT_LOOKING,		/* checks when it submits, but no grant */
	TAKES_WHILE_UNKNOWN,
	LOOKS_TWICE,				/* first whether the settings are known, and
								 * then what they are */
	KEEPS_OVER_CONNECTIONS,		/* does not read again on a new one */
	CHANGES_WITHOUT_MARK,
	CHANGES_WITHOUT_LOOKING,	/* for contenders */
	FORGETS_GONE,				/* a contender that has gone leaves none */
	WRITES_ANY_VERSION
} Bug;

static Bug	bug;

/* ---- what is found ---- */

#define ROOM	(UINT32_C(1) << 24)

static State *states;
static uint32_t *open_states;	/* numbers of those to go on from */
static uint32_t nopen;
static uint32_t *places;		/* by hash: 1 + the number of a state */
static uint32_t nstates;
static bool two_holders;

static uint32_t
hash(const State *s)
{
	const uint8_t *bytes = (const uint8_t *) s;
	uint64_t	h = UINT64_C(14695981039346656037);
	size_t		i;

	for (i = 0; i < sizeof(*s); i++)
		h = (h ^ bytes[i]) * UINT64_C(1099511628211);
	return (uint32_t) (h >> 32);
}

/* A server that asks for nothing any more holds nothing. */
static bool
is_over(const Server *server)
{
	return server->stage == IDLE && server->requests == 0;
}

/* What can no longer matter makes no difference between states. */
static void
forget(State *s)
{
	int			i;

	for (i = 0; i < 2; i++)
	{
		if (s->server[i].stage < MADE)
			s->server[i].born = s->server[i].znode = 0;
		if (s->call[i].step != TO_LOOK)
			s->call[i].listed[0] = s->call[i].listed[1] = 0;
		if (s->call[i].step == ENDED)
		{
			memset(&s->call[i], 0, sizeof(Call));
			s->call[i].step = ENDED;
		}
	}
	if (memcmp(&s->call[0], &s->call[1], sizeof(Call)) > 0)
	{
		Call		other = s->call[0];

		s->call[0] = s->call[1];
		s->call[1] = other;
	}
}

static void
reach(const State *found)
{
	State		s = *found;
	uint32_t	at;

	if (is_over(&s.server[0]) || is_over(&s.server[1]))
		return;
	forget(&s);
	at = hash(&s) % ROOM;
	while (places[at] != 0 && memcmp(&states[places[at] - 1], &s, sizeof(s)) != 0)
		at = (at + 1) % ROOM;
	if (places[at] != 0)
		return;
	if (nstates >= ROOM / 2)
	{
		fprintf(stderr, "# more states than there is room for\n");
		abort();
	}
	open_states[nopen++] = nstates;
	states[nstates] = s;
	places[at] = ++nstates;
	two_holders |= s.server[0].stage == HELD &&
		s.server[1].stage == HELD;
}

/* ---- a server ---- */

static bool
is_refused(const Server *server, int own)
{
	return server->known != UNKNOWN && server->known != own;
}

static void
submit(State s, int i)
{
	Server	   *server = &s.server[i];

	if (server->stage != IDLE || server->requests == 0 || !server->connected ||
		is_refused(server, LIST_OLD + i))
		return;
	server->requests--;
	server->stage = SENT;
	reach(&s);
}

static void
carry_out(State s, int i)
{
	if (s.server[i].stage != SENT || s.server[i].expired)
		return;
	s.server[i].stage = MADE;
	s.server[i].born = s.version;
	reach(&s);
}

/* An event comes ahead of the answers to all that was carried out later. */
static void
deliver_event(State s, int i)
{
	Server	   *server = &s.server[i];

	if (!server->connected || server->seen == s.version)
		return;
	server->seen++;
	if (server->watches)
		server->known = UNKNOWN;
	server->watches = false;
	reach(&s);
}

static void
deliver_answer(State s, int i)
{
	Server	   *server = &s.server[i];

	if (!server->connected || server->stage != MADE ||
		server->seen < server->born)
		return;
	server->stage = GRANTED;
	reach(&s);
}

static void
read_settings(State s, int i)
{
	Server	   *server = &s.server[i];

	if (!server->connected || server->known != UNKNOWN)
		return;
	server->known = s.settings[server->seen];
	server->watches = true;
	reach(&s);
}

static void
check_grant(State s, int i)
{
	Server	   *server = &s.server[i];

	if (server->stage != GRANTED ||
		(server->known == UNKNOWN && bug != TAKES_WHILE_UNKNOWN &&
		 bug != TAKES_WITHOUT_LOOKING))
		return;
	server->stage = is_refused(server, LIST_OLD + i) &&
		bug != TAKES_WITHOUT_LOOKING && bug != LOOKS_TWICE ? IDLE : CHECKED;
	reach(&s);
}

static void
take_grant(State s, int i)
{
	Server	   *server = &s.server[i];

	if (server->stage != CHECKED)
		return;
	server->stage = bug == LOOKS_TWICE && is_refused(server, LIST_OLD + i) ?
		IDLE : HELD;
	reach(&s);
}

static void
replace_znode(State s, int i)
{
	Server	   *server = &s.server[i];

	if (server->stage != HELD || !server->connected || server->znode != 0)
		return;
	server->znode = 1;
	reach(&s);
}

static void
release(State s, int i)
{
	if (s.server[i].stage != HELD || !s.server[i].connected)
		return;
	s.server[i].stage = IDLE;
	reach(&s);
}

static void
disconnect(State s, int i)
{
	Server	   *server = &s.server[i];

	if (!server->connected || server->breaks == 0)
		return;
	server->breaks--;
	server->connected = server->watches = false;
	reach(&s);
}

/* Who still waits does so with the new session. */
static void
expire(State s, int i)
{
	Server	   *server = &s.server[i];

	if (server->connected || server->expired)
		return;
	server->expired = true;
	if (server->stage == HELD)
		server->stage = IDLE;
	else if (server->stage != IDLE)
		server->stage = SENT;
	reach(&s);
}

/* A new session may begin at a ZooKeeper server that is behind. */
static void
connect_again(State s, int i)
{
	Server	   *server = &s.server[i];
	uint8_t		latest = server->expired ? s.version : server->seen;

	if (server->connected)
		return;
	if (server->expired)
		server->seen = 0;
	server->connected = true;
	server->expired = false;
	if (bug != KEEPS_OVER_CONNECTIONS)
		server->known = UNKNOWN;
	for (; server->seen <= latest; server->seen++)
		reach(&s);
}

/* ---- a call of zk_set_dialects() ---- */

/* If the answer is lost, the call reads whether its write is there. */
static bool
write_settings(State *s, Call *call, uint8_t settings)
{
	if (call->version == s->version || bug == WRITES_ANY_VERSION)
		s->settings[++s->version] = settings;
	else if (call->version + 1 != s->version ||
			 s->settings[s->version] != settings)
		return false;
	call->version = s->version;
	return true;
}

static void
begin_call(State s, int i)
{
	Call	   *call = &s.call[i];

	call->before = LIST_OF(s.settings[s.version]);
	call->first = call->version = s.version;
	if (call->list != call->before)
		call->step = bug == CHANGES_WITHOUT_MARK ? TO_LIST : TO_MARK;
	else
	{
		if (s.settings[s.version] != call->before)
			(void) write_settings(&s, call, call->before);
		call->step = ENDED;
	}
	reach(&s);
}

static void
mark(State s, int i)
{
	Call	   *call = &s.call[i];

	if (!write_settings(&s, call, MARK_TO(call->list)))
		call->step = TO_TAKE_BACK;
	else
		call->step = bug == CHANGES_WITHOUT_LOOKING ? TO_WRITE : TO_LIST;
	reach(&s);
}

/* A listing that is behind is one that the call made earlier. */
static void
list(State s, int i)
{
	Call	   *call = &s.call[i];
	int			j;

	call->step = TO_WRITE;
	for (j = 0; j < 2; j++)
	{
		if (s.server[j].stage < MADE)
			continue;
		call->listed[j] = (uint8_t) (s.server[j].znode + 1);
		call->step = TO_LOOK;
	}
	reach(&s);
}

/* At each contender that is listed */
static void
look(State s, int i)
{
	Call	   *call = &s.call[i];
	int			j;

	call->step = bug == FORGETS_GONE ? TO_WRITE : TO_LIST;
	for (j = 0; j < 2; j++)
	{
		if (s.server[j].stage >= MADE && call->listed[j] == s.server[j].znode + 1)
			call->step = TO_TAKE_BACK;
		call->listed[j] = 0;
	}
	reach(&s);
}

static void
write_list(State s, int i)
{
	Call	   *call = &s.call[i];

	call->step = write_settings(&s, call, call->list) ? ENDED : TO_TAKE_BACK;
	reach(&s);
}

/* After contenders were found, another error, or a cancel */
static void
fail(State s, int i)
{
	s.call[i].step = TO_TAKE_BACK;
	reach(&s);
}

static void
take_back(State s, int i)
{
	Call	   *call = &s.call[i];

	if (s.settings[s.version] == MARK_TO(call->list) &&
		(s.version == call->first + 1 || bug == WRITES_ANY_VERSION))
		s.settings[++s.version] = call->before;
	call->step = ENDED;
	reach(&s);
}

static void (*const call_steps[]) (State, int) =
{
	[TO_READ] = begin_call,
		[TO_MARK] = mark,
		[TO_LIST] = list,
		[TO_LOOK] = look,
		[TO_WRITE] = write_list,
		[TO_TAKE_BACK] = take_back
};

/* ---- all of it ---- */

static void (*const server_steps[]) (State, int) =
{
	submit, carry_out, deliver_event, deliver_answer, read_settings, check_grant,
		take_grant, replace_znode, release, disconnect, expire, connect_again
};

static void
step(const State *s, int i)
{
	size_t		j;

	for (j = 0; j < sizeof(server_steps) / sizeof(server_steps[0]); j++)
		server_steps[j] (*s, i);
	if (s->call[i].step != ENDED)
		call_steps[s->call[i].step] (*s, i);
	if (s->call[i].step < TO_TAKE_BACK)
		fail(*s, i);
}

/* Whether two servers can hold the lock, with this bug and the second call's list */
static bool
explore(Bug with, int second)
{
	State		first;
	uint32_t	i;

	bug = with;
	two_holders = false;
	nstates = nopen = 0;
	states = calloc(ROOM / 2, sizeof(State));
	open_states = calloc(ROOM / 2, sizeof(*open_states));
	places = calloc(ROOM, sizeof(*places));
	if (states == NULL || open_states == NULL || places == NULL)
		abort();
	memset(&first, 0, sizeof(first));
	for (i = 0; i < 2; i++)
	{
		first.server[i] = (Server)
		{
			.known = UNKNOWN,.requests = 1,.breaks = 1,.connected = true
		};
		first.call[i].list = (uint8_t) (i == 0 ? LIST_NEW : second);
	}
	reach(&first);
	while (nopen > 0 && !two_holders)
	{
		State		s = states[open_states[--nopen]];

		step(&s, 0);
		step(&s, 1);
	}
	free(states);
	free(open_states);
	free(places);
	printf("# bug %d: %u states\n", with, nstates);
	return two_holders;
}

static void
rules_exclude(void)
{
	CHECK(!explore(NO_BUG, LIST_NEW));
	CHECK(!explore(NO_BUG, LIST_OLD));
}

static void
each_rule_is_needed(void)
{
	Bug			b;

	for (b = TAKES_WITHOUT_LOOKING; b <= WRITES_ANY_VERSION; b++)
		CHECK_MSG(explore(b, LIST_NEW), "bug %d breaks nothing", b);
}

int
main(void)
{
	unit_start();
	RUN(rules_exclude);
	RUN(each_rule_is_needed);
	return unit_finish();
}
