/*
 * operations.c
 *	  The operations that are under way.
 *
 * Owns the table of them.  Runs in the worker (and in tests), takes no locks.
 * It must not know what an operation is for, nor what its answer means.
 */
#include <string.h>

#include "core/actions.h"
#include "core/lock.h"
#include "core/memory.h"
#include "core/operations.h"

#define ZKL_NO_OP		UINT32_MAX

void
zkl_operations_init(ZklManager *m)
{
	m->ops_free = ZKL_NO_OP;
}

static void
grow_ops(ZklManager *m)
{
	uint32_t	more = m->nops * 2 + 64;
	ZklOp	   *grown = zkl_memory_alloc(m, more * sizeof(ZklOp));
	uint32_t	i;

	memset(grown, 0, more * sizeof(ZklOp));
	if (m->ops != NULL)
	{
		memcpy(grown, m->ops, m->nops * sizeof(ZklOp));
		zkl_memory_release(m, m->ops);
	}
	for (i = more; i-- > m->nops;)
	{
		grown[i].next_free = m->ops_free;
		m->ops_free = i;
	}
	m->ops = grown;
	m->nops = more;
}

static ZklOp *
begin_operation(ZklManager *m, ZklOpKind kind, ZklLock *lock,
				ZklRequest *request)
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
	op->submitted = request != NULL ? request->submitted : m->submissions;
	op->order = ++m->order;
	op->sent_at = m->sent_at = m->now;
	op->bytes = 0;
	if (lock != NULL)
		zkl_lock_pin(lock);
	return op;
}

static ZklAction *
send_operation(ZklManager *m, const ZklOp *op, ZklSendKind send,
			   const char *path)
{
	ZklAction  *action = zkl_actions_add(m, ZKL_ACTION_SEND);

	action->send = send;
	action->tag = (uint64_t) op->serial << 32 | (uint64_t) (op - m->ops);
	action->path = path;
	m->counters.operations++;
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
	m->read_bytes += op->bytes;
	send_operation(m, op, send, path)->watch = watch;
}

static void
free_op(ZklManager *m, ZklOp *op)
{
	op->kind = ZKL_OP_FREE;
	op->next_free = m->ops_free;
	m->ops_free = (uint32_t) (op - m->ops);
}

ZklOp *
zkl_operations_find(const ZklManager *m, uint64_t tag)
{
	uint32_t	i = (uint32_t) tag;

	return i < m->nops && m->ops[i].kind != ZKL_OP_FREE &&
		m->ops[i].serial == (uint32_t) (tag >> 32) ? &m->ops[i] : NULL;
}

bool
zkl_operations_end(ZklManager *m, uint64_t tag, ZklOp *op)
{
	ZklOp	   *under_way = zkl_operations_find(m, tag);

	if (under_way == NULL)
		return false;
	*op = *under_way;
	free_op(m, under_way);
	m->read_bytes -= op->bytes;
	return true;
}

void
zkl_operations_forget(ZklManager *m)
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

void
zkl_operations_free(ZklManager *m)
{
	if (m->ops != NULL)
		zkl_memory_release(m, m->ops);
}
