/*
 * session_lease.c
 *	  How long the session surely lives: the rule of the lease.
 *
 * Owns m->session_lease: the lease, and when ZooKeeper heard of the session.
 * Runs in the worker (and in tests), takes no locks, knows neither PostgreSQL
 * nor ZooKeeper.
 *
 * The leader ends a session T after it last heard of it.  A write that comes
 * through a follower does not count there: the leader hears of the sessions of
 * a follower only from its answers to pings, which the leader sends every half
 * tick (LearnerHandler.java, SessionTrackerImpl.java: checkSession does not
 * touch).  So when a batch is sent, the leader may know only of what came
 * before the latest such ping; if the follower is cut off right behind its
 * answer, that stays so.  T is at least two ticks, hence half a tick at most
 * T/4; a little more is for the way.  The leader has heard of everything that
 * was answered before that ping: each such answer is a contact, and counts
 * from when its question was sent.  The making of the connection is a contact,
 * too, because the leader is asked about it.
 *
 * The lease counts from the last contact that was early enough, and is at most
 * two thirds of T.  To have a lease when the first request comes, an idle
 * session reads its own heartbeat node every T/4, in place of the pings of
 * ZooKeeper's client.
 *
 * If something is held or awaited, a beat comes every T/6.  But programs outside of the
 * server end when what they know of the lease is over, and ask again every T/12: for
 * them beats come as often.  Then the last contact that counts is at most 7T/24 + T/12
 * older than the beat, so that a beat leaves 0.62 T; T/48 less among other batches.
 */
#include "core/batches.h"
#include "core/downgrade.h"
#include "core/look.h"
#include "core/operations.h"
#include "core/revived.h"
#include "core/session.h"
#include "core/session_lease.h"

static int64_t
timeout_us(const ZklManager *m)
{
	return (int64_t) m->session.timeout_ms * 1000;
}

void
zkl_session_lease_begin(ZklManager *m, int64_t begun_at)
{
	int64_t		limit;
	uint32_t	i;

	m->session_lease.connecting_since =
		ZKL_MUTANT(CONNECTION_FROM_ITS_END) ? m->now :
		begun_at;
	m->session_lease.ncontacts = 0;

	/* The connect restarts the session, with this timeout. */
	limit = begun_at + timeout_us(m) - timeout_us(m) / 500;
	if (m->session_lease.until > limit)
		m->session_lease.until = limit;
	m->session_lease.verified = true;
	for (i = 0; i < m->config.max_requests; i++)
	{
		ZklRequest *r = &m->requests.all[i];

		zkl_look_set_verified(r, r->demand != ZKL_DEMAND_GRANTED ||
							  r->node.state != ZKL_NODE_EXISTS);
		if (r->look.verified)
			continue;
		if (!zkl_downgrade_pending(r))
			zkl_look_soon(m, r);
		m->session_lease.verified = false;
	}
	m->session_lease.looking = !m->session_lease.verified;
}

void
zkl_session_lease_doubt(ZklManager *m, ZklRequest *r)
{
	zkl_look_set_verified(r, false);
	m->session_lease.verified &= r->demand != ZKL_DEMAND_GRANTED || r->broken;
}

void
zkl_session_lease_suspend(ZklManager *m)
{
	m->session_lease.verified = false;
}

/*
 * While there was no connection, another client may have marked or deleted a
 * node unseen.  So the beats of a new connection renew the lease only when
 * all holds have seen their nodes on it; from then on watches tell before
 * beats do.  If the session may have ended meanwhile, revived.c has to look, too.
 */
void
zkl_session_lease_verify(ZklManager *m)
{
	uint32_t	i;

	if (m->session_lease.verified ||
		m->connection.state != ZKL_CONNECTION_READY)
		return;
	for (i = 0; i < m->config.max_requests; i++)
	{
		const ZklRequest *r = &m->requests.all[i];

		if (r->demand == ZKL_DEMAND_GRANTED &&
			r->node.state == ZKL_NODE_EXISTS &&
			!r->look.verified && !r->broken)
			return;
		if (zkl_revived_is_open(r))
			return;
	}
	m->session_lease.verified = true;
	m->session_lease.looking = false;
	zkl_session_zxid_show(m);
	zkl_batches_want_beat(m, true);
}

void
zkl_session_lease_contact(ZklManager *m, int64_t sent_at)
{
	ZklSessionLease *lease = &m->session_lease;
	uint32_t	last = (lease->ncontacts + ZKL_CONTACTS - 1) % ZKL_CONTACTS;

	ZKL_ASSERT(sent_at <= m->now);

	/* Contacts must reach back far enough; they need not be many. */
	if (lease->ncontacts > 0 &&
		sent_at - lease->contacts[last].sent_at < timeout_us(m) / ZKL_CONTACTS)
		return;
	last = lease->ncontacts++ % ZKL_CONTACTS;
	lease->contacts[last].sent_at = sent_at;
	lease->contacts[last].answered_at = m->now;
}

int64_t
zkl_session_lease_until(const ZklManager *m, int64_t sent_at)
{
	int64_t		early = sent_at - timeout_us(m) * 7 / 24;
	int64_t		heard = m->session_lease.connecting_since;
	int64_t		longest = sent_at + timeout_us(m) * 2 / 3;
	int64_t		expiry;
	uint32_t	i;

	for (i = 0; i < ZKL_CONTACTS && i < m->session_lease.ncontacts; i++)
	{
		const ZklContact *contact = &m->session_lease.contacts[i];

		if (contact->answered_at <= early && contact->sent_at > heard)
			heard = contact->sent_at;
	}
	if (ZKL_MUTANT(LEASE_FROM_REPLY))
		return m->now + timeout_us(m) * 2 / 3;
	if (ZKL_MUTANT(LEASE_OF_TIMEOUT))
		return sent_at + timeout_us(m);
	if (ZKL_MUTANT(LEASE_WITHOUT_CONTACT))
		return longest;

	/* Clock rates differ by 0.1 % at most: twice that is taken off. */
	expiry = heard + timeout_us(m) - timeout_us(m) / 500;
	if (ZKL_MUTANT(LEASE_WITHOUT_RATES))
		expiry = heard + timeout_us(m);
	return expiry < longest ? expiry : longest;
}

int64_t
zkl_session_lease_timer(const ZklManager *m)
{
	if (m->connection.state != ZKL_CONNECTION_READY || m->requests.nlive > 0 ||
		m->chain.needed)
		return -1;
	return m->operations.sent_at +
		timeout_us(m) / (ZKL_MUTANT(LEASE_WITHOUT_CONTACT) ? 3 : 4);
}

void
zkl_session_lease_send(ZklManager *m)
{
	int64_t		due = zkl_session_lease_timer(m);

	if (due < 0 || due > m->now)
		return;
	zkl_operations_send(m, ZKL_OP_IGNORE, NULL, NULL, ZKL_SEND_GET,
						zkl_session_heartbeat(m, m->chain.number));
}

void
zkl_session_lease_prove(ZklManager *m)
{
	m->session_lease.asked_at = m->now;
}

int64_t
zkl_session_lease_beat(const ZklManager *m)
{
	bool		asked = m->session_lease.asked_at != 0 &&
	m->now < m->session_lease.asked_at + timeout_us(m) / 4;

	return timeout_us(m) / (asked ? 12 : 6);
}

void
zkl_session_lease_end(ZklManager *m)
{
	m->session_lease.until = 0;
}

/*
 * The host publishes the lease before it tells a session that it has lost its hold,
 * and may be held up in between.  Then only the lease keeps that session from going
 * on, so a batch that is answered together with such news does not extend it.
 */
void
zkl_session_lease_extend(ZklManager *m, int64_t until)
{
	if (m->session_lease.verified && m->actions.nlosses == 0 &&
		until > m->session_lease.until)
		m->session_lease.until = until;
}

/*
 * While the first looks of a connection last, no batch extends the lease.  So what
 * they find out is not out of date when it ends.
 */
bool
zkl_session_lease_note_lapse(ZklManager *m)
{
	bool		valid = m->now < m->session_lease.until;
	bool		lapsed = m->session_lease.relied && m->locks.nqueued > 0 &&
	!valid;

	m->session_lease.relied = valid && m->locks.nqueued > 0;
	return lapsed && !m->session_lease.looking;
}
