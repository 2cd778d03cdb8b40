/*
 * rules.c
 *	  The rules: when a line is allowed, and what it changes.
 *
 * Each line of a trace that begins with "in" is something that happens to a server: its
 * rule says what follows from it.  Each that begins with "out" is something that the
 * server does: it must be allowed by its rule.  The words of the table are those of
 * src/ARGUMENT.md, whose lemmas the numbers are.
 */
#include <stdio.h>
#include <string.h>

#include "when.h"

#define MOST_CONDITIONS	16

typedef struct Condition
{
	const char *text;
	When		when;
} Condition;

typedef struct Rule
{
	const char *line;			/* its first words */
	const char *what;			/* the operation that it is about; NULL: any */
	const char *lemmas;
	Condition	conditions[MOST_CONDITIONS];	/* all of them */
	const char *then;
	Change		change;
} Rule;

#define ALWAYS {NULL, NULL}

static const Rule rules[] = {
	/* ---- what happens ---- */
	{"in begin", NULL, "5", {ALWAYS},
	"a worker begins: it knows nothing, and holds nothing", then_begin},
	{"in connected", NULL, "2, 3", {
			{"the connection before is gone", when_down},
	{"if the session is another one, the one before was lost", when_same_session}},
	"a connection: OPENING, or PROVING if the heartbeat node is good; the lease ends at "
	"begun + T - T/500 at the latest; nothing is known to have been seen on it", then_connected},
	{"in disconnected", NULL, "1, 4", {ALWAYS},
	"DOWN: all watches are gone, and continuity; writes without an answer are unsettled",
	then_disconnected},
	{"in session-lost", NULL, "2", {ALWAYS},
	"all znodes of the session are gone, and the lease is over", then_session_lost},
	{"in submit", NULL, "", {{"the request is free", when_free}},
	"a request WAITS", then_submit},
	{"in time-out", NULL, "", {ALWAYS}, "a try may be denied", then_time_out},
	{"in release", NULL, "2, 9", {ALWAYS},
	"its holder lets go: RELEASED; or it is kept, or stays for those that share its znode",
	then_release},
	{"in overdue", NULL, "2", {ALWAYS}, "a hold's time is over: ANSWERED", then_overdue},
	{"in recalled", NULL, "6", {
	{"its token is one of its transaction's, and not below the last one", when_token_room}},
	"whose a cached lock is; if nobody's, it is released", then_recalled},
	{"in reply", NULL, "", {ALWAYS},
	"an answer: with the lines behind it, it tells of what was sent", then_reply},
	{"in result", NULL, "", {ALWAYS}, "what became of one operation of a transaction",
	then_result},
	{"in child", NULL, "1", {ALWAYS}, "one of the queue, in a listing", then_child},
	{"in deleted", NULL, "1, 4", {ALWAYS}, "a watch tells that a znode is gone", then_node_event},
	{"in changed", NULL, "4", {ALWAYS}, "a watch tells that a znode has changed", then_node_event},
	{"in children", NULL, "6", {ALWAYS}, "a watch tells that somebody came or went",
	then_node_event},
	{"in peers", NULL, "7", {ALWAYS}, "whether words can be said and heard", then_peers},
	{"in ask", NULL, "7", {ALWAYS}, "another server asks for the word of a znode",
	then_asked_for},
	{"in word", NULL, "7", {ALWAYS},
	"if its sender made the znode: that one has departed, in the lock of the waiter",
	then_heard},
	{"in flush", NULL, "", {ALWAYS}, "the server decides, and what is kept may end", then_flush},
	{"in ", NULL, "", {ALWAYS}, "nothing that these rules are about", then_nothing},

	/* ---- the lease ---- */
	{"out lease", NULL, "2, 3, 4", {
			{"if it grows, a batch was applied, and it ends by min(c + T - T/500, s + 2T/3)",
			when_bound},
			{"if it grows, each hold's znode was seen on this connection", when_seen},
			{"if it grows, it ends by u + T - T/500, u being when an unwatched hold's znode was "
			"unmarked", when_unmarked},
			{"if it grows, nobody can have overtaken anybody of ours", when_undoubted},
	{"if it grows, no loss is told at the same time", when_no_loss}},
	"backends may act until then", then_lease},

	/* ---- what is sent to ZooKeeper ---- */
	{"out send multi", "batch", "1", {
			{"the chain is good, and the connection READY, or PROVING and this its first beat",
	when_one_beat}},
	"a batch is under way", then_send},
	{"out send multi", "chain", "1", {
			{"it is known whether the heartbeat node is as it was left, and no batch is under way",
	when_checked}},
	"the next heartbeat node is being made: OPENING", then_send},
	{"out send delete", "delete", "2", {
	{"no demand stands on the znode", when_unheld}},
	"a delete is under way", then_send},
	{"out send delete", "janitor", "2", {
	{"no request claims the znode", when_unclaimed}},
	"a delete is under way", then_send},
	{"out send delete", "reset", "2", {
	{"none of ours stands in that directory", when_no_own_node}},
	"a delete of a directory is under way", then_send},
	{"out send list", "list", "1", {
	{"the connection is READY: what is read is no older than its proof", when_proved_read}},
	"a listing is under way", then_send},
	{"out send list", "probe", "1", {
	{"the connection is READY", when_proved_read}}, "a look is under way", then_send},
	{"out send get", "watch-ahead", "1", {
	{"the connection is READY", when_proved_read}}, "a watch is being set", then_send},
	{"out send get", "watch-directory", "1", {
	{"the connection is READY", when_proved_read}}, "a watch is being set", then_send},
	{"out send get", "watch-own", "4", {
	{"the connection is READY", when_proved_read}}, "a watch is being set", then_send},
	{"out send get", "token", "1", {
	{"the connection is READY", when_proved_read}}, "a read is under way", then_send},
	{"out send", NULL, "", {ALWAYS}, "something is under way", then_send},
	{"out operation create-ephemeral", "chain", "1", {
	{"the heartbeat node has a name that was never used", when_new_beat}},
	"", then_write},
	{"out operation create-ephemeral", "batch", "1, 2", {
			{"a reader's name is made for a hold that only stays, for readers", when_over},
			{"right behind a mark in the writer's data, and the hold is not broken",
			when_to_make},
	{"a wait is published under a name that was never used", when_new_name}},
	"the znode goes on as a reader's", then_write},
	{"out operation create", "batch", "1, 7", {
			{"a batch begins with its beat", when_beat_first},
			{"its id was shown, and is of a request that waits", when_announced},
	{"it was never sent, or its transaction was refused for sure", when_unmade}},
	"the znode may exist", then_write},
	{"out operation delete", "delete-directories", "2", {
			{"none of ours stands in that directory", when_no_own_node},
	{"it is none of kazoo's clients, who make it once", when_not_kazoos}},
	"", then_write},
	{"out operation delete", "chain", "1", {ALWAYS}, "", then_write},
	{"out operation delete", "verdict", "", {
	{"a verdict checks that the deadlock still exists", when_checks}}, "", then_write},
	{"out operation delete", NULL, "2", {
			{"no demand stands on the znode, unless its reader's name is made in the same "
	"transaction", when_unheld}},
	"the znode may be gone", then_write},
	{"out operation set", "batch", "1, 4", {
			{"a batch begins with a set of the heartbeat node", when_beat_first},
			{"which expects the version that the batch before it leaves", when_version},
	{"a set of another znode names the version that was read", when_own_version}},
	"the next batch expects the next version", then_write},
	{"out operation set", NULL, "4", {
	{"a set of a znode names the version that was read", when_own_version}},
	"", then_write},
	{"out operation", NULL, "", {ALWAYS}, "", then_write},

	/* ---- requests ---- */
	{"out record", NULL, "7", {
			{"its generation is the session's", when_generation},
			{"a new id names this session, and a request that waits", when_own_id},
			{"the znode before is gone, or was never sent", when_before_gone},
			{"its number is the znode's", when_same_number},
	{"it gives its place up if it is marked, overtaken or gone", when_goes}},
	"the id is this request's", then_record},
	{"out grant", "znode", "1, 3, 4, 5", {
			{"the request waits", when_waits},
			{"the connection is READY", when_ready},
			{"the lease lasts", when_in_lease},
			{"its znode exists", when_has_node},
			{"its number is below 2^31 - 2^20", when_number_good},
			{"its znode is not marked, and in no doubt", when_place_good},
			{"it is watched, or was unmarked at u, and the lease ends by u + T - T/500", when_recent},
			{"all smaller numbers are known: from 0, by continuity, or from a listing", when_all_known},
			{"no conflicting one of others is ahead, but for departed ones", when_no_other_ahead},
			{"no conflicting one of this server is ahead", when_no_own_ahead},
			{"of a semaphore, fewer than its permits are ahead", when_permits_left},
			{"an exclusive one waits for a listing if a writer may have left a reader",
			when_not_tainted},
			{"its token is its transaction's id, known on this connection, and its place in it",
			when_token_good},
	{"its token is above those of conflicting ones before it (S2)", when_token_grows}},
	"GRANTED", then_grant},
	{"out grant", "cover", "2", {
			{"the request waits", when_waits},
			{"its owner holds the lock by a znode, in a mode that covers it, with this token",
	when_covered}},
	"GRANTED: it leans on that hold", then_cover},
	{"out blocked", NULL, "", {
			{"the request waits", when_waits}, {"it is told so once", when_together},
	{"it has a place in the queue", when_has_node}},
	"", then_blocked},
	{"out behind-cached", NULL, "", {
	{"a watched znode in its way says that it may be cached, or did so", when_behind_cached}},
	"", then_behind_cached},
	{"out deny", NULL, "1, 3", {
			{"the request waits", when_waits}, {"it is a try", when_timed_out},
			{"the connection is READY", when_ready}, {"the lease lasts", when_in_lease},
			{"a conflicting hold or wait is surely in its way: ours, a watched one, or one that "
	"a look behind a sync shows", when_in_the_way}},
	"ANSWERED", then_deny},
	{"out fail", NULL, "", {
			{"the request waits", when_waits},
			{"ZooKeeper has answered so, and not about the session", when_refused},
	{"if for want of numbers, they were at their end", when_no_number}},
	"ANSWERED", then_fail},
	{"out lose", NULL, "2, 4", {
			{"the request holds", when_granted},
			{"it is told so once (S7)", when_told_once},
	{"its session or znode is gone, or marked, overtaken, or not to be read", when_reason}},
	"no backend acts on it: ANSWERED, or broken until its release", then_lose},
	{"out free", NULL, "2", {
	{"the request is released", when_released}, {"its znode does not exist (S5)", when_node_gone}},
	"the request is free", then_free},
	{"out release-request", NULL, "", {
			{"the request holds", when_granted}, {"it is recalled", when_not_offered},
	{"that question was read in its znode, and is told once", when_question}},
	"", then_asks},
	{"out asked", NULL, "", {{"the request holds", when_granted}}, "", then_nothing},
	{"out revived", NULL, "2", {{"the request holds", when_granted}}, "", then_nothing},
	{"out offer", NULL, "6", {
			{"the connection is READY", when_ready},
			{"it holds, without bounds, and a watched listing shows its znode and no other",
			when_may_be_cached},
	{"no other session of this server wants the lock", when_alone}},
	"sessions may take the lock in shared memory", then_offer},

	/* ---- other servers ---- */
	{"out ask", NULL, "7", {
			{"messages can be sent", when_peers},
	{"for one that waits, the server that made the znode is asked", when_others_znode}},
	"", then_nothing},
	{"out word", NULL, "7", {
			{"messages can be sent", when_peers},
			{"it was asked for", when_was_asked},
			{"it was a hold's, and is over: no permit, no guard, not broken, not going on as a "
	"reader, not published", when_word}},
	"", then_nothing},

	/* ---- the connection ---- */
	{"out lost-writes", NULL, "1", {
			{"the heartbeat node is older than it was left, or gone and no later one is there",
	when_writes_lost}},
	"what was known of others is not known",
	then_lost_writes},
	{"out reconnect", NULL, "", {ALWAYS}, "DOWN: no answer counts any more", then_reconnect}
};

#define NRULES	(sizeof(rules) / sizeof(rules[0]))

/* ---- what must follow in the same event ---- */

static const char *
follows(const Server *s)
{
	static char text[200];
	const Lock *lock;
	uint32_t	i;

	for (i = 0; i < s->nrequests; i++)
	{
		snprintf(text, sizeof(text), "request %u holds no more, and is not told (S7)", i);
		if (s->requests[i].must_lose && s->requests[i].demand == GRANTED)
			return text;
	}
	for (lock = s->locks; lock != NULL; lock = lock->next)
	{
		snprintf(text, sizeof(text), "%.150s may be cached, and is not recalled (lemma 6)",
				 lock->path);
		if (lock->must_recall && lock->offered != NULL)
			return text;
	}
	if (s->must_reconnect)
		return "a connection whose answers cannot be right is not given up";
	if (s->wrong != NULL)
		return s->wrong;
	if (s->session == 0 ? s->lease != 0 : s->lease_most != 0 && s->lease > s->lease_most)
		return "the lease outlasts its session, or what its connection allows (lemma 3)";
	return NULL;
}

static void
event_over(Server *s)
{
	Lock	   *lock;
	uint32_t	i;

	s->lost_now = s->lost_writes = false;
	s->lease_bound = s->lease_most = 0;
	for (i = 0; i < s->nrequests; i++)
		s->requests[i].must_lose = false;
	for (lock = s->locks; lock != NULL; lock = lock->next)
		lock->must_recall = false;
}

/* ---- a line ---- */

static long counts[SPEC_GRANTS + 1];

static bool
begins(const char *text, const char *with)
{
	size_t		n = strlen(with);

	return strncmp(text, with, n) == 0 && (text[n] == '\0' || text[n] == ' ' || with[n - 1] == ' ');
}

static const char *
what_of(const Server *s, const Line *line, char *buf, size_t size)
{
	if (line_is(line, 1, "grant"))
		return s->r != NULL && s->r->node != NULL ? "znode" : "cover";
	if (line_is(line, 1, "operation"))
		return s->sending != NULL ? s->sending->what : "";
	return line_value(line, "for", 0, buf, size) ? buf : "";
}

static const Rule *
find_rule(const Server *s, const Line *line)
{
	char		buf[40];
	const char *what = what_of(s, line, buf, sizeof(buf));
	size_t		i;

	for (i = 0; i < NRULES; i++)
		if (begins(line->text, rules[i].line) &&
			(rules[i].what == NULL || strcmp(rules[i].what, what) == 0))
			return &rules[i];
	return NULL;
}

static const char *
refuse(const Rule *rule, const Condition *c)
{
	static char text[1500];
	const char *why = spec_why();

	snprintf(text, sizeof(text), "\"%s%s%s\" is not allowed: %s%s%s%s%s%s", rule->line,
			 rule->what ? " for " : "", rule->what ? rule->what : "", c->text,
			 rule->lemmas[0] ? " (lemma " : "", rule->lemmas, rule->lemmas[0] ? ")" : "",
			 why[0] ? "; but " : "", why);
	return text;
}

static bool
goes_on(const Line *line)
{
	return line_is(line, 0, "in") && (line_is(line, 1, "result") || line_is(line, 1, "child"));
}

static const char *
apply(Server *s, const Line *line)
{
	const Rule *rule;
	const Condition *c;
	int64_t		id = line_number(line, "request", -1);

	if (id >= MOST_REQUESTS)
		return "a request's number is too large for this reader";
	s->r = id >= 0 ? &s->requests[id] : NULL;
	if (s->r != NULL)
		s->r->id = (uint32_t) id;
	rule = find_rule(s, line);
	if (rule == NULL)
		return "no rule has such a line";
	for (c = rule->conditions; c->when != NULL; c++)
	{
		spec_because("%s", "");
		if (!c->when(s, line))
			return refuse(rule, c);
	}
	if (line_is(line, 1, "operation") && s->sending == NULL)
		return "an operation of no transaction";
	rule->change(s, line);
	return NULL;
}

static const char *
server_line(Server *s, const Line *line)
{
	const char *wrong;
	bool		in = line_is(line, 0, "in");

	if (line_is(line, 1, "begin"))
	{
		counts[SPEC_WORKERS]++;
		return apply(s, line);
	}
	if (line_is(line, 0, "process"))
	{
		s->known = false;		/* unless its worker begins with the next line */
		return NULL;
	}
	if (!s->known || (!in && !line_is(line, 0, "out")))
	{
		counts[SPEC_UNKNOWN]++;
		return NULL;
	}
	if (s->answering && !goes_on(line))
		spec_answer_over(s);
	if (!line_is(line, 1, "operation"))
		s->sending = NULL;
	if (in && !goes_on(line) && !line_is(line, 1, "recalled"))
	{
		wrong = follows(s);
		event_over(s);
		if (wrong != NULL)
			return wrong;
	}
	return apply(s, line);
}

/* A worker that was stopped may go on with a time that it had read before. */
static void
note_time(Server *s, int64_t at, int64_t now)
{
	int64_t		passed = at - s->seen_at;

	if (now < 0 || (s->seen_at != 0 && now < s->clock + passed - passed / 500 - 1000))
		return;
	s->clock = now;
	s->seen_at = at;
}

const char *
spec_line(int server, int64_t at, const char *text)
{
	const char *wrong;
	Server	   *s;
	Line		line;

	line_parse(&line, text);
	if (server < 0)
	{
		fleet_log(&line);
		return NULL;
	}
	s = spec_server(server);
	note_time(s, at, line_number(&line, "now", -1));
	wrong = server_line(s, &line);
	if (wrong != NULL || !s->known || !line_is(&line, 1, "grant"))
		return wrong;
	counts[SPEC_GRANTS]++;
	return fleet_grant(s, s->r, at);
}

long
spec_count(SpecCount what)
{
	return counts[what];
}

/* ---- the table, for people ---- */

/* Beside the table: follows(), and fleet.c */
static const char *const others[] = {
	"what follows an event, in that event",
	"a hold whose session or znode is gone is told so (S7)",
	"a cached lock is recalled when its directory changes, or this server wants it (lemma 6)",
	"a connection is given up if its answers overtake each other, or transaction ids go back",
	"the lease ends with its session, and by what a new connection allows (lemma 3)",
	"what several servers may do, and ZooKeeper's log",
	"nobody is granted a lock while another server holds it, within the lease of that (S1)",
	"the token of a grant is above those of all conflicting grants before it (S2)",
	"in the log, its znode exists, and no conflicting one that has not departed is ahead (S6)"
};

void
spec_print(void)
{
	const Condition *c;
	size_t		i;

	for (i = 0; i < NRULES; i++)
	{
		const Rule *r = &rules[i];

		printf("%s%s%s%s%s%s\n", r->line, r->what ? " for " : "", r->what ? r->what : "",
			   r->lemmas[0] ? "\t(lemma " : "", r->lemmas, r->lemmas[0] ? ")" : "");
		for (c = r->conditions; c->when != NULL; c++)
			printf("\t%s %s\n", c == r->conditions ? "when" : " and", c->text);
		if (r->then[0])
			printf("\tthen %s\n", r->then);
	}
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		printf("%s%s\n", strncmp(others[i], "what ", 5) == 0 ? "" : "\t", others[i]);
}
