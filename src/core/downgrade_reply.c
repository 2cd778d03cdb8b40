/*
 * downgrade_reply.c
 *	  What a downgrade writes, what became of it, and what follows for the request.
 *
 * Owns nothing.  Runs in the worker (and in tests), takes no locks.
 */
#include <string.h>

#include "core/actions.h"
#include "core/batches.h"
#include "core/downgrade.h"
#include "core/downgrade_reply.h"
#include "core/lock.h"
#include "core/look.h"
#include "core/node.h"
#include "core/request.h"
#include "core/rewrite.h"
#include "core/siblings.h"
#include "core/write.h"

/* The node's name is known again. */
static void
end_downgrade(ZklManager *m, ZklRequest *r)
{
	zkl_downgrade_end(r);
	zkl_lock_touch(m, r->lock);
	if (r->node.state == ZKL_NODE_DELETE)
		zkl_batches_pace_delete(m, r);
	else
		zkl_look_if_unwatched(m, r);
}

void
zkl_downgrade_reply_settle(ZklManager *m, ZklRequest *r, bool done)
{
	if (!done && r->node.state == ZKL_NODE_EXISTS)
	{
		zkl_downgrade_end(r);
		zkl_downgrade_want(m, r);
		zkl_look_if_unwatched(m, r);
		return;
	}
	if (done && r->node.state == ZKL_NODE_EXISTS)
	{
		/* The watched node is gone. */
		zkl_look_forget(m, r);
		zkl_lock_downgrade(r->lock, r);
		zkl_rewrite_forget(r);
		zkl_node_record_all(m, r);
	}
	else if (done)
		zkl_node_set_shared(r);
	end_downgrade(m, r);
}

void
zkl_downgrade_reply_refused(ZklManager *m, ZklRequest *r, int32_t rc)
{
	if (rc != ZKL_RC_NONODE)
	{
		end_downgrade(m, r);

		/*
		 * After a BADVERSION a look brings the new version.  If the watch is
		 * armed, that look came while the downgrade was under way, and there
		 * is none to come.
		 */
		if (rc != ZKL_RC_BADVERSION || r->look.watch == ZKL_WATCH_ARMED)
			zkl_downgrade_want_later(m, r);
	}
	else if (r->node.state == ZKL_NODE_DELETE)
	{
		zkl_batches_want_proof(m);
		zkl_downgrade_end(r);
		zkl_request_node_gone(m, r);
	}
	else
		zkl_request_node_deleted(m, r);
}

/* ---- in a batch ---- */

static ZklRequest *
changed(const ZklWrite *w)
{
	return zkl_container(ZklRequest, downgrade.write, w);
}

static size_t
change_bytes(const ZklWrite *w)
{
	return zkl_downgrade_change.nops * zkl_node_bytes(changed(w));
}

static void
fill_change(ZklManager *m, ZklWrite *w, ZklMultiOp *ops, ZklForm *form)
{
	ZklRequest *r = changed(w);
	char	   *mark = zkl_actions_text(m, ZKL_MAX_NODE_DATA);
	char	   *data = zkl_actions_text(m, r->node.data_length +
										ZKL_NODE_DATA_TIMEOUT);

	(void) form;
	ZKL_ASSERT(r->node.state == ZKL_NODE_EXISTS);
	ZKL_ASSERT(r->node.mode == ZKL_EXCLUSIVE && zkl_siblings_stays(r));
	zkl_look_stop(r);
	memcpy(data, r->node.data, r->node.data_length);

	ops[0].kind = ZKL_MULTI_SET;
	ops[0].path = zkl_node_path_as(m, r, ZKL_EXCLUSIVE);

	/*
	 * If another client, such as an operator, has written to the node, that
	 * must not get lost.  Once the node has been read, the downgrade begins
	 * again.
	 */
	ops[0].version = ZKL_MUTANT(MARK_WRITTEN_OVER) ? -1 : r->node.version;
	ops[0].data = mark;
	ops[0].data_length = zkl_node_data_downgrade(r->node.data,
												 r->node.data_length, mark,
												 ZKL_MAX_NODE_DATA);
	ops[1].kind = ZKL_MULTI_CREATE_EPHEMERAL;
	ops[1].path = zkl_node_path_as(m, r, ZKL_SHARED);
	ops[1].version = -1;
	ops[1].data = data;
	ops[1].data_length = zkl_node_data_timeout(data, r->node.data_length,
											   m->session.timeout_ms);
	ops[2].kind = ZKL_MULTI_DELETE;
	ops[2].path = ops[0].path;
	ops[2].version = -1;
	if (ZKL_MUTANT(DOWNGRADE_UNMARKED))
	{
		ZklMultiOp	set = ops[0];

		ops[0] = ops[1];
		ops[1] = set;
		ops[1].path = ops[0].path;
	}
}

static void
settle_change(ZklManager *m, ZklWrite *w, const ZklOutcome *o)
{
	ZKL_ASSERT(changed(w)->node.state >= ZKL_NODE_EXISTS);
	if (o->kind == ZKL_OUTCOME_UNKNOWN)
		zkl_downgrade_unknown(changed(w));
	else if (o->culprit)
		zkl_downgrade_reply_refused(m, changed(w), o->rc);
	else
		zkl_downgrade_reply_settle(m, changed(w),
								   o->kind == ZKL_OUTCOME_APPLIED);
}

const ZklWriter zkl_downgrade_change = {
	.nops = 3,.bytes = change_bytes,.fill = fill_change,.settle = settle_change
};
