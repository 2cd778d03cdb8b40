/*
 * batches.c
 *	  The batches under way, and the beats that open them.
 *
 * Owns m->batches.  batch.c forms and sends a batch, and batch_reply.c says what
 * its answer means.  Runs in the worker (and in tests), takes no locks.
 */
#include <string.h>

#include "core/batches.h"
#include "core/memory.h"

void
zkl_batches_init(ZklManager *m)
{
	size_t		size = m->config.batches_in_flight * sizeof(ZklBatch);
	uint32_t	i;

	m->batches.all = zkl_memory_alloc(m, size);
	memset(m->batches.all, 0, size);
	for (i = 0; i < m->config.batches_in_flight; i++)
	{
		m->batches.all[i].seats =
			zkl_memory_alloc(m, m->config.batch_operations * sizeof(ZklSeat));
	}
	m->batches.limit = m->config.batch_operations;
}

void
zkl_batches_free(ZklManager *m)
{
	uint32_t	i;

	for (i = 0; i < m->config.batches_in_flight; i++)
		zkl_memory_release(m, m->batches.all[i].seats);
	zkl_memory_release(m, m->batches.all);
}

ZklBatch *
zkl_batches_begin(ZklManager *m, int32_t version)
{
	ZklBatch   *batch = zkl_batches_get(m, m->batches.n++);

	batch->version = version;
	batch->sent_at = m->batches.sent_at = m->now;
	batch->nops = 1;
	batch->nseats = 0;
	m->batches.number++;
	m->batches.beat_wanted = false;
	return batch;
}

void
zkl_batches_add(ZklBatch *batch, ZklWrite *w)
{
	ZklSeat    *seat = &batch->seats[batch->nseats++];

	zkl_write_take_seat(w, seat, batch->nops);
	batch->nops += w->by->nops;
}

void
zkl_batches_sent(const ZklManager *m, ZklBatch *batch)
{
	batch->order = m->operations.order;
}

ZklBatch *
zkl_batches_take(ZklManager *m)
{
	ZklBatch   *batch = zkl_batches_get(m, 0);

	m->batches.first = (m->batches.first + 1) % m->config.batches_in_flight;
	m->batches.n--;
	return batch;
}

void
zkl_batches_applied(ZklManager *m, const ZklBatch *batch)
{
	m->batches.napplied++;
	m->batches.refused = false;
	if (m->batches.number - m->batches.n >= m->batches.unproved_until)
		m->batches.unproved_until = 0;
	m->batches.acknowledged_at = batch->sent_at;
	m->batches.unknown_streak = 0;
	if (m->batches.limit < m->config.batch_operations)
		m->batches.limit = m->batches.limit * 2 < m->config.batch_operations ?
			m->batches.limit * 2 : m->config.batch_operations;
}

void
zkl_batches_refused(ZklManager *m)
{
	m->batches.refused = true;
}

void
zkl_batches_unanswered(ZklManager *m)
{
	m->batches.unknown_streak++;
}

/*
 * If two in a row are unknown, they may be too large for the server, so the
 * next are smaller.
 */
void
zkl_batches_unknown(ZklManager *m, const ZklBatch *batch)
{
	if (m->batches.unknown_streak < 2 || batch->nseats == 0)
		return;
	m->batches.limit = batch->nops / 2 + 1;
	if (m->batches.limit < 2)
		m->batches.limit = 2;
}

void
zkl_batches_set_broken(ZklManager *m, bool broken)
{
	m->batches.broken = broken;
}

void
zkl_batches_new_session(ZklManager *m)
{
	m->batches.unknown_streak = 0;
}

void
zkl_batches_want_proof(ZklManager *m)
{
	m->batches.unproved_until = m->batches.number + 1;
	m->batches.beat_wanted = true;
}

bool
zkl_batches_take_unproved(ZklManager *m)
{
	bool		unproved = m->batches.unproved_until != 0;

	m->batches.unproved_until = 0;
	return unproved;
}

void
zkl_batches_want_beat(ZklManager *m, bool wanted)
{
	m->batches.beat_wanted = wanted;
}
