/*
 * parents.c
 *	  Directories that are missing, and are made ahead of a create.
 *
 * Owns ZklParents, and how often a request was refused for want of a directory.
 * Runs in the worker (and in tests), takes no locks.
 */
#include <string.h>

#include "core/actions.h"
#include "core/operations.h"
#include "core/parents.h"

void
zkl_parents_make(ZklManager *m, ZklLock *lock, const char *path,
				 const char *skip)
{
	size_t		length = strlen(path),
				shared = 0,
				i;

	if (lock != NULL)
		lock->parents = (ZklParents)
	{
		0
	};
	for (i = 0; path[i] != '\0' && path[i] == skip[i]; i++)
	{
		if (path[i] == '/')
			shared = i;
	}
	if ((path[i] == '\0' || path[i] == '/') &&
		(skip[i] == '\0' || skip[i] == '/'))
		shared = i;
	for (i = shared + 1; i <= length; i++)
	{
		char	   *parent;

		if (path[i] != '/' && path[i] != '\0')
			continue;
		parent = zkl_actions_join(m, path, "", "");
		parent[i] = '\0';
		zkl_operations_send(m, ZKL_OP_PARENT, lock, NULL,
							ZKL_SEND_CREATE_CONTAINER, parent);
	}
}

void
zkl_parents_missing(ZklLock *lock)
{
	lock->parents.missing = true;
}

bool
zkl_parents_try_again(ZklRequest *r)
{
	return r->lock->parents.rc == 0 && ++r->attempts < ZKL_MAX_ATTEMPTS;
}

void
zkl_parents_found(ZklRequest *r)
{
	r->attempts = 0;
	r->lock->parents.rc = 0;
}

void
zkl_parents_refused(ZklLock *lock, int32_t rc)
{
	lock->parents.rc = rc;
}
