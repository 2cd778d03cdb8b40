/*
 * supervisor.c
 *	  A simulated zklock server's way to ZooKeeper: the session process, and
 *	  what the worker's supervisor does about it.
 *
 * Owns a host's phase, its connection and its link's inbox.  Does what
 * src/supervisor.c and session/ do.  Must not know locks.
 */
#include <string.h>

#include "chaos.h"
#include "core/assert.h"
#include "host.h"
#include "oracle.h"
#include "seen.h"

#define FIRST_PAUSE		100000	/* µs */
#define LONGEST_PAUSE	5000000
#define CLOSING_TIME	1000000

/* ---- the link ---- */

void
link_push(Host *h, LinkKind kind, int64_t session, Frame *frame)
{
	LinkMessage *message = take(sizeof(LinkMessage));

	message->kind = kind;
	message->session = session;
	if (kind == LINK_CONNECTED)
		message->timeout = session_find(session)->timeout;
	message->frame = frame;
	*h->inbox_end = message;
	h->inbox_end = &message->next;
	worker_wake(h, hosts.wake_delay);
}

LinkMessage *
link_next(Host *h)
{
	LinkMessage *message = h->inbox;

	if (message == NULL)
		return NULL;
	h->inbox = message->next;
	if (h->inbox == NULL)
		h->inbox_end = &h->inbox;
	return message;
}

void
link_put_back(Host *h, LinkMessage *message)
{
	message->next = h->inbox;
	if (h->inbox == NULL)
		h->inbox_end = &message->next;
	h->inbox = message;
}

/* ---- the session process ---- */

void
session_process_kill(Host *h)
{
	if (h->phase == PHASE_NO_PROCESS)
		return;
	trace("host #: session process killed", h->id, 0, 0, 0, NULL);
	h->attempt_at = NEVER;
	if (h->conn != NULL)
		conn_cut(h->conn, true);
	h->conn = NULL;
	link_push(h, LINK_BROKEN, 0, NULL);
}

void
supervisor_attempt(Host *h)
{
	int64_t		asked = h->worker.session.id;
	Conn	   *c;

	h->attempt_at = NEVER;
	switch (conn_attach(h->server, asked, 0, CLIENT_HOST, h->id, &c))
	{
		case ATTACH_DONE:
			trace("host #: conn # to server # with session #", h->id, c->id,
				  h->server, c->session, NULL);
			h->conn = c;
			if (c->session == asked && !ens.servers[h->server].deposed)
				oracle_attached(h);
			link_push(h, LINK_CONNECTED, c->session, NULL);
			break;
		case ATTACH_EXPIRED:
			trace("host #: session # has expired", h->id, asked, 0, 0, NULL);
			link_push(h, LINK_EXPIRED, 0, NULL);
			break;
		case ATTACH_FAILED:
			if (once_in(2))
				link_push(h, LINK_GONE, 0, NULL);
			break;
	}
}

/* ---- the supervisor ---- */

/* Without a session yet: the one that is asked for */
static int64_t
timeout_us(const Host *h)
{
	return h->worker.session.id != 0 ? h->timeout : ens.timeout;
}

static void
plan_restart(Host *h)
{
	int64_t		longest = timeout_us(h) / 3 < LONGEST_PAUSE ?
	timeout_us(h) / 3 : LONGEST_PAUSE;

	h->start_at = host_clock(h) + h->pause_next;
	h->pause_next = h->pause_next == 0 ? FIRST_PAUSE :
		h->pause_next * 2 < longest ? h->pause_next * 2 : longest;
}

static void
start_process(Host *h)
{
	h->phase = PHASE_CONNECTING;
	h->outstanding = 0;
	h->server = h->next_server++ % ens.nservers;
	h->begun_at = host_clock(h);
	h->deadline = host_clock(h) + timeout_us(h) / (3 * ens.nservers);
	h->attempt_at = base.now + some_delay(3 * ens.net);
}

void
supervisor_end_process(Host *h)
{
	bool		connected = h->phase == PHASE_CONNECTED;

	if (h->conn != NULL)
		conn_cut(h->conn, false);
	h->conn = NULL;
	h->attempt_at = NEVER;
	h->inbox = NULL;
	h->inbox_end = &h->inbox;
	h->phase = PHASE_NO_PROCESS;
	h->reconnect_wanted = h->give_up_wanted = false;
	h->closing_until = 0;
	if (connected)
	{
		h->worker.now = host_clock(h);
		worker_tell(&h->worker, ZKL_EVENT(DISCONNECTED));
	}
	plan_restart(h);
}

void
supervisor_begin(Host *h)
{
	h->inbox = NULL;
	h->inbox_end = &h->inbox;
	h->phase = PHASE_NO_PROCESS;
	h->attempt_at = NEVER;
	h->start_at = 0;
	h->pause_next = 0;
	h->next_server = base.natural ? h->id : (int) below(ens.nservers);
	h->outstanding = 0;
	h->reconnect_wanted = h->give_up_wanted = false;
	h->closing_until = 0;
}

/* Every grant of a session that is gone is void from now on. */
static void
void_grants(Host *h)
{
	if (!ZKL_MUTANT(LEASE_WITHOUT_GENERATION))
		lease_publish(h, h->worker.session.generation, 0);
}

void
supervisor_forget_session(Host *h)
{
	trace("host #: session # is lost", h->id, h->worker.session.id, 0, 0, NULL);
	worker_session_lost(&h->worker);
	void_grants(h);
}

static void
connected(Host *h, int64_t id, Time timeout)
{
	if (h->worker.session.id != 0 && h->worker.session.id != id)
		supervisor_forget_session(h);
	h->timeout = timeout;
	h->phase = PHASE_CONNECTED;
	h->outstanding = 0;
	if (worker_connected(&h->worker, id, (uint32_t) (timeout / MS),
						 h->begun_at))
	{
		oracle_new_session(h);
		void_grants(h);
	}
}

/* ZooKeeper may carry out the close late, so the session is forgotten first. */
static void
give_up_session(Host *h)
{
	Request    *request;

	h->give_up_wanted = false;
	supervisor_forget_session(h);
	h->closing_until = host_clock(h) + CLOSING_TIME;
	if (h->conn == NULL)
		return;
	request = take(sizeof(Request));
	request->kind = REQUEST_CLOSE;
	conn_send(h->conn, request);
	if (base.calm || once_in(2))
		return;

	/* The worst moment: a worker takes over. */
	host_accept_lower_tokens(h);
	ens.late_after_move = true;
	chaos_kill_worker(h, base.now + below(ens.net));
}

/* After a pause, the next attempt makes a new session. */
static void
session_given_up(Host *h)
{
	supervisor_end_process(h);
	h->start_at = host_clock(h) + LONGEST_PAUSE;
}

void
supervisor_reconnect(Host *h, int32_t rc)
{
	if (rc != ZKL_RC_WENT_BACK)
	{
		h->reconnect_wanted = true;
		return;
	}
	if (base.calm)
		host_accept_lower_tokens(h);
	h->give_up_wanted = true;
}

void
supervisor_take(Host *h, const LinkMessage *message)
{
	if (message->kind == LINK_CONNECTED)
	{
		connected(h, message->session, message->timeout);
		return;
	}
	if (h->closing_until != 0)
	{
		session_given_up(h);
		return;
	}
	supervisor_end_process(h);
	if (message->kind == LINK_EXPIRED)
	{
		supervisor_forget_session(h);
		h->start_at = host_clock(h);
	}
}

/* ---- sending ---- */

/* ZooKeeper's client answers by itself, without a word to the server. */
static void
refuse_to_send(Host *h, const ZklAction *action)
{
	Frame	   *frame = take(sizeof(Frame));
	ZklMultiResult *results;
	size_t		i;

	trace("host #: the client refuses to send", h->id, 0, 0, 0, NULL);
	SEEN(CLIENT_REFUSED);
	frame->tag = action->tag;
	frame->reply.rc = once_in(2) ? CLIENT_SENDS_NOTHING : CLIENT_LACKS_MEMORY;
	if (action->send == ZKL_SEND_MULTI)
	{
		results = take(action->nmulti * sizeof(ZklMultiResult));
		for (i = 0; i < action->nmulti; i++)
			results[i].rc = i == 0 ? frame->reply.rc : RC_PASSED_OVER;
		frame->reply.results = results;
		frame->reply.nresults = action->nmulti;
	}
	link_push(h, LINK_FRAME, 0, frame);
}

void
supervisor_send(Host *h, const ZklAction *action)
{
	if (h->phase != PHASE_CONNECTED)
		return;
	if (h->outstanding++ == 0)
		h->quiet_since = host_clock(h);
	if (h->conn == NULL)
		return;					/* GONE is in the inbox */
	if (base.now < h->client_refuses_until &&
		!(h->client_sends_multis && action->send == ZKL_SEND_MULTI) &&
		once_in(h->client_refuses_one_in))
		refuse_to_send(h, action);
	else
		conn_send(h->conn, message_make_request(action));
}

/* ---- time ---- */

static int64_t
next_start(const Host *h)
{
	return h->start_at > h->not_before ? h->start_at : h->not_before;
}

void
supervisor_tick(Host *h)
{
	int64_t		now = host_clock(h);

	if (h->phase == PHASE_NO_PROCESS && now >= next_start(h))
		start_process(h);
	else if (h->phase == PHASE_CONNECTING && now >= h->deadline)
		supervisor_end_process(h);
	else if (h->phase == PHASE_CONNECTED && h->closing_until != 0)
	{
		if (now >= h->closing_until)
			session_given_up(h);
	}
	else if (h->phase == PHASE_CONNECTED && h->give_up_wanted)
		give_up_session(h);
	else if (h->phase == PHASE_CONNECTED &&
			 (h->reconnect_wanted ||
			  (h->outstanding > 0 &&
			   now - h->quiet_since >= timeout_us(h) / 3)))
		supervisor_end_process(h);
	if (h->phase == PHASE_CONNECTED && zkl_manager_ready(h->worker.m))
		h->pause_next = 0;
}

int64_t
supervisor_timer(const Host *h)
{
	if (h->phase == PHASE_NO_PROCESS)
		return next_start(h);
	if (h->phase == PHASE_CONNECTING)
		return h->deadline;
	if (h->closing_until != 0)
		return h->closing_until;
	if (h->reconnect_wanted || h->give_up_wanted)
		return host_clock(h);
	return h->outstanding > 0 ? h->quiet_since + timeout_us(h) / 3 : -1;
}
