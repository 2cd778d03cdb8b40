/*
 * breaklog.c
 *	  What the server log tells of locks that are broken.
 *
 * Owns the words.  Runs in the worker only.  Takes a slot's mutex through slot.h.
 *
 * Must not know how a lock is broken.
 */
#include "postgres.h"

#include "shared/slot.h"
#include "worker/breaklog.h"

void
zkl_breaklog_marked(int slotno, const char *lock, const char *directory,
					const char *znode)
{
	ZklSlot		slot;

	zkl_slot_copy(slotno, &slot);
	ereport(LOG,
			(errmsg("znode \"%s/%s\" of distributed lock \"%s\" is marked to be broken by process %d (user \"%s\")",
					directory, znode, lock, slot.s_request.pid,
					slot.s_request.usename)));
}

void
zkl_breaklog_gone(int slotno, const char *lock, const char *directory,
				  const char *znode)
{
	ZklSlot		slot;

	zkl_slot_copy(slotno, &slot);
	ereport(LOG,
			(errmsg("znode \"%s/%s\" of distributed lock \"%s\" is gone, broken by process %d (user \"%s\")",
					directory, znode, lock, slot.s_request.pid,
					slot.s_request.usename)));
}

void
zkl_breaklog_left(const char *lock, const char *directory, const char *znode,
				  const char *head)
{
	ereport(LOG,
			(errmsg("znode \"%s/%s\" of distributed lock \"%s\" is deleted",
					directory, znode, lock),
			 errdetail("Its client created it beside znode \"%s\", which was broken.",
					   head)));
}
