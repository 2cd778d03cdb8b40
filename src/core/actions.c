/*
 * actions.c
 *	  The actions for the host, and the memory for their strings.
 *
 * Owns m->actions.  Runs in the worker (and in tests), takes no locks.
 */
#include <string.h>

#include "core/actions.h"
#include "core/arena.h"
#include "core/memory.h"

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
	zkl_arena_clear(m, &m->actions.text);
}

void
zkl_actions_free(ZklManager *m)
{
	zkl_arena_free(m, &m->actions.text);
	if (m->actions.all != NULL)
		zkl_memory_release(m, m->actions.all);
}
