/*
 * chaos.c
 *	  What goes wrong in a simulation: faults, vandals and operators.
 *
 * Owns the choice of faults.  Each seed has a few kinds of them only, and its
 * own sizes: what is rare altogether is then frequent in some seeds.
 */
#include <stdio.h>
#include <string.h>

#include "backend.h"
#include "chaos.h"
#include "oracle.h"

typedef struct Chaos
{
	Time		at;
	Time		every;
	Time		end;
	Time		heal_at[MAX_SERVERS];
	int			weights[64];
	int			sum;
	char		strangers[8][64];
	int			nstrangers;
	Path	   *breaking;		/* the node that an operator has marked */
	Time		break_at;		/* and deletes then ... */
	int32_t		break_version;	/* ... if it is still marked */
} Chaos;

static Chaos chaos;

static Host *
some_host(void)
{
	return &hosts.host[below(hosts.n)];
}

static Backend *
some_backend(void)
{
	return &backends.backend[below(hosts.n)][below(backends.per_host)];
}

/* A while: mostly short, seldom beyond the session's timeout */
static Time
a_while(void)
{
	switch (below(4))
	{
		case 0:
			return below(ens.timeout / 50);
		case 1:
			return below(ens.timeout / 3);
		case 2:
			return below(ens.timeout);
		default:
			return below(2 * ens.timeout);
	}
}

/* ---- connections and processes ---- */

static void
reset_conn(Conn *c)
{
	if (c == NULL)
		return;
	conn_cut(c, true);
	client_gone(c);
}

static void
do_reset(void)
{
	reset_conn(some_host()->conn);
}

static void
do_freeze(void)
{
	Host	   *h = some_host();

	if (h->conn == NULL)
		return;
	h->conn->frozen_until = base.now + a_while();
	trace("conn #: frozen", h->conn->id, 0, 0, 0, NULL);
}

static void
do_kill_session_process(void)
{
	Host	   *h = some_host();

	if (h->m != NULL)
		session_process_kill(h);
}

static void
do_kill_worker(void)
{
	worker_kill(some_host(), base.now + below(SECOND));
}

static void
do_stop_worker(void)
{
	Host	   *h = some_host();

	h->stopped_until = base.now + a_while();
	trace("host #: worker stopped", h->id, 0, 0, 0, NULL);
}

static void
do_stop_worker_amid(void)
{
	some_host()->stop_after = (int) below(4);
}

static void
do_stop_backend(void)
{
	some_backend()->stopped_until = base.now + a_while();
}

static void
do_kill_backend(void)
{
	Backend    *b = some_backend();

	if (hosts.host[b->host].up)
		backend_die(b);
}

static void
do_crash_host(void)
{
	Host	   *h = some_host();

	if (h->up)
		host_crash(h, base.now + a_while());
}

/* ---- the ensemble ---- */

static int
servers_out(void)
{
	int			n = 0;
	int			i;

	for (i = 0; i < ens.nservers; i++)
		n += ens.servers[i].state != SERVER_JOINED;
	return n;
}

static void
do_lose_leader(void)
{
	int			old = ens.leader;
	Time		until = base.now + below(ens.timeout / 2);

	if (old < 0 || servers_out() > 0)
		return;
	ensemble_lose_leader(!once_in(3), ens.nservers == 1 ? NEVER : until);
	chaos.heal_at[old] = base.now + a_while() + ens.timeout / 10;
	if (ens.nservers == 1)
		ens.elect_at = chaos.heal_at[old] + 1;
}

static void
do_lose_quorum(void)
{
	int			old = ens.leader;

	if (old < 0 || servers_out() > 0)
		return;
	chaos.heal_at[old] = base.now + a_while();
	ensemble_lose_leader(true, chaos.heal_at[old] + below(SECOND));
}

static void
lose_follower(bool down)
{
	int			i = (int) below(ens.nservers);

	if (i == ens.leader || ens.leader < 0 || servers_out() > 0)
		return;
	ensemble_cut(i, down);
	chaos.heal_at[i] = base.now + a_while();
}

static void
do_cut_follower(void)
{
	lose_follower(false);
}

static void
do_stop_follower(void)
{
	lose_follower(true);
}

void
chaos_cut_rack(Host *h)
{
	Time		until = base.now + a_while();

	h->cut_at_grant = false;
	if (h->conn == NULL || h->conn->server == ens.leader ||
		ens.leader < 0 || servers_out() > 0)
		return;
	trace("host #: cut off with its server", h->id, 0, 0, 0, NULL);
	h->conn->frozen_until = until;
	chaos.heal_at[h->conn->server] = until;
	ensemble_cut(h->conn->server, false);
}

/*
 * As when a rack is cut off.  The worst moment is when the host relies on a
 * lease of which the leader has not yet heard.
 */
static void
do_cut_rack(void)
{
	Host	   *h = some_host();

	if (once_in(2))
		chaos_cut_rack(h);
	else
		h->cut_at_grant = true;
}

static void
do_pause_follower(void)
{
	int			i = (int) below(ens.nservers);

	if (i != ens.leader)
		ens.servers[i].paused_until = base.now + a_while() / 2;
}

static void
do_wipe(void)
{
	if (ens.leader < 0 || servers_out() > 0)
		return;
	oracle_wiped();
	ensemble_wipe();
}

static void
do_reap(void)
{
	ens.reap_at = base.now;
}

/* ---- vandals, operators, strangers ---- */

/* A node of a zklock server: a contender, or a heartbeat */
static Path *
some_own_node(bool heartbeat)
{
	Path	   *path;
	Path	   *found = NULL;
	int			n = 0;

	for (path = path_first(); path != NULL; path = path->all)
	{
		const Node *node = &path->node[HEAD];
		const Session *session = session_find(node->stat.ephemeral_owner);

		if (node->exists && session != NULL && session->host >= 0 &&
			heartbeat == (strcmp(path->parent->name, ".servers") == 0) &&
			once_in(++n))
			found = path;
	}
	return found;
}

static void
vandalize(OpKind kind, const Path *path)
{
	Op			op = {.kind = kind,.version = -1,.data = "x",.length = 1};

	if (path == NULL)
		return;
	op.path = path->text;
	trace(kind == OP_DELETE ? "vandal: deletes @" : "vandal: sets @", 0, 0, 0,
		  0, path->text);
	(void) ensemble_write(&op, true);
}

static void
do_delete_own(void)
{
	vandalize(OP_DELETE, some_own_node(false));
}

static void
do_set_own(void)
{
	vandalize(OP_SET, some_own_node(false));
}

static void
do_delete_heartbeat(void)
{
	vandalize(OP_DELETE, some_own_node(true));
}

static void
do_set_heartbeat(void)
{
	vandalize(OP_SET, some_own_node(true));
}

static void
do_set_directory(void)
{
	vandalize(OP_SET, lock_path((int) below(hosts.nlocks)));
}

static void
create_directory(int lock)
{
	Op			op = {.kind = OP_CREATE,.data = "",.container = true};
	Path	   *parents[8];
	Path	   *path;
	int			n = 0;

	for (path = lock_path(lock); path->parent != NULL; path = path->parent)
		parents[n++] = path;
	while (n > 0)
	{
		op.path = parents[--n]->text;
		(void) ensemble_write(&op, true);
	}
}

/* Only an empty one can be deleted. */
static void
do_recreate_directory(void)
{
	int			lock = (int) below(hosts.nlocks);
	Path	   *path = lock_path(lock);
	int			children;

	if (ens.leader < 0)
		return;
	vandalize(OP_DELETE, path);
	if (path->node[HEAD].exists || once_in(3))
		return;
	create_directory(lock);

	/* with a past of its own, so that numbers come again */
	for (children = (int) below(4); children > 0; children--)
	{
		Op			op = {.kind = OP_CREATE,.data = "",.version = -1};
		char		name[128];

		snprintf(name, sizeof(name), "%s/x%" PRIu64, path->text, random64());
		op.path = take_string(name);
		(void) ensemble_write(&op, true);
		op.kind = OP_DELETE;
		(void) ensemble_write(&op, true);
	}
}

static void
do_stranger(void)
{
	char	   *name = chaos.strangers[chaos.nstrangers % 8];
	Op			op = {.kind = OP_CREATE,.data = "",.version = -1};

	if (ens.leader < 0)
		return;
	if (chaos.nstrangers++ >= 8)
	{
		op.kind = OP_DELETE;
		op.path = name;
		(void) ensemble_write(&op, true);
	}
	snprintf(name, sizeof(chaos.strangers[0]), "%s/stranger%d",
			 lock_path((int) below(hosts.nlocks))->text, chaos.nstrangers);
	op.kind = OP_CREATE;
	op.path = take_string(name);
	(void) ensemble_write(&op, true);
}

static void
do_kill_session(void)
{
	Session    *session = session_find(some_host()->session);

	if (session == NULL || !session->alive)
		return;
	trace("vandal: closes session #", session->id, 0, 0, 0, NULL);
	ensemble_end_session(session, true);
}

/* One that goes on as a reader just now cannot be broken so easily. */
static void
break_foreign(const Path *path, const ZklUuid *owner)
{
	Op			op = {.kind = OP_DELETE,.path = path->text,.version = -1};
	int			i;

	for (i = 0; i < foreigners.n; i++)
	{
		Foreign    *f = &foreigners.foreign[i];

		if (memcmp(&f->uuid, owner, sizeof(*owner)) != 0)
			continue;
		if (f->phase == FOREIGN_DOWNGRADING || f->mode == ZKL_SHARED)
			return;
		f->broken = true;
	}
	(void) ensemble_write(&op, false);
}

static void
mark(Path *head)
{
	static const char data[] = "{\"breaking\":true}";
	Op			op = {.kind = OP_SET,.version = -1,.path = head->text,
	.data = data,.length = sizeof(data) - 1};

	if (ensemble_write(&op, false) != ZKL_RC_OK)
		return;
	chaos.breaking = head;
	chaos.break_version = head->node[HEAD].version;
	chaos.break_at = base.now + ens.timeout + below(ens.timeout / 4);
}

/* As zk_break_lock() does it: mark the head, wait for its owner, delete it. */
static void
do_break_lock(void)
{
	Path	   *path = lock_path((int) below(hosts.nlocks))->children;
	Path	   *head = NULL;
	ZklSeq		best = ZKL_SEQ_NONE;
	ZklUuid		owner = {{0}};

	for (; path != NULL; path = path->sibling)
	{
		ZklLockMode mode;
		ZklSeq		seq;
		bool		has_uuid;
		ZklUuid		uuid;

		if (path->node[HEAD].exists &&
			zkl_znode_parse(path->name, &mode, &seq, &has_uuid, &uuid) &&
			seq < best)
		{
			head = path;
			best = seq;
			owner = uuid;
		}
	}
	if (chaos.breaking != NULL || head == NULL || ens.leader < 0)
		return;
	trace("operator: breaks @", 0, 0, 0, 0, head->text);
	if (!zkl_uuid_is_zklock(&owner))
	{
		/* Other clients look at no mark. */
		break_foreign(head, &owner);
		return;
	}
	mark(head);
}

static void
finish_break(void)
{
	Op			op = {.kind = OP_DELETE,.version = chaos.break_version};
	int32_t		rc;

	op.path = chaos.breaking->text;
	chaos.break_at = base.now + ens.timeout / 20;
	rc = ensemble_write(&op, false);
	if (rc == ZKL_RC_UNKNOWN)
		return;
	if (rc == ZKL_RC_BADVERSION)
	{
		mark(chaos.breaking);
		return;
	}
	trace("operator: deletes @", 0, 0, 0, 0, op.path);
	chaos.breaking = NULL;
	chaos.break_at = NEVER;
}

static void
do_accept_lower_tokens(void)
{
	host_accept_lower_tokens(some_host());
}

/* The counter has come far: it never goes back. */
static void
do_jump(void)
{
	Path	   *path = lock_path((int) below(hosts.nlocks));
	int32_t		counter = (int32_t) (ZKL_SEQ_LIMIT - below(4));
	int			tree;

	if (!path->node[HEAD].exists || path->node[HEAD].counter >= counter)
		return;
	for (tree = 0; tree <= HEAD; tree++)
		if (!path->node[tree].exists ||
			path->node[tree].stat.czxid != path->node[HEAD].stat.czxid)
			return;
	trace("vandal: the counter of @ jumps to #", counter, 0, 0, 0,
		  path->text);
	for (tree = 0; tree <= HEAD; tree++)
		path->node[tree].counter = counter;
}

/* ---- other clients ---- */

static void
do_reset_foreign(void)
{
	if (foreigners.n > 0)
		reset_conn(foreigners.foreign[below(foreigners.n)].conn);
}

static void
do_freeze_foreign(void)
{
	Foreign    *f = &foreigners.foreign[below(MAX_FOREIGN)];

	if (f->conn != NULL)
		f->conn->frozen_until = base.now + a_while();
}

/* ---- the choice ---- */

static const struct
{
	void		(*happen) (void);
	int			weight;			/* in a seed that has it */
	int			one_in;			/* seeds that have it */
}			faults[] = {
	{do_reset, 8, 2},
	{do_freeze, 6, 2},
	{do_kill_session_process, 6, 3},
	{do_kill_worker, 4, 3},
	{do_stop_worker, 5, 3},
	{do_stop_worker_amid, 4, 3},
	{do_stop_backend, 4, 3},
	{do_kill_backend, 4, 3},
	{do_crash_host, 2, 6},
	{do_lose_leader, 4, 3},
	{do_lose_quorum, 2, 6},
	{do_cut_follower, 4, 3},
	{do_stop_follower, 3, 4},
	{do_cut_rack, 5, 3},
	{do_pause_follower, 5, 3},
	{do_wipe, 1, 40},
	{do_accept_lower_tokens, 2, 10},
	{do_break_lock, 4, 6},
	{do_reap, 6, 3},
	{do_delete_own, 4, 8},
	{do_set_own, 3, 8},
	{do_delete_heartbeat, 3, 8},
	{do_set_heartbeat, 3, 8},
	{do_set_directory, 3, 6},
	{do_recreate_directory, 8, 4},
	{do_stranger, 6, 5},
	{do_kill_session, 2, 10},
	{do_jump, 3, 10},
	{do_reset_foreign, 5, 4},
	{do_freeze_foreign, 5, 4}
};

#define NFAULTS ((int) (sizeof(faults) / sizeof(faults[0])))

static Time
pick(const Time *from, int n)
{
	return from[below(n)];
}

#define PICK(...) \
	pick((const Time[]) {__VA_ARGS__}, \
		 (int) (sizeof((const Time[]) {__VA_ARGS__}) / sizeof(Time)))

static void
draw_ensemble(void)
{
	ens.tick = PICK(SECOND, 2 * SECOND, 3 * SECOND);
	ens.timeout = ens.tick * PICK(2, 3, 5);
	base.longest = ens.timeout;
	ens.nservers = (int) PICK(1, 3, 3, 3);
	ens.leader = (int) below(ens.nservers);
	ens.leader_ppm = (int) below(2001) - 1000;
	ens.net = PICK(100, 500, 2 * MS, 20 * MS);
	ens.decide = PICK(50, MS, 10 * MS);
	ens.lag = PICK(50, MS, 50 * MS, 500 * MS);
	ens.late = PICK(MS, SECOND, 2 * ens.timeout);
	ens.late_after_move = once_in(4);
	if (once_in(3))
	{
		ens.reap_every = PICK(ens.timeout / 10, ens.timeout);
		ens.reap_at = base.now;
	}
}

static void
draw_hosts(void)
{
	int			i;

	memset(&hosts, 0, sizeof(hosts));
	memset(&backends, 0, sizeof(backends));
	memset(&foreigners, 0, sizeof(foreigners));
	hosts.n = (int) PICK(1, 2, 2, 3);
	hosts.nlocks = (int) PICK(1, 1, 2, 3);
	hosts.batches_in_flight = (uint32_t) PICK(1, 2, 2, 3);
	hosts.batch_operations = (uint32_t) PICK(2, 3, 6, 256);
	hosts.max_directories = (uint32_t) PICK(0, 1, 16);
	hosts.wake_delay = PICK(20, 200, 5 * MS);
	backends.per_host = (int) PICK(1, 2, 4, 6);
	backends.think = ens.timeout / PICK(100, 20, 4);
	backends.hold = ens.timeout / PICK(200, 20, 4, 2);
	backends.patience = ens.timeout / PICK(1000, 50, 2);
	backends.shared = (int) PICK(0, 30, 70);
	backends.tries = (int) PICK(0, 20, 60);
	backends.cancels = (int) PICK(0, 20, 60);
	backends.nested = (int) PICK(0, 0, 30, 60);
	foreigners.n = (int) PICK(0, 1, 2, 4);
	foreigners.think = ens.timeout / PICK(20, 4);
	foreigners.hold = ens.timeout / PICK(50, 4);
	foreigners.shared = (int) PICK(0, 30, 70);
	foreigners.downgrades = (int) PICK(0, 50);
	foreigners.deaths = (int) PICK(0, 20);
	for (i = 0; i < hosts.n; i++)
	{
		hosts.host[i].id = i;
		hosts.host[i].offset = below(100) * SECOND;
		hosts.host[i].ppm = (int) below(2001) - 1000;
	}
}

static void
draw_faults(void)
{
	int			i;

	memset(&chaos, 0, sizeof(chaos));
	chaos.every = ens.timeout / PICK(2, 5, 20);
	chaos.end = base.now + ens.timeout * PICK(3, 6, 10);
	chaos.at = base.now + some_delay(chaos.every);
	for (i = 0; i < NFAULTS; i++)
	{
		if (once_in(faults[i].one_in))
			chaos.weights[i] = faults[i].weight * (int) PICK(1, 1, 1, 5);
		chaos.sum += chaos.weights[i];
	}
	for (i = 0; i < MAX_SERVERS; i++)
		chaos.heal_at[i] = NEVER;
	chaos.break_at = NEVER;
}

void
chaos_begin(void)
{
	int			i;

	draw_ensemble();
	draw_hosts();
	draw_faults();
	ensemble_elect(ens.leader);
	for (i = 0; i < hosts.n; i++)
		host_start(&hosts.host[i]);
	foreign_start();
}

/* ---- time ---- */

Time
chaos_end(void)
{
	return chaos.end;
}

Time
chaos_due(void)
{
	Time		due = chaos.at < chaos.break_at ? chaos.at : chaos.break_at;
	int			i;

	for (i = 0; i < ens.nservers; i++)
		due = chaos.heal_at[i] < due ? chaos.heal_at[i] : due;
	return due;
}

void
chaos_step(void)
{
	int64_t		dice;
	int			i;

	for (i = 0; i < ens.nservers; i++)
		if (chaos.heal_at[i] <= base.now)
		{
			chaos.heal_at[i] = NEVER;
			ensemble_join(i);
			return;
		}
	if (chaos.break_at <= base.now)
	{
		finish_break();
		return;
	}
	chaos.at = base.now + some_delay(chaos.every);
	if (chaos.sum == 0)
		return;
	dice = below(chaos.sum);
	for (i = 0; dice >= chaos.weights[i]; i++)
		dice -= chaos.weights[i];
	faults[i].happen();
}

/* ---- the end ---- */

static void
calm_hosts(void)
{
	int			i;

	for (i = 0; i < hosts.n; i++)
	{
		Host	   *h = &hosts.host[i];

		h->stopped_until = 0;
		h->stop_after = -1;
		h->cut_at_grant = false;
		host_accept_lower_tokens(h);
		if (!h->up)
			h->up_at = base.now;
		else if (h->m == NULL)
			h->worker_at = base.now;
	}
}

void
chaos_calm(void)
{
	Op			op = {.kind = OP_DELETE,.version = -1};
	int			i;

	trace("calm", 0, 0, 0, 0, NULL);
	base.calm = true;
	base.calm_since = base.now;
	chaos.at = NEVER;
	ens.reap_every = ens.reap_at = NEVER;
	for (i = 0; i < ens.nservers; i++)
	{
		chaos.heal_at[i] = NEVER;
		ens.servers[i].paused_until = 0;
		ensemble_join(i);
	}
	if (ens.leader < 0)
		ensemble_elect(-1);
	for (i = 0; i < MAX_CONNS; i++)
		ens.conns[i].frozen_until = 0;
	for (i = 0; i < 8 && i < chaos.nstrangers; i++)
	{
		op.path = chaos.strangers[i];
		(void) ensemble_write(&op, true);
	}
	calm_hosts();
	backends_calm();
	foreign_calm();
}
