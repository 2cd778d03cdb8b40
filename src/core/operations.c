/*
 * operations.c
 *	  The operations that are under way.
 *
 * Owns m->operations.  Runs in the worker (and in tests), takes no locks.  It
 * must not know what an operation is for, nor what its answer means.
 */
#include <string.h>

#include "core/actions.h"
#include "core/memory.h"
#include "core/operations.h"

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
