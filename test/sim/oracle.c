/*
 * oracle.c
 *	  The rules S1 to S8, looked after at every step of the simulation.
 *
 * Owns the tokens seen so far.  Must not know how the core decides.
 */
#include <string.h>

#include "backend.h"
#include "oracle.h"

/* What the name of a child of a lock's directory says */
typedef struct Contender
{
	bool		counts;
	ZklLockMode mode;
	ZklSeq		seq;
	bool		has_uuid;
	ZklUuid		uuid;
	int			lock;
} Contender;

/* The largest tokens granted, for each of the last holders */
#define MAX_HOLDERS 16

typedef struct Tokens
{
	uint64_t	owner[MAX_HOLDERS]; /* 0: of all that were forgotten */
	int64_t		largest[MAX_HOLDERS][2];	/* by mode */
	int			next;
} Tokens;

static Tokens tokens[MAX_LOCKS];
static Time removed_at[MAX_LOCKS];	/* when a contender last vanished */

void
oracle_begin(void)
{
	memset(tokens, 0, sizeof(tokens));
	memset(removed_at, 0, sizeof(removed_at));
}

static const Contender *
contender_of(Path *path)
{
	Contender  *c = path->contender;
	int			i;

	if (c != NULL)
		return c;
	c = path->contender = take(sizeof(Contender));
	for (i = 0; i < hosts.nlocks; i++)
		if (path->parent == lock_path(i))
		{
			c->lock = i;
			c->counts = zkl_znode_parse(path->name, &c->mode, &c->seq,
										&c->has_uuid, &c->uuid);
		}
	return c;
}

/* The zklock server whose present session this is, or NULL */
static Host *
host_of_session(int64_t id)
{
	const Session *session = session_find(id);
	Host	   *h;

	if (session == NULL || session->host < 0)
		return NULL;
	h = &hosts.host[session->host];
	return h->up && h->session == id ? h : NULL;
}

static bool
same_uuid(const Slot *s, const ZklUuid *uuid)
{
	return s->state != SLOT_FREE && s->sent &&
		memcmp(&s->uuid, uuid, sizeof(*uuid)) == 0;
}

static bool
lease_is_valid(const Host *h)
{
	return h->lease_generation == h->generation &&
		h->lease_ms > host_clock(h) / 1000;
}

/* Whether a slot holds its lock as far as anybody may rely on it */
static bool
holds(const Host *h, int i)
{
	return h->up && !h->slots[i].tampered && lease_is_valid(h) &&
		slot_is_good(h, i, h->lease_generation);
}

static bool
foreign_holds(const Foreign *f)
{
	const Session *session = session_find(f->session);

	return f->holding && !f->broken && session != NULL && session->alive &&
		path_intern(f->node)->node[HEAD].exists;
}

/* Not even in its last millisecond, which nobody relies on */
static bool
lease_is_over(const Host *h)
{
	return h->lease_generation != h->generation ||
		h->lease_ms < host_clock(h) / 1000;
}

static void
tamper(Host *h, uint64_t owner, int lock)
{
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
		if (h->slots[i].state != SLOT_FREE && h->slots[i].owner == owner &&
			h->slots[i].lock == lock)
			h->slots[i].tampered = true;
}

static void
tamper_all(Host *h)
{
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
		h->slots[i].tampered = true;
}

/* ---- S1: no two holders ---- */

static void
check_pair(const Host *h, int i, const Host *other, int j)
{
	const Slot *a = &h->slots[i];
	const Slot *b = &other->slots[j];

	if (a != b && a->lock == b->lock && a->owner != b->owner &&
		zkl_mode_conflicts(a->mode, b->mode) && holds(other, j))
		broken("S1", "host %d slot %d and host %d slot %d hold %s together",
			   h->id, i, other->id, j, lock_name(a->lock));
}

static void
check_alone(const Host *h, int i)
{
	const Slot *s = &h->slots[i];
	int			j,
				k;

	if (!holds(h, i))
		return;
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

void
oracle_lease(Host *h)
{
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
		check_alone(h, i);
}

void
oracle_foreign_hold(const Foreign *f)
{
	int			i,
				j;

	for (i = 0; foreign_holds(f) && i < hosts.n; i++)
		for (j = 0; j < MAX_SLOTS; j++)
		{
			const Slot *s = &hosts.host[i].slots[j];

			if (s->lock == f->lock && zkl_mode_conflicts(s->mode, f->mode) &&
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
			h->slots[i].generation != h->generation)
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

	if (s->counted)
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

/* ---- S6 and more of S1: what a grant stands on ---- */

/* Another contender that is in the way of a grant, at the head of the log */
static bool
in_the_way(const Host *h, const Slot *s, Path *path)
{
	const Contender *c = contender_of(path);
	const Node *node = &path->node[HEAD];
	int			i;

	if (!node->exists || !c->counts || c->seq > s->seq ||
		!zkl_mode_conflicts(c->mode, s->mode))
		return false;
	if (host_of_session(node->stat.ephemeral_owner) != h)
		return true;
	for (i = 0; i < MAX_SLOTS; i++)
	{
		const Slot *other = &h->slots[i];

		if (same_uuid(other, &c->uuid))
			return other->owner != s->owner && !other->tampered &&
				((other->state == SLOT_WAITING && !other->breaking) ||
				 other->state == SLOT_GRANTED);
	}
	return false;
}

/* It shares the node of another hold, and its fate. */
static void
check_cover(Host *h, int i)
{
	Slot	   *s = &h->slots[i];
	int			j;

	for (j = 0; j < MAX_SLOTS; j++)
	{
		const Slot *cover = &h->slots[j];

		if (j != i && cover->owner == s->owner && cover->lock == s->lock &&
			cover->token == s->token &&
			(cover->state == SLOT_GRANTED || cover->state == SLOT_RELEASED))
		{
			s->tampered |= cover->tampered;
			return;
		}
	}
	broken("S1", "host %d slot %d was granted without a node", h->id, i);
}

static Path *
node_of(const Slot *s)
{
	char		path[256];
	char		name[ZKL_MAX_ZNODE_NAME + 1];

	zkl_znode_name(&s->uuid, s->znode_mode, s->seq, name);
	strcpy(path, lock_path(s->lock)->text);
	strcat(path, "/");
	strcat(path, name);
	return path_intern(path);
}

static void
check_node(Host *h, int i)
{
	Slot	   *s = &h->slots[i];
	Path	   *path = node_of(s);
	const Node *node = &path->node[HEAD];

	if (!node->exists || node->stat.ephemeral_owner != h->session)
		broken("S1", "host %d slot %d was granted without its node %s",
			   h->id, i, path->text);
	if (s->token != node->stat.czxid * 4096 + s->index)
		broken("S2", "host %d slot %d: token %" PRId64 " but czxid %" PRId64,
			   h->id, i, s->token, node->stat.czxid);
	for (path = lock_path(s->lock)->children; path; path = path->sibling)
		if (in_the_way(h, s, path))
			broken("S6", "host %d slot %d was granted number %" PRId64
				   " behind %s", h->id, i, s->seq, path->text);
}

void
oracle_grant(Host *h, int i)
{
	Slot	   *s = &h->slots[i];
	const Session *session = session_find(h->session);

	if (session == NULL || session->killed)
		s->tampered = true;
	if (!s->sent)
		check_cover(h, i);
	else if (lease_is_over(h) && !h->interrupted)
		broken("S1", "host %d slot %d was granted past the lease", h->id, i);
	if (!holds(h, i))
		return;
	if (s->tampered)
		return;
	if (s->token / 4096 < h->zxid_floor && ens.zxid < h->zxid_floor)
		broken("S2", "host %d slot %d: token %" PRId64 " of an ensemble that"
			   " went back", h->id, i, s->token);
	check_token(s);
	if (s->sent)
		check_node(h, i);
	check_alone(h, i);
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

	if (s->generation != h->generation)
		broken("S7", "host %d slot %d: commits on a session that is gone",
			   h->id, i);
	if (!holds(h, i))
		return;
	check_alone(h, i);

	/* Among those forgotten there may be itself. */
	for (j = 1; j < MAX_HOLDERS; j++)
		if (t->owner[j] != s->owner &&
			(t->largest[j][ZKL_EXCLUSIVE] > s->token ||
			 (s->mode == ZKL_EXCLUSIVE &&
			  t->largest[j][ZKL_SHARED] > s->token)))
			broken("S3", "host %d slot %d: commits after %s went to owner %"
				   PRIu64, h->id, i, lock_name(s->lock), t->owner[j]);
}

/* ---- S4, S5: nodes and slots ---- */

static void
check_created(const Effect *effect, const Contender *c)
{
	const Host *h = host_of_session(effect->owner);
	int			i;

	if (h == NULL)
		return;
	for (i = 0; i < MAX_SLOTS; i++)
		if (same_uuid(&h->slots[i], &c->uuid))
			return;
	broken("S5", "%s was created for no slot", effect->path->text);
}

static void
check_deleted(const Entry *entry, const Effect *effect, const Contender *c)
{
	Host	   *h = host_of_session(effect->owner);
	int			i;

	removed_at[c->lock] = base.now;
	if (h == NULL)
		return;
	for (i = 0; i < MAX_SLOTS; i++)
	{
		Slot	   *s = &h->slots[i];

		if (!same_uuid(s, &c->uuid))
			continue;
		if (entry->session == 0 && entry->ends == 0)
		{
			if (!entry->by_vandal && holds(h, i))
				broken("S1", "the lock of host %d slot %d is broken, which"
					   " does not know it", h->id, i);
			tamper(h, s->owner, s->lock);
			s->node_gone = true;
		}
		else if (holds(h, i))
			broken("S4", "the node of host %d slot %d is deleted, which holds"
				   " %s", h->id, i, lock_name(s->lock));
	}
}

static void
check_ended(const Entry *entry)
{
	Host	   *h = host_of_session(entry->ends);

	if (h == NULL)
		return;
	if (entry->by_vandal)
		tamper_all(h);
	else if (lease_is_valid(h))
		broken("S1", "the session of host %d ended %" PRId64
			   " ms before its lease", h->id,
			   h->lease_ms - host_clock(h) / 1000);
}

/* Who waits and is to be broken goes to the end of the queue. */
static void
note_mark(const Effect *effect, const Contender *c)
{
	Host	   *h =
	host_of_session(effect->path->node[HEAD].stat.ephemeral_owner);
	int			i;

	if (h == NULL || !zkl_node_data_breaking(effect->data, effect->length))
		return;
	for (i = 0; i < MAX_SLOTS; i++)
		if (same_uuid(&h->slots[i], &c->uuid) &&
			h->slots[i].state == SLOT_WAITING)
			h->slots[i].breaking = true;
}

void
oracle_transaction(const Entry *entry)
{
	size_t		i;

	if (entry->ends != 0)
		check_ended(entry);
	for (i = 0; i < entry->neffects; i++)
	{
		const Effect *effect = &entry->effects[i];
		const Contender *c = contender_of(effect->path);

		if (!c->counts)
			continue;
		if (effect->kind == OP_CREATE)
			check_created(effect, c);
		else if (effect->kind == OP_DELETE)
			check_deleted(entry, effect, c);
		else if (effect->kind == OP_SET)
			note_mark(effect, c);
	}
}

void
oracle_free(Host *h, int i)
{
	const Slot *s = &h->slots[i];
	Path	   *path;
	int			j;

	if (s->state != SLOT_RELEASED)
		broken("S5", "host %d slot %d is freed in state %d", h->id, i,
			   (int) s->state);
	if (!s->sent || h->session == 0)
		return;
	for (j = 0; j < MAX_SLOTS; j++)
		if (j != i && same_uuid(&h->slots[j], &s->uuid))
			return;
	for (path = lock_path(s->lock)->children; path; path = path->sibling)
	{
		const Contender *c = contender_of(path);

		if (path->node[HEAD].exists && c->counts &&
			memcmp(&c->uuid, &s->uuid, sizeof(ZklUuid)) == 0 &&
			path->node[HEAD].stat.ephemeral_owner == h->session)
			broken("S5", "host %d slot %d is free, and %s is there", h->id, i,
				   path->text);
	}
}

void
oracle_quiet(void)
{
	Path	   *path;
	int			beats[MAX_HOSTS] = {0};

	for (path = path_first(); path != NULL; path = path->all)
	{
		int64_t		owner = path->node[HEAD].stat.ephemeral_owner;
		Host	   *h = host_of_session(owner);

		if (!path->node[HEAD].exists || owner == 0)
			continue;
		if (h == NULL)
			broken("simulation", "%s is left of session %" PRId64, path->text,
				   owner);
		if (strcmp(path->parent->name, ".servers") != 0)
			broken("S5", "%s is left of host %d", path->text, h->id);
		if (beats[h->id]++ > 0 && !ens.late_after_move)
			broken("S5", "%s is the second beat of host %d", path->text,
				   h->id);
	}
}

/* ---- S8: answers ---- */

/* Whether somebody took nodes out of a server's part of a queue */
static bool
queue_tampered(const Host *h, int lock)
{
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
		if (h->slots[i].tampered && h->slots[i].lock == lock)
			return true;
	return false;
}

/* False is said only if somebody else was in the way at some time. */
void
oracle_deny(Host *h, int i)
{
	const Slot *s = &h->slots[i];
	Path	   *path;

	if (!s->is_try || !s->expired)
		broken("S8", "host %d slot %d was denied without being asked", h->id,
			   i);
	if (lease_is_over(h) && !h->interrupted)
		broken("S8", "host %d slot %d was denied past the lease", h->id, i);
	if (!lease_is_valid(h) || queue_tampered(h, s->lock) || removed_at[s->lock] >= s->since)
		return;
	for (path = lock_path(s->lock)->children; path; path = path->sibling)
	{
		const Contender *c = contender_of(path);

		if (path->node[HEAD].exists && c->counts &&
			zkl_mode_conflicts(c->mode, s->mode) &&
			!(s->sent && memcmp(&c->uuid, &s->uuid, sizeof(ZklUuid)) == 0))
			return;
	}
	broken("S8", "host %d slot %d was denied %s, which nobody else wanted",
		   h->id, i, lock_name(s->lock));
}

void
oracle_fail(Host *h, int i)
{
	const Slot *s = &h->slots[i];
	int			j;

	if (s->failure == ZKL_FAILURE_ZOOKEEPER && s->rc != ZKL_RC_NOTEMPTY)
		broken("S8", "host %d slot %d failed with %d", h->id, i, s->rc);
	if (s->failure != ZKL_FAILURE_DEADLOCK)
	{
		/* It may have missed its parents twice before all was calm. */
		if (base.calm_since + 2 * ens.timeout < base.now &&
			s->failure != ZKL_FAILURE_PARENTS)
			broken("liveness", "host %d slot %d failed %d (rc %d)", h->id, i,
				   (int) s->failure, s->rc);
		return;
	}
	for (j = 0; j < MAX_SLOTS; j++)
		if (j != i && h->slots[j].owner == s->owner &&
			h->slots[j].lock == s->lock && h->slots[j].state != SLOT_FREE)
			return;
	broken("S8", "host %d slot %d: a deadlock with nobody", h->id, i);
}

void
oracle_invariants(Host *h)
{
	const char *why = h->m != NULL ? zkl_manager_check(h->m) : NULL;

	if (why != NULL)
		broken("invariant", "host %d: %s", h->id, why);
}

void
oracle_wiped(void)
{
	int			i;

	memset(tokens, 0, sizeof(tokens));
	for (i = 0; i < hosts.n; i++)
	{
		tamper_all(&hosts.host[i]);
		hosts.host[i].zxid_floor = hosts.host[i].zxid_seen;
	}
	for (i = 0; i < foreigners.n; i++)
		foreigners.foreign[i].holding = false;
}
