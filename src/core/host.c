/*
 * host.c
 *	  What the core wants of its host, and what it tells its wings.
 *
 * Owns m->actions, ZklArena, m->operations and m->wings.  Must not know what an
 * operation is for, nor what its answer means, nor what a wing is for.  Runs in the
 * worker (and in tests), takes no locks.
 */
#include <string.h>

#include "core/host.h"

/* ---- arena: memory that is given back all at once ---- */

#define ZKL_CHUNK_SIZE	(64 * 1024)

struct ZklChunk
{
	ZklChunk   *next;
	size_t		used;
	size_t		size;
	char		bytes[];
};

void *
zkl_arena_alloc(ZklManager *m, ZklArena *arena, size_t size)
{
	ZklChunk   *chunk = arena->chunks;
	void	   *piece;

	size = (size + 15) & ~(size_t) 15;
	if (chunk == NULL || chunk->size - chunk->used < size)
	{
		size_t		room = size > ZKL_CHUNK_SIZE ? size : ZKL_CHUNK_SIZE;

		chunk = zkl_memory_alloc(m, sizeof(ZklChunk) + room);
		chunk->next = arena->chunks;
		chunk->used = 0;
		chunk->size = room;
		arena->chunks = chunk;
	}
	piece = chunk->bytes + chunk->used;
	chunk->used += size;
	ZKL_ASSERT(chunk->used <= chunk->size);
	return piece;
}

static void
arena_clear(ZklManager *m, ZklArena *arena)
{
	while (arena->chunks != NULL && arena->chunks->next != NULL)
	{
		ZklChunk   *next = arena->chunks->next;

		zkl_memory_release(m, arena->chunks);
		arena->chunks = next;
	}
	if (arena->chunks != NULL)
		arena->chunks->used = 0;
}

void
zkl_arena_free(ZklManager *m, ZklArena *arena)
{
	arena_clear(m, arena);
	if (arena->chunks != NULL)
		zkl_memory_release(m, arena->chunks);
	arena->chunks = NULL;
}

/* ---- actions: the actions for the host, and the memory for their strings ---- */

char *
zkl_actions_text(ZklManager *m, size_t size)
{
	return zkl_arena_alloc(m, &m->actions.text, size);
}

char *
zkl_actions_join(ZklManager *m, const char *a, const char *b, const char *c)
{
	size_t		na = strlen(a),
				nb = strlen(b),
				nc = strlen(c);
	char	   *text = zkl_actions_text(m, na + nb + nc + 1);

	memcpy(text, a, na);
	memcpy(text + na, b, nb);
	memcpy(text + na + nb, c, nc + 1);
	return text;
}

ZklAction *
zkl_actions_add(ZklManager *m, ZklActionKind kind)
{
	ZklAction  *action;

	if (m->actions.n == m->actions.allocated)
	{
		size_t		more = m->actions.allocated * 2 + 64;
		ZklAction  *grown = zkl_memory_alloc(m, more * sizeof(ZklAction));

		if (m->actions.all != NULL)
		{
			memcpy(grown, m->actions.all, m->actions.n * sizeof(ZklAction));
			zkl_memory_release(m, m->actions.all);
		}
		m->actions.all = grown;
		m->actions.allocated = more;
	}
	action = &m->actions.all[m->actions.n++];
	memset(action, 0, sizeof(*action));
	action->kind = kind;
	m->actions.nlosses += kind == ZKL_ACTION_LOSE;
	return action;
}

void
zkl_actions_clear(ZklManager *m)
{
	m->actions.n = m->actions.nlosses = 0;
	arena_clear(m, &m->actions.text);
}

void
zkl_actions_free(ZklManager *m)
{
	zkl_arena_free(m, &m->actions.text);
	if (m->actions.all != NULL)
		zkl_memory_release(m, m->actions.all);
}

/* ---- operations: the operations that are under way ---- */

/*
 * It must not know what an operation is for, nor what its answer means.
 */

#define ZKL_NO_OP		UINT32_MAX
#define READ_WINDOW		(512 * 1024)	/* bytes of paths read at a time */

void
zkl_operations_init(ZklManager *m)
{
	m->operations.free = ZKL_NO_OP;
}

static void
grow_table(ZklManager *m)
{
	uint32_t	more = m->operations.n * 2 + 64;
	ZklOp	   *grown = zkl_memory_alloc(m, more * sizeof(ZklOp));
	uint32_t	i;

	memset(grown, 0, more * sizeof(ZklOp));
	if (m->operations.all != NULL)
	{
		memcpy(grown, m->operations.all, m->operations.n * sizeof(ZklOp));
		zkl_memory_release(m, m->operations.all);
	}
	for (i = more; i-- > m->operations.n;)
	{
		grown[i].next_free = m->operations.free;
		m->operations.free = i;
	}
	m->operations.all = grown;
	m->operations.n = more;
}

static ZklOp *
begin_operation(ZklManager *m, ZklOpKind kind, ZklLock *lock,
				ZklRequest *request)
{
	ZklOp	   *op;

	ZKL_ASSERT(kind != ZKL_OP_FREE);
	ZKL_ASSERT(request == NULL || request->demand != ZKL_DEMAND_UNUSED);
	ZKL_ASSERT(request == NULL || lock == NULL || request->lock == lock);
	if (m->operations.free == ZKL_NO_OP)
		grow_table(m);
	op = &m->operations.all[m->operations.free];
	ZKL_ASSERT(op->kind == ZKL_OP_FREE);
	m->operations.free = op->next_free;
	op->kind = kind;
	op->serial = (op->serial + 1) & 0x3fffff;
	op->lock = lock;
	op->request = request;
	op->submitted = request != NULL ? request->submitted :
		m->requests.submitted;
	op->order = ++m->operations.order;
	op->sent_at = m->operations.sent_at = m->now;
	op->bytes = 0;
	if (lock != NULL)
		lock->pins++;
	return op;
}

static ZklAction *
send_operation(ZklManager *m, const ZklOp *op, ZklSendKind send,
			   const char *path)
{
	ZklAction  *action = zkl_actions_add(m, ZKL_ACTION_SEND);

	action->send = send;
	action->tag = (uint64_t) op->serial << 32 |
		(uint64_t) (op - m->operations.all);
	action->path = path;
	m->operations.sent++;
	return action;
}

ZklAction *
zkl_operations_send(ZklManager *m, ZklOpKind kind, ZklLock *lock,
					ZklRequest *request, ZklSendKind send, const char *path)
{
	return send_operation(m, begin_operation(m, kind, lock, request), send,
						  path);
}

void
zkl_operations_read(ZklManager *m, ZklOpKind kind, ZklLock *lock,
					ZklRequest *request, ZklSendKind send, const char *path,
					bool watch)
{
	ZklOp	   *op = begin_operation(m, kind, lock, request);

	op->bytes = strlen(path);
	m->operations.read_bytes += op->bytes;
	send_operation(m, op, send, path)->watch = watch;
}

bool
zkl_operations_may_read(const ZklManager *m)
{
	return m->operations.read_bytes < READ_WINDOW;
}

static void
end_operation(ZklManager *m, ZklOp *op)
{
	ZKL_ASSERT(op->kind != ZKL_OP_FREE);
	ZKL_ASSERT(m->operations.read_bytes >= op->bytes);
	m->operations.read_bytes -= op->bytes;
	op->kind = ZKL_OP_FREE;
	op->next_free = m->operations.free;
	m->operations.free = (uint32_t) (op - m->operations.all);
}

ZklOp *
zkl_operations_find(const ZklManager *m, uint64_t tag)
{
	ZklOp	   *op = &m->operations.all[(uint32_t) tag];

	return (uint32_t) tag < m->operations.n && op->kind != ZKL_OP_FREE &&
		op->serial == (uint32_t) (tag >> 32) ? op : NULL;
}

bool
zkl_operations_end(ZklManager *m, uint64_t tag, ZklOp *op)
{
	ZklOp	   *under_way = zkl_operations_find(m, tag);

	if (under_way == NULL)
		return false;
	*op = *under_way;
	end_operation(m, under_way);
	return true;
}

bool
zkl_operations_abandon(ZklManager *m, uint32_t *next, ZklOp *op)
{
	for (; *next < m->operations.n; (*next)++)
	{
		if (m->operations.all[*next].kind == ZKL_OP_FREE)
			continue;
		*op = m->operations.all[*next];
		end_operation(m, &m->operations.all[*next]);
		return true;
	}
	return false;
}

void
zkl_operations_unpin(ZklLock *lock)
{
	ZKL_ASSERT(lock->pins > 0);
	lock->pins--;
}

uint64_t
zkl_operations_next_order(ZklManager *m)
{
	return ++m->operations.order;
}

void
zkl_operations_free(ZklManager *m)
{
	if (m->operations.all != NULL)
		zkl_memory_release(m, m->operations.all);
}

/* ---- hooks: what the core tells its wings, and asks them ---- */

/*
 * It must not know what a wing is for.
 */

void
zkl_hooks_begin(ZklManager *m)
{
	const ZklWing *const *given = m->config.wings;
	size_t		n = 0,
				i;

	while (given != NULL && given[n] != NULL)
		n++;
	m->wings = zkl_memory_alloc(m, (n + 1) * sizeof(ZklWingState));
	m->wings[n].wing = NULL;
	for (i = 0; i < n; i++)
	{
		m->wings[i].wing = given[i];
		m->wings[i].state = given[i]->begin(m);
	}
}

void
zkl_hooks_end(ZklManager *m)
{
	ZKL_HOOKS(m, end);
	zkl_memory_release(m, m->wings);
}

int64_t
zkl_hooks_timer(const ZklManager *m)
{
	const ZklWingState *w;
	int64_t		due = -1;

	for (w = m->wings; w->wing != NULL; w++)
	{
		int64_t		next = w->wing->timer != NULL ? w->wing->timer(w->state) : -1;

		if (next >= 0 && (due < 0 || next < due))
			due = next;
	}
	return due;
}

bool
zkl_hooks_disown(const ZklManager *m, const char *name)
{
	const ZklWingState *w;

	for (w = m->wings; w->wing != NULL; w++)
	{
		if (w->wing->disowns != NULL && w->wing->disowns(w->state, name))
			return true;
	}
	return false;
}

bool
zkl_hooks_may_tell(const ZklManager *m, const ZklUuid *uuid)
{
	const ZklWingState *w;

	for (w = m->wings; w->wing != NULL; w++)
	{
		if (w->wing->may_tell != NULL && w->wing->may_tell(w->state, uuid))
			return true;
	}
	return false;
}

void *
zkl_hooks_find(const ZklManager *m, const ZklWing *wing)
{
	const ZklWingState *w;

	for (w = m->wings; w->wing != NULL; w++)
	{
		if (w->wing == wing)
			return w->state;
	}
	return NULL;
}
