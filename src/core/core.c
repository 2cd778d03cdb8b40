/*
 * core.c
 *	  What all files of the core need: memory, actions, operations under way.
 *
 * Owns the memory of the actions and of their strings, and the table of
 * operations under way.  Runs in the worker (and in tests), takes no locks.
 * It must not know what an operation is for, nor what its answer means.
 */
#include <string.h>

#include "core/core.h"
#include "core/lock.h"

#define ZKL_CHUNK_SIZE	(64 * 1024)
#define ZKL_NO_OP		UINT32_MAX

struct ZklChunk
{
	ZklChunk   *next;
	size_t		used;
	size_t		size;
	char		bytes[];
};

/* ---- memory ---- */

void *
zkl_core_alloc(ZklManager *m, size_t size)
{
	return m->config.memory.alloc(m->config.memory.context, size);
}

void
zkl_core_release(ZklManager *m, void *pointer)
{
	m->config.memory.release(m->config.memory.context, pointer);
}

char *
zkl_core_text(ZklManager *m, size_t size)
{
	ZklChunk   *chunk = m->chunks;
	char	   *text;

	size = (size + 15) & ~(size_t) 15;
	if (chunk == NULL || chunk->size - chunk->used < size)
	{
		size_t		room = size > ZKL_CHUNK_SIZE ? size : ZKL_CHUNK_SIZE;

		chunk = zkl_core_alloc(m, sizeof(ZklChunk) + room);
		chunk->next = m->chunks;
		chunk->used = 0;
		chunk->size = room;
		m->chunks = chunk;
	}
	text = chunk->bytes + chunk->used;
	chunk->used += size;
	return text;
}

char *
zkl_core_join(ZklManager *m, const char *a, const char *b, const char *c)
{
	size_t		na = strlen(a),
				nb = strlen(b),
				nc = strlen(c);
	char	   *text = zkl_core_text(m, na + nb + nc + 1);

	memcpy(text, a, na);
	memcpy(text + na, b, nb);
	memcpy(text + na + nb, c, nc + 1);
	return text;
}

/* ---- actions ---- */

ZklAction *
zkl_core_act(ZklManager *m, ZklActionKind kind)
{
	ZklAction  *action;

	if (m->nactions == m->actions_allocated)
	{
		size_t		more = m->actions_allocated * 2 + 64;
		ZklAction  *grown = zkl_core_alloc(m, more * sizeof(ZklAction));

		if (m->actions != NULL)
		{
			memcpy(grown, m->actions, m->nactions * sizeof(ZklAction));
			zkl_core_release(m, m->actions);
		}
		m->actions = grown;
		m->actions_allocated = more;
	}
	action = &m->actions[m->nactions++];
	memset(action, 0, sizeof(*action));
	action->kind = kind;
	return action;
}

void
zkl_core_clear(ZklManager *m)
{
	m->nactions = 0;
	while (m->chunks != NULL && m->chunks->next != NULL)
	{
		ZklChunk   *next = m->chunks->next;

		zkl_core_release(m, m->chunks);
		m->chunks = next;
	}
	if (m->chunks != NULL)
		m->chunks->used = 0;
}

/* ---- operations under way ---- */

static void
grow_ops(ZklManager *m)
{
	uint32_t	more = m->nops * 2 + 64;
	ZklOp	   *grown = zkl_core_alloc(m, more * sizeof(ZklOp));
	uint32_t	i;

	memset(grown, 0, more * sizeof(ZklOp));
	if (m->ops != NULL)
	{
		memcpy(grown, m->ops, m->nops * sizeof(ZklOp));
		zkl_core_release(m, m->ops);
	}
	for (i = more; i-- > m->nops;)
	{
		grown[i].next_free = m->ops_free;
		m->ops_free = i;
	}
	m->ops = grown;
	m->nops = more;
}

ZklOp *
zkl_core_op(ZklManager *m, ZklOpKind kind, ZklLock *lock, ZklRequest *request)
{
	ZklOp	   *op;

	if (m->ops_free == ZKL_NO_OP)
		grow_ops(m);
	op = &m->ops[m->ops_free];
	m->ops_free = op->next_free;
	op->kind = kind;
	op->serial = (op->serial + 1) & 0x3fffff;
	op->lock = lock;
	op->request = request;
	op->submitted = request != NULL ? request->submitted : 0;
	op->order = ++m->order;
	op->sent_at = m->sent_at = m->now;
	op->bytes = 0;
	if (lock != NULL)
		zkl_lock_pin(lock);
	return op;
}

uint64_t
zkl_core_tag(const ZklManager *m, const ZklOp *op)
{
	return (uint64_t) op->serial << 32 | (uint64_t) (op - m->ops);
}

ZklAction *
zkl_core_send(ZklManager *m, ZklOp *op, ZklSendKind send, const char *path,
			  bool watch)
{
	ZklAction  *action = zkl_core_act(m, ZKL_ACTION_SEND);

	action->send = send;
	action->tag = zkl_core_tag(m, op);
	action->path = path;
	action->watch = watch;
	m->counters.operations++;
	return action;
}

static void
free_op(ZklManager *m, ZklOp *op)
{
	op->kind = ZKL_OP_FREE;
	op->next_free = m->ops_free;
	m->ops_free = (uint32_t) (op - m->ops);
}

bool
zkl_core_answered(ZklManager *m, uint64_t tag, ZklOp *op)
{
	uint32_t	i = (uint32_t) tag;

	if (i >= m->nops || m->ops[i].kind == ZKL_OP_FREE ||
		m->ops[i].serial != (uint32_t) (tag >> 32))
		return false;
	*op = m->ops[i];
	free_op(m, &m->ops[i]);
	m->read_bytes -= op->bytes;
	return true;
}

void
zkl_core_watch(ZklManager *m, ZklWatchState *watch, ZklWatchState state)
{
	if (*watch == ZKL_WATCH_ARMED)
		m->counters.watches--;
	if (state == ZKL_WATCH_ARMED)
		m->counters.watches++;
	*watch = state;
}

void
zkl_core_reconnect(ZklManager *m, int32_t rc)
{
	zkl_core_act(m, ZKL_ACTION_RECONNECT)->rc = rc;
	m->connection = ZKL_CONNECTION_DOWN;
}

void
zkl_core_forget_ops(ZklManager *m)
{
	uint32_t	i;

	for (i = 0; i < m->nops; i++)
	{
		ZklOp	   *op = &m->ops[i];
		ZklLock    *lock = op->lock;

		if (op->kind == ZKL_OP_FREE)
			continue;
		free_op(m, op);
		if (lock != NULL)
			zkl_lock_unpin(m, lock);
	}
	m->read_bytes = 0;
}

bool
zkl_core_is_stuck(const ZklManager *m)
{
	return !zkl_list_empty(&m->stuck_deletes) ||
		!zkl_list_empty(&m->stuck_locks) || m->sweep_refused;
}

void
zkl_core_retry_later(ZklManager *m)
{
	if (!zkl_core_is_stuck(m))
		m->stuck_until = m->now + ZKL_RETRY_DELAY;
}

/* ---- life ---- */

void
zkl_core_begin(ZklManager *m)
{
	m->ops_free = ZKL_NO_OP;
}

void
zkl_core_end(ZklManager *m)
{
	zkl_core_clear(m);
	if (m->chunks != NULL)
		zkl_core_release(m, m->chunks);
	if (m->actions != NULL)
		zkl_core_release(m, m->actions);
	if (m->ops != NULL)
		zkl_core_release(m, m->ops);
}
