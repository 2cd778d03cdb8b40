/*
 * downgrade.c
 *	  An exclusive node becomes a shared one, without a gap.
 *
 * Owns ZklDowngrade.  Runs in the worker (and in tests), takes no locks, knows
 * neither PostgreSQL nor ZooKeeper.
 *
 * If a session gives back an exclusive lock and still holds it shared, it gets
 * a shared node of the same number, in one transaction: the exclusive node is
 * marked, the shared one is created, the exclusive one is deleted.  So every
 * client always sees one of the two.  A watch on the exclusive node fires for
 * the mark first: each client that waits for the node then looks again, and
 * finds the shared one in its place (see zkl_contenders_ahead_gone; Curator
 * from 5.5 on does the same in several steps).
 *
 * The node EXISTS meanwhile.  If the answer is lost, a listing tells its name.  If it
 * is released before that is known, it is deleted as soon as it is, or under both names
 * if we may not list the directory.
 */
#include "core/downgrade.h"
#include "core/look.h"
#include "core/node.h"
#include "core/siblings.h"
#include "core/write.h"

bool
zkl_downgrade_pending(const ZklRequest *r)
{
	return r->downgrade.write.state == ZKL_WRITE_BATCH ||
		zkl_downgrade_is_unsettled(r);
}

void
zkl_downgrade_want(ZklManager *m, ZklRequest *r)
{
	if (!zkl_siblings_stays(r) || r->node.state != ZKL_NODE_EXISTS ||
		r->node.mode != ZKL_EXCLUSIVE || zkl_downgrade_is_on(r) ||
		r->broken || !zkl_dialect_shares(r->lock->dialect) ||
		zkl_siblings_leaning(r)->mode == ZKL_EXCLUSIVE)
		return;
	zkl_write_pend(m, &r->downgrade.write, &zkl_downgrade_change, ZKL_RANK_CHANGE);
}

void
zkl_downgrade_give_up(ZklRequest *r)
{
	if (!zkl_downgrade_pending(r) && !ZKL_MUTANT(BROKEN_GOES_ON_AS_READER))
		zkl_downgrade_end(r);
}

void
zkl_downgrade_node_gone(ZklRequest *r)
{
	r->downgrade.either = false;
	zkl_downgrade_end(r);
}

void
zkl_downgrade_unknown(ZklRequest *r)
{
	zkl_look_stop(r);
	zkl_write_unsettle(&r->downgrade.write);
}

void
zkl_downgrade_end(ZklRequest *r)
{
	zkl_write_drop(&r->downgrade.write);
}

void
zkl_downgrade_delete_either(ZklManager *m, ZklRequest *r)
{
	ZKL_ASSERT(r->node.state == ZKL_NODE_DELETE);
	zkl_downgrade_end(r);
	r->downgrade.either = true;
	zkl_node_delete(m, r, ZKL_RANK_ALONE);
}

bool
zkl_downgrade_take_other_name(ZklRequest *r)
{
	if (!r->downgrade.either)
		return false;
	ZKL_ASSERT(r->node.mode == ZKL_EXCLUSIVE);
	r->downgrade.either = false;
	zkl_node_set_shared(r);
	return true;
}

/*
 * Other clients wait for the downgrade, and an armed watch has nothing to
 * tell.
 */
void
zkl_downgrade_want_later(ZklManager *m, ZklRequest *r)
{
	zkl_downgrade_want(m, r);

	/* Perhaps a mark has been read meanwhile. */
	if (r->downgrade.write.state == ZKL_WRITE_PENDING)
		zkl_write_stick(m, &r->downgrade.write, &zkl_downgrade_change,
						ZKL_RANK_CHANGE);
}
