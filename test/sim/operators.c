/*
 * operators.c
 *	  Operators, who break locks as zk_break_lock() does.
 *
 * Owns what each of them is at.  Must not know what zklock servers make of it.
 *
 * The rule is that of src/recipes/break_lock.c.  The head of the queue is marked if
 * it is zklock's, and deleted when its server has had the time of a session
 * timeout, the longest there is, to see the mark.  Other clients look at no
 * mark: their node is deleted at once, and for the same time whatever appears
 * with its unique id.
 */
#include <string.h>

#include "agenda.h"
#include "faults.h"
#include "foreign.h"

#define MAX_OPERATORS	3

typedef struct Operator
{
	bool		busy;
	Time		at;				/* looks again */
	Time		until;			/* has the holder time, or looks the operator */
	int			lock;
	Path	   *head;			/* NULL: it is gone, its unique id is looked
								 * for */
	int32_t		version;		/* of its data, once it is marked */
	ZklUuid		uuid;
} Operator;

static Operator operators[MAX_OPERATORS];

/* Other clients that were broken; those before are forgotten. */
#define MAX_BROKEN		32

static ZklUuid broken_uuids[MAX_BROKEN];
static bool awaits_downgrade;
static Time look_at;			/* for marks that have no operator any more */
static int	nbroken;

void
operators_begin(void)
{
	memset(operators, 0, sizeof(operators));
	nbroken = 0;
	awaits_downgrade = false;
	look_at = NEVER;
}

void
do_accept_lower_tokens(void)
{
	host_accept_lower_tokens(some_host());
}

/* ---- looking ---- */

/* The first of the queue, or with this unique id; NULL: none */
static Path *
find_contender(int lock, const ZklUuid *wanted, ZklUuid *owner)
{
	Path	   *path = lock_path(lock)->children;
	Path	   *found = NULL;
	ZklSeq		best = ZKL_SEQ_NONE;

	for (; path != NULL; path = path->sibling)
	{
		ZklLockMode mode;
		ZklSeq		seq;
		bool		has_uuid;
		ZklUuid		uuid = {{0}};

		if (!path->node[HEAD].exists ||
			!zkl_znode_parse(lock_dialect(lock), path->name, &mode, &seq,
							 &has_uuid, &uuid) || seq >= best ||
			(wanted != NULL && memcmp(&uuid, wanted, sizeof(uuid)) != 0))
			continue;
		found = path;
		best = seq;
		*owner = uuid;
	}
	return found;
}

static bool
is_marked(const Path *path)
{
	const Node *node = &path->node[HEAD];

	return zkl_node_data_breaking(node->data, node->length);
}

static void
finish(Operator *o)
{
	trace("operator #: is through with @", o - operators, 0, 0, 0,
		  lock_name(o->lock));
	o->busy = false;
}

/* ---- other clients' nodes ---- */

void
operators_note_broken(const ZklUuid *owner)
{
	int			i;

	broken_uuids[nbroken++ % MAX_BROKEN] = *owner;
	for (i = 0; i < foreigners.n; i++)
		if (memcmp(&foreigners.foreign[i].uuid, owner, sizeof(*owner)) == 0)
			foreigners.foreign[i].broken = true;
}

bool
operators_broke(const ZklUuid *owner)
{
	int			i;

	for (i = 0; i < nbroken && i < MAX_BROKEN; i++)
		if (memcmp(&broken_uuids[i], owner, sizeof(*owner)) == 0)
			return true;
	return false;
}

/* Whatever is there of that client's, late as it may come */
static void
delete_foreign(Operator *o)
{
	Op			op = {.kind = OP_DELETE,.version = -1};
	ZklUuid		uuid;
	Path	   *path;

	while (ens.leader >= 0 &&
		   (path = find_contender(o->lock, &o->uuid, &uuid)) != NULL)
	{
		trace("operator #: deletes @", o - operators, 0, 0, 0, path->text);
		op.path = path->text;
		if (ensemble_write(&op, false) != ZKL_RC_OK)
			break;
	}
	o->at = base.now + ens.timeout / 20;
	if (ens.leader >= 0 && base.now >= o->until)
		finish(o);
}

/* ---- zklock's nodes ---- */

static void break_lock(int lock);

static void
mark(Operator *o)
{
	static const char data[] = "{\"breaking\":true}";
	Op			op = {.kind = OP_SET,.path = o->head->text,.data = data,
	.length = sizeof(data) - 1,.version = o->head->node[HEAD].stat.version};

	if (!is_marked(o->head) && ensemble_write(&op, false) != ZKL_RC_OK)
		return;
	o->version = o->head->node[HEAD].stat.version;
	o->until = base.now + ens.longest;
}

/*
 * If somebody wrote over the mark, the holder has all its time again.  The version does
 * not tell: if ZooKeeper loses the mark, the holder's own next write gets its version.
 */
static void
look_at_marked(Operator *o)
{
	Op			op = {.kind = OP_DELETE,.path = o->head->text,
	.version = o->version};

	o->at = base.now + ens.timeout / 20;
	if (ens.leader < 0)
		return;
	if (!o->head->node[HEAD].exists)
		finish(o);
	else if (o->head->node[HEAD].stat.version != o->version ||
			 !is_marked(o->head))
		mark(o);
	else if (base.now >= o->until)
	{
		trace("operator #: deletes @", o - operators, 0, 0, 0, op.path);
		if (ensemble_write(&op, false) != ZKL_RC_OK)
			return;
		finish(o);

		/* Its owner may not yet know that it is the head. */
		if (!base.calm && once_in(2))
			break_lock(o->lock);
	}
}

/* ---- beginning and going on ---- */

static Operator *
free_operator(void)
{
	Operator   *o = operators;

	while (o < operators + MAX_OPERATORS && o->busy)
		o++;
	return o < operators + MAX_OPERATORS ? o : NULL;
}

static void
break_contender(Operator *o, int lock, Path *head, const ZklUuid *uuid)
{
	trace("operator #: breaks @", o - operators, 0, 0, 0, head->text);
	agenda_changed(AGENDA_CHAOS);
	memset(o, 0, sizeof(*o));
	o->busy = true;
	o->lock = lock;
	o->uuid = *uuid;
	o->until = base.now + ens.longest;
	if (zkl_uuid_is_zklock(uuid))
	{
		o->head = head;
		o->at = base.now + ens.timeout / 20;
		mark(o);
	}
	else
	{
		operators_note_broken(uuid);
		delete_foreign(o);
	}
}

static void
break_lock(int lock)
{
	Operator   *o = free_operator();
	ZklUuid		uuid;
	Path	   *head = find_contender(lock, NULL, &uuid);

	if (o != NULL && head != NULL && ens.leader >= 0 &&
		zkl_dialect_marks(lock_dialect(lock)))
		break_contender(o, lock, head, &uuid);
}

static bool
is_at_work_on(const Path *path)
{
	int			i;

	for (i = 0; i < MAX_OPERATORS; i++)
		if (operators[i].busy && operators[i].head == path)
			return true;
	return false;
}

/* Marked, of a session that lives again, and no operator is at work on it */
static bool
is_left(const Path *path)
{
	const Node *node = &path->node[HEAD];
	const Session *session = session_find(node->stat.ephemeral_owner);

	return node->exists && is_marked(path) && session != NULL &&
		session->revived && !is_at_work_on(path);
}

/*
 * The znode was gone with its session, so an operator was through; but now it is
 * there still.
 */
static void
break_left(int lock)
{
	Operator   *o = free_operator();
	Path	   *path;
	ZklUuid		uuid;

	for (path = lock_path(lock)->children; path != NULL; path = path->sibling)
		if (is_left(path))
			look_at = base.now + ens.timeout / 20;
	path = find_contender(lock, NULL, &uuid);
	if (o != NULL && ens.leader >= 0 && path != NULL && is_left(path))
		break_contender(o, lock, path, &uuid);
}

static void
look_again(void)
{
	int			lock;

	look_at = NEVER;
	for (lock = 0; lock < hosts.nlocks; lock++)
		break_left(lock);
}

void
operators_look_again(void)
{
	look_at = base.now;
	agenda_changed(AGENDA_CHAOS);
}

void
do_break_lock(void)
{
	break_lock((int) below(hosts.nlocks));
}

void
do_break_downgrade(void)
{
	awaits_downgrade = true;
}

bool
operators_await_downgrade(int lock)
{
	if (!awaits_downgrade || base.calm)
		return false;
	awaits_downgrade = false;
	break_lock(lock);
	return true;
}

Time
operators_due(void)
{
	Time		due = look_at;
	int			i;

	for (i = 0; i < MAX_OPERATORS; i++)
		if (operators[i].busy && operators[i].at < due)
			due = operators[i].at;
	return due;
}

void
operators_step(void)
{
	int			i;

	if (look_at <= base.now)
	{
		look_again();
		return;
	}
	for (i = 0; i < MAX_OPERATORS; i++)
		if (operators[i].busy && operators[i].at <= base.now)
		{
			if (operators[i].head != NULL)
				look_at_marked(&operators[i]);
			else
				delete_foreign(&operators[i]);
			return;
		}
}
