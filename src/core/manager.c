/*
 * manager.c
 *	  The core's outside: the life of a manager, and what its host tells it.
 *
 * Owns the manager itself: it makes one and takes it apart, and carries each
 * event to the file concerned.  Runs in the worker (and in tests), takes no
 * locks, knows neither PostgreSQL nor ZooKeeper, reads no clock.
 */
#include <string.h>

#include "core/batch.h"
#include "core/cache.h"
#include "core/contenders.h"
#include "core/decide.h"
#include "core/host.h"
#include "core/janitor.h"
#include "core/lock.h"
#include "core/node.h"
#include "core/owner.h"
#include "core/reads.h"
#include "core/reads_reply.h"
#include "core/request.h"
#include "core/session.h"
#include "core/write.h"

/* ---- life ---- */

ZklManager *
zkl_manager_create(const ZklConfig *config)
{
	ZklManager *m = config->memory.alloc(config->memory.context,
										 sizeof(ZklManager));

	ZKL_ASSERT(config->max_requests > 0 && config->batches_in_flight > 0);
	ZKL_ASSERT(config->batch_operations >= 2 && config->batch_operations <= 4096);
	ZKL_ASSERT((config->offer == NULL) == (config->recall == NULL));
	memset(m, 0, sizeof(*m));
	m->config = *config;
	strncpy(m->root, config->root, ZKL_MAX_ROOT);
	m->config.root = m->root;
	if (config->server != NULL)
		strncpy(m->server, config->server, ZKL_MAX_SERVER_NAME);
	m->config.server = m->server;
	zkl_operations_init(m);
	zkl_batches_init(m);
	zkl_request_init_all(m);
	zkl_node_init_all(m);
	zkl_write_init_all(m);
	zkl_lock_init_all(m);
	zkl_directories_init_all(m);
	zkl_look_init_all(m);
	zkl_reads_init(m);
	zkl_siblings_init_all(m);
	zkl_cache_init_all(m);
	zkl_rewrite_init_all(m);
	zkl_list_init(&m->kept);
	zkl_hooks_begin(m);
	return m;
}

void
zkl_manager_destroy(ZklManager *m)
{
	zkl_hooks_end(m);
	zkl_lock_free_all(m);
	zkl_directories_free_all(m);
	zkl_janitor_stop(m);
	zkl_batches_free(m);
	zkl_actions_free(m);
	zkl_operations_free(m);
	zkl_node_free_all(m);
	zkl_siblings_free_all(m);
	zkl_request_free_all(m);
	zkl_departed_free(m);
	m->config.memory.release(m->config.memory.context, m);
}

void
zkl_manager_clear_actions(ZklManager *m)
{
	zkl_actions_clear(m);
}

const ZklAction *
zkl_manager_actions(const ZklManager *m, size_t *n)
{
	*n = m->actions.n;
	return m->actions.all;
}

/* ---- events ---- */

static void
submit(ZklManager *m, uint32_t request, const ZklDemand *demand)
{
	ZklRequest *r;
	ZklRequest *cover;

	ZKL_ASSERT(!zkl_manager_knows(m, request));
	zkl_end_due(m);
	zkl_recall_lock(m, zkl_lock_get(m, demand->name, demand->dialect),
					ZKL_RECALL_DEMANDED);
	r = zkl_request_begin(m, request, demand);
	zkl_batches_pace_submitted(m);

	/*
	 * If the owner already holds the lock, the grant does not depend on the
	 * connection: it is good for as long as that hold is, lease and session
	 * included.
	 */
	cover = zkl_siblings_covering(r);
	if (cover != NULL)
		zkl_request_cover(m, r, cover);

	/*
	 * A broken hold's node goes only with its release, and r would wait
	 * behind those that wait for that.
	 */
	else if (zkl_siblings_any_broken(r))
		zkl_request_fail(m, r, ZKL_FAILURE_BROKEN, 0);
	else if (r->timed_out && m->connection.state == ZKL_CONNECTION_READY &&
			 m->now < m->session_lease.until &&
			 zkl_lock_blocked_by_holder(m, r->lock, r))
		zkl_request_deny(m, r);
	else if (!zkl_probe_begin(m, r))
		zkl_request_create(m, r);
}

static void
heed_reply(ZklManager *m, uint64_t tag, const ZklReply *reply)
{
	ZklOp		op;

	/*
	 * If the connection was given up, its answers may be older than what was
	 * doubted.
	 */
	if (m->connection.state == ZKL_CONNECTION_DOWN ||
		!zkl_operations_end(m, tag, &op))
		return;
	if (reply->rc == ZKL_RC_OK || ZKL_MUTANT(CONTACT_BY_ERROR))
		zkl_session_lease_contact(m, op.sent_at);
	ZKL_ASSERT(op.sent_at <= m->now);
	switch (op.kind)
	{
		case ZKL_OP_BATCH:
			zkl_batch_reply_take(m, &op, reply);
			break;
		case ZKL_OP_CHAIN:
			zkl_session_chain_reply(m, reply);
			break;
		case ZKL_OP_CHAIN_FENCE:
		case ZKL_OP_CHAIN_IN_USE:
		case ZKL_OP_CHAIN_LIST:
			if (zkl_session_check_reply(m, op.kind, reply))
				zkl_connection_writes_lost(m);
			break;
		case ZKL_OP_JANITOR:
			zkl_janitor_reply(m, reply);
			break;
		case ZKL_OP_SWEEP:
			zkl_session_swept(m, reply->rc);
			break;
		case ZKL_OP_MAKE_DIRECTORY:
			if (op.lock != NULL && reply->rc == ZKL_RC_OK)
				zkl_directories_made(op.lock);
			zkl_batch_reply_parent(m, op.lock, reply->rc);
			break;
		case ZKL_OP_PARENT:
			zkl_batch_reply_parent(m, op.lock, reply->rc);
			break;
		case ZKL_OP_RESET:

			/*
			 * Whatever the answer is: if it was refused, the next request
			 * meets the end again.
			 */
			zkl_lock_counter_good(op.lock);
			break;
		case ZKL_OP_DELETE_DIRECTORIES:
			zkl_directories_deleted(m, reply);
			break;
		case ZKL_OP_DELETE:
			ZKL_ASSERT(op.request != NULL);
			if (op.request->submitted == op.submitted)
				zkl_node_write_deleted(m, op.request, reply->rc);
			break;
		default:
			if (op.kind >= ZKL_OP_WING)
				ZKL_HOOKS(m, reply, &op, reply);
			else
				zkl_reads_reply_take(m, &op, reply);
			break;
	}
	if (op.lock != NULL)
	{
		zkl_operations_unpin(op.lock);
		if (ZKL_MUTANT(UNPINNED_TWICE))
			zkl_operations_unpin(op.lock);
		zkl_lock_settle_idle(m, op.lock);
	}
}

static void
set_cache_time(ZklManager *m, int64_t time)
{
	if (m->config.recall == NULL)
		return;
	zkl_cache_set_time(m, time);
	if (time == 0)
		zkl_recall_all(m);
}

void
zkl_manager_event(ZklManager *m, int64_t now, const ZklEvent *event)
{
	ZklRequest *r = &m->requests.all[event->request];

	ZKL_ASSERT(event->request < m->config.max_requests);
	ZKL_ASSERT(now >= m->now);
	m->now = now;
	switch (event->kind)
	{
		case ZKL_EVENT_SUBMIT:
			submit(m, event->request, event->demand);
			break;
		case ZKL_EVENT_TIME_OUT:
			zkl_request_time_out(m, r);
			break;
		case ZKL_EVENT_NEWS:
			ZKL_HOOKS(m, told, r, event->news);
			break;
		case ZKL_EVENT_RELEASE:
			zkl_recall_request(m, r, ZKL_RECALL_OVER);
			zkl_end_release(m, event->request, &event->end);
			break;
		case ZKL_EVENT_OVERDUE:
			zkl_recall_request(m, r, ZKL_RECALL_OVER);
			zkl_end_overdue(m, event->request);
			break;
		case ZKL_EVENT_CACHE:
			set_cache_time(m, event->cache_time);
			break;
		case ZKL_EVENT_PROVE:
			zkl_session_lease_prove(m);
			break;
		case ZKL_EVENT_CONNECTED:
			zkl_connection_up(m, event->session);
			break;
		case ZKL_EVENT_DISCONNECTED:
			zkl_connection_down(m);
			break;
		case ZKL_EVENT_SESSION_LOST:
			zkl_connection_session_lost(m);
			break;
		case ZKL_EVENT_REPLY:
			heed_reply(m, event->tag, event->reply);
			break;
		case ZKL_EVENT_DELETED:
		case ZKL_EVENT_CHANGED:
		case ZKL_EVENT_CHILDREN:
			zkl_reads_reply_event(m, event->kind, event->path);
			break;
		case ZKL_EVENT_PEERS:
			zkl_words_set_peers(m, event->peers);
			break;
		case ZKL_EVENT_ASK:
			r = zkl_words_asked(m, event->peer);
			if (r != NULL)
				zkl_recall_request(m, r, ZKL_RECALL_WANTED);
			break;
		case ZKL_EVENT_WORD:
			zkl_words_heard(m, event->peer);
			break;
	}
}

bool
zkl_manager_knows(const ZklManager *m, uint32_t request)
{
	return m->requests.all[request].demand != ZKL_DEMAND_UNUSED;
}

bool
zkl_manager_keeps(const ZklManager *m, uint32_t request)
{
	const ZklRequest *r = &m->requests.all[request];

	return r->demand == ZKL_DEMAND_GRANTED && !r->broken && zkl_keep_is_on(r);
}

/* ---- after the events ---- */

/*
 * The host was held up for long, or ZooKeeper did not answer: meanwhile an
 * operator may have marked nodes, or removed them for want of an answer.  On
 * a new connection we look at all of them again.  But only requests with a
 * place in a queue relied on the lease; a request without one loses nothing
 * when an idle server's lease ends.  A connection that has not yet looked
 * at all of them goes on: another one would have to look at all again.
 *
 * A new connection also counts as a contact, where a beat would not renew the
 * lease at once.
 */
static void
heed_lapse(ZklManager *m)
{
	bool		lapsed = zkl_session_lease_note_lapse(m);

	if (m->connection.state == ZKL_CONNECTION_READY && m->requests.nlive > 0 &&
		(lapsed || zkl_session_lease_until(m, m->now) <= m->now))
		zkl_session_give_up(m, ZKL_RC_LAPSED);
}

void
zkl_manager_flush(ZklManager *m, int64_t now)
{
	ZklLock    *lock;

	ZKL_ASSERT(now >= m->now);
	m->now = now;
	zkl_end_due(m);
	zkl_recall_idle(m);
	heed_lapse(m);
	zkl_session_lease_verify(m);
	while (m->connection.state == ZKL_CONNECTION_READY &&
		   (now < m->session_lease.until || ZKL_MUTANT(GRANT_WITHOUT_LEASE)) &&
		   (lock = zkl_lock_next_touched(m)) != NULL)
		zkl_decide_lock(m, lock);
	zkl_batches_pace_decided(m);
	ZKL_HOOKS(m, decide);
	zkl_batch_send(m);
	zkl_rewrite_send(m);
	zkl_reads_send(m);
	zkl_look_send(m);
	zkl_revived_send(m);
	zkl_session_lease_send(m);
	zkl_janitor_send(m);
	zkl_directories_send(m);
	ZKL_HOOKS(m, send);
	zkl_cache_offer(m);
}

/* The earlier one; -1 is none. */
static int64_t
earlier(int64_t a, int64_t b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

int64_t
zkl_manager_timer(const ZklManager *m)
{
	if (m->connection.state != ZKL_CONNECTION_READY)
		return -1;
	return earlier(earlier(earlier(zkl_batch_timer(m), zkl_janitor_timer(m)),
						   earlier(zkl_session_lease_timer(m),
								   zkl_keep_timer(m))),
				   earlier(earlier(zkl_hooks_timer(m), zkl_directories_timer(m)),
						   earlier(zkl_cache_timer(m), zkl_rewrite_timer(m))));
}

uint32_t
zkl_manager_awaited(const ZklManager *m)
{
	/* A release may hand over a lock that another request waits for. */
	return m->locks.nwaiting == 0 &&
		m->connection.state == ZKL_CONNECTION_READY ?
		zkl_batches_pace_missing(m) : 0;
}

/* ---- questions ---- */

bool
zkl_manager_ready(const ZklManager *m)
{
	return m->connection.state == ZKL_CONNECTION_READY;
}

bool
zkl_manager_at_rest(const ZklManager *m)
{
	return m->connection.state == ZKL_CONNECTION_READY &&
		m->requests.nlive == 0 &&
		m->batches.n == 0 && !m->chain.needed && !m->chain.sent;
}

int64_t
zkl_manager_lease(const ZklManager *m)
{
	return m->session_lease.until;
}

int64_t
zkl_manager_zxid(const ZklManager *m)
{
	return zkl_session_zxid_shown(m);
}

uint32_t
zkl_manager_live(const ZklManager *m)
{
	return m->requests.nlive;
}

bool
zkl_manager_nearest(const ZklManager *m, uint32_t request, ZklNearest *nearest)
{
	return zkl_contenders_nearest(&m->requests.all[request], nearest);
}

void
zkl_manager_counters(const ZklManager *m, ZklCounters *counters)
{
	counters->batches = m->batches.napplied;
	counters->operations = m->operations.sent;
	counters->listings = m->reads.listings;
	counters->creates = m->nodes.created;
	counters->continuous = m->nodes.alone;
	counters->watches = m->reads.watches;
	counters->recalls = m->cache.recalls;
	counters->asks = m->words.asks;
	counters->words = m->words.said;
	counters->words_taken = m->words.taken;
	counters->words_late = m->words.late;
}
