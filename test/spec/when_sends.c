/*
 * when_sends.c
 *	  More conditions of the rules: for what is sent to ZooKeeper and to other servers,
 *	  and for the ends of requests.
 */
#include <string.h>

#include "when.h"

/* ---- batches and their chain ---- */

static bool
has_batch(const Server *s)
{
	const Op   *op;

	for (op = s->ops; op != NULL; op = op->next)
		if (strcmp(op->what, "batch") == 0)
			return true;
	return false;
}

bool
when_one_beat(Server *s, const Line *line)
{
	(void) line;
	return s->chain && !s->refused &&
		(s->state == READY || (s->state == PROVING && !has_batch(s)));
}

bool
when_beat_first(Server *s, const Line *line)
{
	char		path[MOST_PATH] = "";

	line_path(line, path, sizeof(path));
	return s->sending->nwrites > 0 ||
		(line_is(line, 2, "set") && s->beat != NULL && strcmp(path, s->beat) == 0);
}

bool
when_version(Server *s, const Line *line)
{
	spec_because("version %lld is next", (long long) s->version);
	return s->sending->nwrites > 0 || line_number(line, "version", -1) == s->version;
}

bool
when_checked(Server *s, const Line *line)
{
	(void) line;
	return (s->beat == NULL || s->checked) && !has_batch(s);
}

bool
when_new_beat(Server *s, const Line *line)
{
	char		path[MOST_PATH] = "";

	line_path(line, path, sizeof(path));
	return !line_is(line, 2, "create-ephemeral") || !spec_has_text(s->beats, path);
}

bool
when_proved_read(Server *s, const Line *line)
{
	(void) line;
	return s->state == READY;
}

/* ---- znodes ---- */

static Node *
written_node(Server *s, const Line *line)
{
	char		path[MOST_PATH] = "";
	const char *child;
	char		uuid[UUID_TEXT + 1];
	Lock	   *lock;

	line_path(line, path, sizeof(path));
	for (lock = s->locks; lock != NULL; lock = lock->next)
		if (spec_is_child(lock, path, &child) && name_uuid(lock->dialect, child, uuid))
			return spec_node(s, uuid);
	return NULL;
}

bool
when_announced(Server *s, const Line *line)
{
	const Node *node = written_node(s, line);

	return node != NULL && node->request != NULL && node->request->node == node &&
		node->request->demand == WAITING;
}

bool
when_unmade(Server *s, const Line *line)
{
	const Node *node = written_node(s, line);

	return node != NULL && node->state == NODE_NAMED;
}

/* The writer's name goes when the reader's is made in the same transaction. */
static bool
goes_on_as_reader(const Op *op, const Node *node)
{
	bool		marked = false;
	int			i;

	for (i = 0; op != NULL && i < op->nwrites; i++)
	{
		const Write *w = &op->writes[i];

		if (w->node != node)
			continue;
		if (strcmp(w->kind, "set") == 0)
			marked = true;
		else if (strcmp(w->kind, "create-ephemeral") == 0)
			return marked;
	}
	return false;
}

bool
when_unheld(Server *s, const Line *line)
{
	const Node *node = written_node(s, line);
	const Request *r = node != NULL ? node->request : NULL;
	bool		transaction = line_is(line, 1, "operation");

	if (r == NULL || r->node != node)
		return true;
	spec_because("it is request %u's", r->id);
	if (r->demand == WAITING)
		return node->going;
	return r->demand != GRANTED || (transaction && goes_on_as_reader(s->sending, node));
}

/* A downgrade: those that lean on it share the lock. */
bool
when_over(Server *s, const Line *line)
{
	const Node *node = written_node(s, line);
	uint32_t	i;

	if (node == NULL)
		return true;
	if (node->request == NULL || !node->request->stays)
		return false;
	for (i = 0; i < s->nrequests; i++)
		if (s->requests[i].cover == node->request && s->requests[i].demand == GRANTED &&
			s->requests[i].exclusive)
			return false;
	return true;
}

bool
when_to_make(Server *s, const Line *line)
{
	const Node *node = written_node(s, line);
	const Op   *op = s->sending;

	return node == NULL || (!node->request->broken && op->nwrites > 0 && op->writes[op->nwrites - 1].node == node &&
							strcmp(op->writes[op->nwrites - 1].kind, "set") == 0);
}

bool
when_new_name(Server *s, const Line *line)
{
	char		path[MOST_PATH] = "";

	line_path(line, path, sizeof(path));
	return written_node(s, line) != NULL || !spec_has_text(s->publications, path);
}

/* Beside the heartbeat node, which proves the session */
bool
when_checks(Server *s, const Line *line)
{
	int			n = 0,
				i;

	(void) line;
	for (i = 0; i < s->sending->nwrites; i++)
		n += strcmp(s->sending->writes[i].kind, "check") == 0;
	return n >= 2;
}

bool
when_writes_lost(Server *s, const Line *line)
{
	(void) line;
	return s->lost_writes;
}

bool
when_own_version(Server *s, const Line *line)
{
	return written_node(s, line) == NULL || line_number(line, "version", -1) >= 0;
}

bool
when_unclaimed(Server *s, const Line *line)
{
	const Node *node = written_node(s, line);
	const Request *r = node != NULL ? node->request : NULL;
	char		path[MOST_PATH] = "";

	line_path(line, path, sizeof(path));
	if (node == NULL || node->state == NODE_GONE || r == NULL || r->node != node ||
		r->demand == RELEASED || r->demand == ANSWERED)
		return true;
	spec_because("it is request %u's", r->id);
	return !node->exclusive &&
		name_is_exclusive(node->lock->dialect, strrchr(path, '/') + 1);
}

bool
when_no_own_node(Server *s, const Line *line)
{
	char		path[MOST_PATH] = "";
	uint32_t	i;

	line_path(line, path, sizeof(path));
	for (i = 0; i < s->nrequests; i++)
	{
		const Request *r = &s->requests[i];

		spec_because("request %u", r->id);
		if (r->lock != NULL && strcmp(r->lock->path, path) == 0 && spec_in_queue(r))
			return false;
	}
	return true;
}

/* Its clients make a directory once, and rely on it then. */
bool
when_not_kazoos(Server *s, const Line *line)
{
	char		path[MOST_PATH] = "";
	const Lock *lock;

	line_path(line, path, sizeof(path));
	for (lock = s->locks; lock != NULL; lock = lock->next)
		if (lock->dialect == KAZOO && strcmp(lock->path, path) == 0)
			return false;
	return true;
}

/* ---- what is shown of a request ---- */

static bool
is_new(Server *s, const Line *line)
{
	char		uuid[UUID_TEXT + 1];

	return line_value(line, "uuid", 0, uuid, sizeof(uuid)) && spec_node(s, uuid) == NULL;
}

bool
when_own_id(Server *s, const Line *line)
{
	char		uuid[UUID_TEXT + 1] = "";

	if (!is_new(s, line))
		return true;
	line_value(line, "uuid", 0, uuid, sizeof(uuid));
	return name_session(uuid) == s->session && s->session != 0 && s->r->demand == WAITING;
}

bool
when_before_gone(Server *s, const Line *line)
{
	const Node *node = s->r->node;

	return !is_new(s, line) || node == NULL || node->state == NODE_GONE ||
		node->state == NODE_NAMED;
}

bool
when_same_number(Server *s, const Line *line)
{
	char		uuid[UUID_TEXT + 1];
	int64_t		number = line_number(line, "number", -1);
	const Node *node;

	if (number < 0 || !line_value(line, "uuid", 0, uuid, sizeof(uuid)))
		return true;
	node = spec_node(s, uuid);
	if (node == NULL)
		return false;
	spec_because("its number is %lld", (long long) node->seq);
	return node->seq == number;
}

bool
when_goes(Server *s, const Line *line)
{
	const Node *node = s->r->node;

	return !line_has(line, "going") || is_new(s, line) || node == NULL ||
		node->marked || node->overtaken || node->state == NODE_GONE ||
		node->state == NODE_UNSETTLED;
}

bool
when_generation(Server *s, const Line *line)
{
	return line_number(line, "generation", -1) == s->generation;
}

/* ---- ends ---- */

bool
when_told_once(Server *s, const Line *line)
{
	(void) line;
	return !s->r->stays && (!s->r->broken || s->r->kept);
}

bool
when_reason(Server *s, const Line *line)
{
	const Node *node = spec_node_of(s->r);

	if (line_has(line, "failure=session-expired"))
		return s->session == 0;
	if (node == NULL)
		return false;
	if (line_has(line, "failure=node-deleted"))
		return node->state == NODE_GONE && s->session != 0;
	if (line_has(line, "failure=broken"))
		return node->marked;
	if (line_has(line, "failure=overtaken"))
		return node->overtaken;
	return line_has(line, "failure=unreadable") && node->unreadable;
}

bool
when_released(Server *s, const Line *line)
{
	(void) line;
	return s->r->demand == RELEASED || (s->r->kept && s->r->kept_until <= s->now);
}

bool
when_node_gone(Server *s, const Line *line)
{
	const Node *node = s->r->node;

	(void) line;
	return node == NULL || node->state == NODE_GONE || node->state == NODE_NAMED ||
		!(node->may_exist[0] || node->may_exist[1]);
}

/* ---- other servers, and people ---- */

bool
when_peers(Server *s, const Line *line)
{
	(void) line;
	return s->peers;
}

bool
when_word(Server *s, const Line *line)
{
	char		uuid[UUID_TEXT + 1] = "";
	const Node *node;

	line_value(line, "uuid", 0, uuid, sizeof(uuid));
	node = spec_node(s, uuid);
	if (node != NULL && node->request != NULL && node->request->node == node &&
		node->request->kept && node->request->kept_until <= s->now)
		return spec_may_tell(s, node->request);
	return node != NULL && node->word;
}

bool
when_was_asked(Server *s, const Line *line)
{
	char		uuid[UUID_TEXT + 1] = "";
	char		waiter[UUID_TEXT + 1] = "";
	char		text[128] = "";

	line_value(line, "session", 0, text, 40);
	line_value(line, "uuid", 0, uuid, sizeof(uuid));
	line_value(line, "uuid", 1, waiter, sizeof(waiter));
	strcat(strcat(strcat(text, " "), uuid), waiter);
	return spec_has_text(s->asks, text);
}

static bool
exists_and_waits(const Node *node)
{
	return node->state == NODE_EXISTS && node->request != NULL &&
		node->request->demand == WAITING;
}

bool
when_others_znode(Server *s, const Line *line)
{
	char		uuid[UUID_TEXT + 1] = "";
	char		waiter[UUID_TEXT + 1] = "";
	const Node *node;

	line_value(line, "uuid", 0, uuid, sizeof(uuid));
	line_value(line, "uuid", 1, waiter, sizeof(waiter));
	node = spec_node(s, waiter);
	return node != NULL && exists_and_waits(node) && name_session(uuid) != s->session &&
		line_number(line, "session", 0) == name_session(uuid);
}

/* Amid a question: whom it is put to, and that it is put once */
bool
when_question(Server *s, const Line *line)
{
	const Node *node = spec_node_of(s->r);
	int64_t		zxid = line_number(line, "zxid", 0);

	return node != NULL && !s->r->broken && node->asked == zxid && s->r->told_zxid != zxid;
}

/* ---- cached locks ---- */

bool
when_not_offered(Server *s, const Line *line)
{
	(void) line;
	return s->r->lock->offered != s->r;
}

bool
when_may_be_cached(Server *s, const Line *line)
{
	const Request *r = s->r;

	(void) line;
	return r->plain && spec_holds(r) && !r->kept && r->node != NULL &&
		r->lock->alone_at != 0 && r->node->seen == r->lock->alone_at;
}

bool
when_alone(Server *s, const Line *line)
{
	uint32_t	i;

	(void) line;
	for (i = 0; i < s->nrequests; i++)
		if (&s->requests[i] != s->r && s->requests[i].lock == s->r->lock)
			return false;
	return true;
}

bool
when_token_room(Server *s, const Line *line)
{
	int64_t		token = line_number(line, "token", 0);

	spec_because("it was %lld", (long long) s->r->token);
	return s->r->demand != GRANTED ||
		(token >= s->r->token && token / s->tokens == s->r->token / s->tokens);
}
