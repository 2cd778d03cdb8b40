/*
 * subtransaction.c
 *	  A step whose errors its caller treats.
 *
 * Owns the subtransaction of the step.  Run by backends.  Takes no locks.
 *
 * Must not know what the step does.
 */
#include "postgres.h"

#include "access/xact.h"
#include "backend/subtransaction.h"
#include "utils/resowner.h"

ErrorData *
zkl_subtransaction_run(void (*step) (void *arg), void *arg)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		step(arg);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return error;
}
