/*
 * hooks.c
 *	  What the core tells its wings, and asks them.
 *
 * Owns m->wings.  Runs in the worker (and in tests), takes no locks.  It must not
 * know what a wing is for.
 */
#include "core/hooks.h"
#include "core/memory.h"

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
