/*
 * batch.c
 *	  The batch: all pending writes in one ZooKeeper transaction.
 *
 * Owns nothing: it forms and sends a batch of writes, whatever they are.
 * batches.c keeps those under way, batch_reply.c says what an answer means, and
 * session.c keeps the version that the next beat expects.  Runs in the worker
 * (and in tests), takes no locks, knows neither PostgreSQL nor ZooKeeper.
 *
 * A batch is one multi: set(heartbeat, expected version k), then writes in the order
 * of their ranks, each of which fits as a whole or waits.  Each batch names the version
 * that the one before it left.  So a batch is applied at most once and in order,
 * however often it is sent.
 */
#include <string.h>

#include "core/actions.h"
#include "core/batch.h"
#include "core/batches.h"
#include "core/operations.h"
#include "core/reads.h"
#include "core/session.h"
#include "core/session_lease.h"
#include "core/write.h"

#define ZKL_MAX_VERSION		(1 << 30)	/* then a new heartbeat node */

/* ---- forming ---- */

/* Takes pending writes into the batch, in the order of their ranks, while they fit. */
static void
gather(ZklManager *m, ZklBatch *batch)
{
	size_t		bytes = 0;
	ZklWriteRank rank;
	ZklLink    *link,
			   *after;

	for (rank = 0; rank < ZKL_RANK_ALONE; rank++)
	{
		zkl_foreach(link, after, &m->writes.pending[rank])
		{
			ZklWrite   *w = zkl_container(ZklWrite, link, link);

			bytes += w->by->bytes(w);
			if (batch->nseats > 0 &&
				(batch->nops + w->by->nops > m->batches.limit ||
				 bytes > m->config.batch_bytes))
				return;
			ZKL_ASSERT(batch->nseats < m->config.batch_operations);
			zkl_batches_add(batch, w);
		}
	}
}

static size_t
format_number(char *text, uint64_t number)
{
	char		digits[24];
	size_t		n = 0,
				i;

	do
	{
		digits[n++] = (char) ('0' + number % 10);
		number /= 10;
	} while (number > 0);
	for (i = 0; i < n; i++)
		text[i] = digits[n - 1 - i];

	return n;
}

static ZklMultiOp *
form_operations(ZklManager *m, const ZklBatch *batch)
{
	ZklMultiOp *ops = (ZklMultiOp *) (void *)
	zkl_actions_text(m, batch->nops * sizeof(ZklMultiOp));
	char	   *number = zkl_actions_text(m, 24);
	ZklForm		form = {.made = ""};
	uint32_t	i;

	memset(ops, 0, batch->nops * sizeof(ZklMultiOp));
	ops[0].kind = ZKL_MULTI_SET;
	ops[0].path = zkl_session_heartbeat(m, m->chain.number);
	ops[0].version = ZKL_MUTANT(LOOKUP_WITHOUT_CHAIN) ? -1 : batch->version;
	ops[0].data = number;
	ops[0].data_length = format_number(number, m->batches.number);
	for (i = 0; i < batch->nseats; i++)
	{
		ZklWrite   *w = batch->seats[i].write;

		form.index = batch->seats[i].index;
		ZKL_ASSERT(form.index + w->by->nops <= batch->nops);
		w->by->fill(m, w, &ops[form.index], &form);
	}
	return ops;
}

static void
send_behind(ZklManager *m, const ZklBatch *batch)
{
	uint32_t	i;

	for (i = 0; i < batch->nseats; i++)
	{
		ZklWrite   *w = batch->seats[i].write;

		if (w->by->behind != NULL)
			w->by->behind(m, w);
	}
}

static int64_t
next_beat(const ZklManager *m)
{
	/*
	 * The answer to a batch under way does as well, unless the batch is
	 * refused: only one that was applied renews the lease.
	 */
	if (m->requests.nlive == 0 || m->batches.n > 0)
		return -1;
	return (m->batches.refused ? m->batches.acknowledged_at : m->batches.sent_at) +
		zkl_session_lease_beat(m);
}

/* If writes that were refused have held up a beat, it goes alone. */
static void
send_batch(ZklManager *m)
{
	int64_t		beat = next_beat(m);
	bool		goes_alone = m->batches.refused && beat >= 0 && beat <= m->now;
	ZklBatch   *batch = zkl_batches_begin(m, zkl_session_next_version(m));
	ZklMultiOp *ops;
	ZklAction  *action;

	if (!goes_alone)
		gather(m, batch);
	ops = form_operations(m, batch);
	action = zkl_operations_send(m, ZKL_OP_BATCH, NULL, NULL,
								 ZKL_SEND_MULTI, NULL);
	action->multi = ops;
	action->nmulti = batch->nops;
	zkl_batches_sent(m, batch);
	send_behind(m, batch);
}

/* ---- sending ---- */

static void
send_alone(ZklManager *m)
{
	const ZklList *list = &m->writes.pending[ZKL_RANK_ALONE];

	while (!zkl_list_empty(list))
	{
		ZklWrite   *w = zkl_container(ZklWrite, link, list->head.next);

		ZKL_ASSERT(w->by->alone != NULL);
		zkl_write_go_alone(m, w, w->by);
		w->by->alone(m, w);
	}
}

static void
retry_what_was_refused(ZklManager *m)
{
	if (m->now < m->stuck_until)
		return;
	zkl_session_sweep_again(m);
	zkl_write_retry(m);
	zkl_reads_retry(m);
}

static bool
work_at_hand(const ZklManager *m)
{
	int64_t		beat = next_beat(m);

	return m->batches.beat_wanted || (beat >= 0 && beat <= m->now) ||
		!zkl_list_empty(&m->writes.pending[ZKL_RANK_CREATE]) ||
		zkl_write_is_urgent(m) || zkl_batches_pace_due(m);
}

/*
 * If a hand-over waits for the lease, it must not wait T/6 for the next beat.
 * But after a silence one beat is not enough.
 */
static void
want_lease(ZklManager *m)
{
	if (m->batches.n == 0 && m->now >= m->session_lease.until &&
		!zkl_list_empty(&m->locks.dirty) && m->session_lease.verified &&
		zkl_session_lease_until(m, m->now) > m->now)
		zkl_batches_want_beat(m, true);
}

void
zkl_batch_send(ZklManager *m)
{
	if (m->connection.state == ZKL_CONNECTION_DOWN)
		return;
	if (m->chain.needed || m->chain.version > ZKL_MAX_VERSION)
	{
		/* Batches under way must be answered first, or the chain breaks. */
		if (m->batches.n == 0 && !m->chain.sent)
			zkl_session_open_chain(m);
		return;
	}
	if (m->connection.state == ZKL_CONNECTION_PROVING)
	{
		if (m->batches.n == 0)
			send_batch(m);
		return;
	}
	ZKL_ASSERT(m->connection.state == ZKL_CONNECTION_READY);
	retry_what_was_refused(m);
	send_alone(m);
	want_lease(m);
	while (!m->batches.broken && zkl_batches_pace_missing(m) == 0 &&
		   m->batches.n < m->config.batches_in_flight && work_at_hand(m))
		send_batch(m);
}

int64_t
zkl_batch_timer(const ZklManager *m)
{
	int64_t		due = next_beat(m);
	int64_t		pace = zkl_batches_pace_timer(m);

	if (m->chain.needed)
		return -1;

	/* Gathering holds up a beat, too, but not for long. */
	if (zkl_batches_pace_missing(m) > 0)
		return pace;
	if (zkl_write_any_stuck(m) && (due < 0 || m->stuck_until < due))
		due = m->stuck_until;
	if (pace >= 0 && (due < 0 || pace < due))
		due = pace;
	return due;
}
