/*
 * oracle.c
 *	  Of the rules, those on holders, looked after at every step of the
 *	  simulation: S1, S2, S3, S6, S7.
 *
 * Owns the tokens seen so far.  Must not know how the core decides.
 */
#include <string.h>

#include "backend.h"
#include "faults.h"
#include "oracle.h"
#include "seen.h"
#include "sight.h"

/* The largest tokens granted, for each of the last holders */
#ifndef MAX_HOLDERS
#define MAX_HOLDERS 128
#endif

typedef struct Tokens
{
	uint64_t	owner[MAX_HOLDERS]; /* 0: of all that were forgotten */
	int64_t		largest[MAX_HOLDERS][2];	/* by mode */
	int			next;
} Tokens;

static Tokens tokens[MAX_LOCKS];

void
oracle_begin(void)
{
	memset(tokens, 0, sizeof(tokens));
	oracle_told_begin();
	oracle_words_begin();
	oracle_promises_begin();
}

/* ---- S1: no two holders ---- */

static void
check_pair(const Host *h, int i, const Host *other, int j)
{
	const Slot *a = &h->slots[i];
	const Slot *b = &other->slots[j];

	if (a != b && a->lock == b->lock && !same_owner(a, b) &&
		lock_conflicts(a->lock, a->mode, b->mode) && holds(other, j))
		broken("S1", "host %d slot %d and host %d slot %d hold %s together",
			   h->id, i, other->id, j, lock_name(a->lock));
}

/* ---- S1 of a semaphore: no more holders than it has permits ---- */

static void
check_count(void)
{
	uint32_t	n = 0;
	int			i,
				j;

	for (i = 0; i < hosts.n; i++)
		for (j = 0; j < MAX_SLOTS; j++)
			n += hosts.host[i].slots[j].lock == hosts.semaphore &&
				holds(&hosts.host[i], j);
	for (i = 0; i < foreigners.n; i++)
		n += foreigners.foreign[i].lock == hosts.semaphore &&
			foreign_holds(&foreigners.foreign[i]);
	if (n + oracle_promises_left(hosts.semaphore) > hosts.max)
		broken(n > hosts.max ? "S1" : "S12", "%u permits of %s are held, of %u", n,
			   lock_name(hosts.semaphore), hosts.max);
}

static void
check_alone(const Host *h, int i)
{
	const Slot *s = &h->slots[i];
	int			j,
				k;

	if (!holds(h, i))
		return;
	if (s->lock == hosts.semaphore)
	{
		check_count();
		return;
	}
	for (j = 0; j < hosts.n; j++)
		for (k = 0; k < MAX_SLOTS; k++)
			check_pair(h, i, &hosts.host[j], k);
	for (j = 0; j < foreigners.n; j++)
	{
		const Foreign *f = &foreigners.foreign[j];

		if (foreign_holds(f) && f->lock == s->lock &&
			zkl_mode_conflicts(f->mode, s->mode))
			broken("S1", "host %d slot %d and client %d hold %s together",
				   h->id, i, j, lock_name(s->lock));
	}
}

/*
 * Were the host cut off just now together with its server, then the leader
 * would end the session when it knows to now.  No lease may outlast that.
 */
static void
check_outlived(const Host *h)
{
	const Session *session = session_find(h->worker.session.id);
	Time		until = host_true_time(h, h->lease_ms * MS);

	if (ens.leader >= 0 && session != NULL && session->alive &&
		h->lease_generation == h->worker.session.generation && until > session->may_end_at)
		broken("S1", "the lease of host %d ends %" PRId64
			   " us after its session may", h->id, until - session->may_end_at);
}

void
oracle_lease(Host *h)
{
	int			i;

	check_outlived(h);
	for (i = 0; i < MAX_SLOTS; i++)
		check_alone(h, i);
}

void
oracle_attached(const Host *h)
{
	check_outlived(h);
}

/* The next worker's session waits for the end of the one that is left. */
void
oracle_left(Host *h)
{
	h->left_session = h->worker.session.id;
	h->left_until = host_clock(h) + h->timeout;
}

void
oracle_new_session(const Host *h)
{
	const Session *left = session_find(h->left_session);

	if (left != NULL && left->alive && host_clock(h) < h->left_until)
		broken("S6", "host %d stands behind what the session before has left", h->id);
}

void
oracle_slewed(const Host *h)
{
	check_outlived(h);
}

void
oracle_foreign_hold(const Foreign *f)
{
	int			i,
				j;

	if (f->lock == hosts.semaphore)
		check_count();
	else if (foreign_holds(f))
		oracle_promise_kept(f->lock, f->mode, NULL, 0);
	for (i = 0; foreign_holds(f) && i < hosts.n; i++)
		for (j = 0; j < MAX_SLOTS; j++)
		{
			const Slot *s = &hosts.host[i].slots[j];

			if (s->lock == f->lock &&
				lock_conflicts(f->lock, s->mode, f->mode) &&
				holds(&hosts.host[i], j))
				broken("S1", "client %d and host %d slot %d hold %s together",
					   f->id, i, j, lock_name(s->lock));
		}
}

/* ---- S7: a new session invalidates everything ---- */

void
oracle_session(Host *h)
{
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
		if (h->slots[i].state == SLOT_GRANTED &&
			h->slots[i].record.generation != h->worker.session.generation)
			broken("S7", "host %d slot %d: its hold outlives its session",
				   h->id, i);
}

/* ---- S2: tokens of conflicting grants grow ---- */

static void
check_token(Slot *s)
{
	Tokens	   *t = &tokens[s->lock];
	int			mine = -1;
	int			i;

	/*
	 * One that leans on another hold shares its token, which was counted.  A
	 * revived one cannot know of those who got the lock and have left.
	 */
	if (s->counted || !s->record.sent || s->lock == hosts.semaphore || s->revived)
		return;
	s->counted = true;
	for (i = 0; i < MAX_HOLDERS; i++)
	{
		if (t->owner[i] == s->owner)
			mine = i;
		else if (t->largest[i][ZKL_EXCLUSIVE] >= s->token ||
				 (s->mode == ZKL_EXCLUSIVE &&
				  t->largest[i][ZKL_SHARED] >= s->token))
			broken("S2", "token %" PRId64 " of %s is not above that of owner %"
				   PRIu64, s->token, lock_name(s->lock), t->owner[i]);
	}
	if (mine < 0)
	{
		mine = t->next = t->next % (MAX_HOLDERS - 1) + 1;
		for (i = 0; i < 2; i++)
			if (t->largest[mine][i] > t->largest[0][i])
				t->largest[0][i] = t->largest[mine][i];
		t->largest[mine][0] = t->largest[mine][1] = 0;
		t->owner[mine] = s->owner;
	}
	if (s->token > t->largest[mine][s->mode])
		t->largest[mine][s->mode] = s->token;
}

/*
 * The end of its session is lost, so others may have had the lock.  Its server has to
 * notice those whose znodes are still there; what comes back later, because ZooKeeper
 * has lost yet another end of a session, was not there to be noticed.
 */
static void
check_overtaken(const Host *h, int i)
{
	const Slot *s = &h->slots[i];
	const Session *session = session_find(h->worker.session.id);
	Path	   *path;

	if (!s->revived || !s->record.sent || s->tampered || s->lock == hosts.semaphore)
		return;
	for (path = lock_path(s->lock)->children; path; path = path->sibling)
	{
		const Contender *c = contender_of(path);
		const Node *node = &path->node[HEAD];

		if (node->exists && c->counts && c->granted && c->seq > s->record.seq &&
			session != NULL && c->revived_at <= session->revived_at &&
			zkl_mode_conflicts(c->mode, s->mode) && !operators_broke(&c->uuid) &&
			host_of_session(node->stat.ephemeral_owner) != h)
			broken("S2", "host %d slot %d has %s, and %s had it meanwhile", h->id, i,
				   lock_name(s->lock), path->text);
	}
}

/* ---- S6 and more of S1: what a grant stands on ---- */

/* Another contender that is in the way of a grant, at the head of the log */
static bool
in_the_way(const Host *h, const Slot *s, Path *path)
{
	const Contender *c = contender_of(path);
	const Node *node = &path->node[HEAD];
	int			i;

	if (!node->exists || !c->counts || c->seq > s->record.seq ||
		!zkl_mode_conflicts(c->mode, s->mode))
		return false;
	if (operators_broke(&c->uuid) || contender_is_unseen(c) ||
		oracle_heard_at(h, c) != NEVER)
		return false;
	if (host_of_session(node->stat.ephemeral_owner) != h)
		return true;
	for (i = 0; i < MAX_SLOTS; i++)
	{
		const Slot *other = &h->slots[i];

		if (same_uuid(other, &c->uuid))
			return !same_owner(other, s) && !other->tampered &&
				((other->state == SLOT_WAITING && !other->breaking && !other->record.going) ||
				 (other->state == SLOT_GRANTED && !slot_is_over(other, host_clock(h))) ||
				 holds(h, i));
	}
	return false;
}

/* A child that is no contender, but a lease to Curator: it was there before. */
static bool
is_stranger(Path *path, const Node *node)
{
	return path->node[HEAD].exists && !contender_of(path)->counts &&
		!contender_is_unseen(path->contender) &&
		path->node[HEAD].stat.czxid < node->stat.czxid;
}

/* It shares the node of another hold, and its fate. */
static void
check_cover(Host *h, int i)
{
	Slot	   *s = &h->slots[i];
	bool		found = false;
	int			j;

	for (j = 0; j < MAX_SLOTS; j++)
	{
		const Slot *cover = &h->slots[j];

		if (j != i && cover->owner == s->owner && cover->lock == s->lock &&
			cover->token == s->token &&
			(cover->state == SLOT_GRANTED || cover->state == SLOT_RELEASED ||
			 cover->overdue))
		{
			h->slots[j].guarded |= s->guard;
			s->tampered |= cover->tampered;
			s->breaking |= cover->breaking;
			s->revived |= cover->revived;
			found = true;
		}
	}
	if (!found)
		broken("S1", "host %d slot %d was granted without a node", h->id, i);
}

static Path *
node_of(const Slot *s)
{
	char		path[256];
	char		name[ZKL_MAX_ZNODE_NAME + 1];

	zkl_znode_name(lock_dialect(s->lock),
				   &s->record.uuid, s->record.mode, s->record.seq, name);
	strcpy(path, lock_path(s->lock)->text);
	strcat(path, "/");
	strcat(path, name);
	return tree_path(path);
}

/* A grant has the token of its znode, a take one of those behind it. */
static bool
has_token(const Slot *s, const Node *node, bool taken)
{
	int64_t		first = node->stat.czxid * ZKL_TOKENS_PER_ZXID + s->record.index;

	return taken ? s->token > first &&
		s->token / ZKL_TOKENS_PER_ZXID == node->stat.czxid : s->token == first;
}

static void
check_node(Host *h, int i, bool taken)
{
	Slot	   *s = &h->slots[i];
	Path	   *path = node_of(s);
	const Node *node = &path->node[HEAD];
	uint32_t	ahead = 0;

	if (!node->exists || node->stat.ephemeral_owner != h->worker.session.id)
		broken("S1", "host %d slot %d was granted without its node %s",
			   h->id, i, path->text);
	if (s->record.seq >= ZKL_SEQ_LIMIT)
		broken("S1", "host %d slot %d was granted number %" PRId64
			   ", which others take for less than zero", h->id, i, s->record.seq);
	if (!has_token(s, node, taken))
		broken("S2", "host %d slot %d: token %" PRId64 " but czxid %" PRId64,
			   h->id, i, s->token, node->stat.czxid);
	for (path = lock_path(s->lock)->children; path; path = path->sibling)
		if ((in_the_way(h, s, path) ||
			 (s->lock == hosts.semaphore && is_stranger(path, node))) &&
			(s->lock != hosts.semaphore || ++ahead >= hosts.max))
			broken("S6", "host %d slot %d was granted number %" PRId64
				   " behind %s", h->id, i, s->record.seq, path->text);
}

void
oracle_grant(Host *h, int i)
{
	Slot	   *s = &h->slots[i];
	const Session *session = session_find(h->worker.session.id);
	bool		leaning = leans(h, s);

	if (session == NULL || session->killed)
		s->tampered = true;
	if (leaning)
		check_cover(h, i);
	else if (lease_is_over(h) && !h->interrupted)
		broken("S1", "host %d slot %d was granted past the lease", h->id, i);
	if (!holds(h, i))
		return;
	if (s->tampered)
		return;
	if (s->token / ZKL_TOKENS_PER_ZXID < h->zxid_floor && ens.zxid < h->zxid_floor)
		broken("S2", "host %d slot %d: token %" PRId64 " of an ensemble that"
			   " went back", h->id, i, s->token);
	if (hosts.begun_anew[s->lock] != 0)
		SEEN(BEGUN_ANEW);
	check_token(s);
	check_overtaken(h, i);
	oracle_promise_kept(s->lock, s->mode, h, s->owner);
	if (!leaning)
	{
		check_node(h, i, false);
		contender_grant(node_of(s));
	}
	check_alone(h, i);
}

/* ---- kept locks ---- */

/*
 * A kept lock ends when its time is over, or at the next event behind that; a server that
 * has ZooKeeper sets its timer for it.
 */
void
oracle_kept(const Host *h)
{
	int64_t		now = host_clock(h);
	int64_t		timer = zkl_manager_timer(h->worker.m);
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
	{
		const Slot *s = &h->slots[i];

		if (s->state != SLOT_RELEASED ||
			!zkl_manager_keeps(h->worker.m, (uint32_t) i))
			continue;
		if (s->keep_until <= now)
			broken("kept", "host %d slot %d is kept past its time", h->id, i);
		if (zkl_manager_ready(h->worker.m) && (timer < 0 || timer > s->keep_until))
			broken("kept", "host %d has no timer for the end of slot %d", h->id, i);
	}
}

/* ---- cached locks ---- */

/*
 * Sessions of a server may overtake those of others until the server is told of
 * them, and no longer: the one exception to S6.
 */
void
oracle_take(const Host *h, int i)
{
	const Slot *s = &h->slots[i];
	Path	   *path;
	int			j;

	if (s->keep_until > host_clock(h))
		broken("S1", "host %d slot %d is taken although it is kept", h->id, i);
	if (s->tampered)
		return;
	for (j = 0; j < MAX_SLOTS; j++)
		if (h->slots[j].state == SLOT_WAITING && h->slots[j].known &&
			h->slots[j].lock == s->lock)
			broken("S6", "host %d slot %d is taken although slot %d waits",
				   h->id, i, j);
	for (path = lock_path(s->lock)->children; path; path = path->sibling)
	{
		const Contender *c = contender_of(path);
		const Node *node = &path->node[HEAD];

		if (node->exists && c->counts && !operators_broke(&c->uuid) && !contender_is_unseen(c) &&
			!same_uuid(s, &c->uuid) && node->stat.czxid <= h->told[s->lock] &&
			host_of_session(node->stat.ephemeral_owner) != h)
			broken("S6", "host %d slot %d is taken although %s waits", h->id,
				   i, path->text);
	}
}

void
oracle_took(Host *h, int i)
{
	Slot	   *s = &h->slots[i];
	const Session *session = session_find(h->worker.session.id);

	if (session == NULL || session->killed)
		s->tampered = true;
	if (!lease_is_valid(h))
		broken("S1", "host %d slot %d was taken past the lease", h->id, i);
	if (s->tampered || !holds(h, i))
		return;
	if (s->record.generation != h->worker.session.generation)
		broken("S7", "host %d slot %d: taken on a session that is gone", h->id,
			   i);
	check_token(s);
	oracle_promise_kept(s->lock, s->mode, h, s->owner);
	check_node(h, i, true);
	check_alone(h, i);
}

/* Its backend hears of a loss, unless it is about to commit. */
void
oracle_signal(const Host *h, int i)
{
	const Slot *s = &h->slots[i];
	const Backend *b = &backends.backend[h->id][s->backend];

	if (s->taken && s->quiet && !b->checking && !b->committing)
		broken("S8", "host %d slot %d is lost, and nobody is told", h->id, i);
}

void
oracle_taken(Host *h, int i)
{
	if (holds(h, i))
		check_token(&h->slots[i]);
	check_alone(h, i);
}

/* ---- S3: the commit check ---- */

void
oracle_commit(Host *h, int i)
{
	const Slot *s = &h->slots[i];
	const Tokens *t = &tokens[s->lock];
	int			j;

	if (s->record.generation != h->worker.session.generation)
		broken("S7", "host %d slot %d: commits on a session that is gone",
			   h->id, i);
	if (!holds(h, i))
		return;
	check_alone(h, i);
	check_overtaken(h, i);

	/* Among those forgotten there may be itself. */
	for (j = 1; j < MAX_HOLDERS && !s->revived; j++)
		if (t->owner[j] != s->owner &&
			(t->largest[j][ZKL_EXCLUSIVE] > s->token ||
			 (s->mode == ZKL_EXCLUSIVE &&
			  t->largest[j][ZKL_SHARED] > s->token)))
			broken("S3", "host %d slot %d: commits after %s went to owner %"
				   PRIu64, h->id, i, lock_name(s->lock), t->owner[j]);
}

void
oracle_wiped(void)
{
	int			i;

	memset(tokens, 0, sizeof(tokens));
	hosts.wiped_at = base.now;
	oracle_promises_void();
	for (i = 0; i < hosts.n; i++)
	{
		tamper_all(&hosts.host[i]);
		hosts.host[i].zxid_floor = hosts.host[i].worker.session.zxid_seen;
		memset(hosts.host[i].told, 0, sizeof(hosts.host[i].told));
	}
	for (i = 0; i < foreigners.n; i++)
		foreigners.foreign[i].holding = false;
}
