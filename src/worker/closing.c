/*
 * closing.c
 *	  Closing a ZooKeeper session properly.
 *
 * Owns the state of a session that is being closed.  Runs in the worker only;
 * takes no locks but through identity.c.  It must not know how the next session
 * begins.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/status.h"
#include "storage/latch.h"

#include "worker/closing.h"
#include "worker/identity.h"
#include "worker/link.h"
#include "worker/worker.h"

#define SHUTDOWN_MS		3000

static int64 closing_until = 0; /* 0: no session is being closed */
static bool replacing = false;	/* it could be used: no pause behind it */
static int64 not_before = 0;	/* the next session */

/*
 * ZooKeeper may carry out the close late: after the worker that sent it has
 * ended.  So the session is forgotten first, or the next worker would attach it
 * and rely on a lease that the close cuts short.
 */
static void
begin_closing(uint32 connection, int64 now)
{
	zkl_worker_tell(ZKL_EVENT(SESSION_LOST));
	zkl_link_say(ZKL_WIRE_CLOSE, connection);
	closing_until = now + ZKL_CLOSING_TIME;
}

void
zkl_closing_give_up(uint32 connection, int64 now)
{
	zkl_identity_lose();
	begin_closing(connection, now);
}

/*
 * The server is idle.  New requests wait for the next session, which begins once
 * the present one has surely ended.
 */
void
zkl_closing_replace(uint32 connection, int64 now)
{
	replacing = true;
	not_before = now + (int64) zkl_status_timeout_ms() * 1000;
	zkl_identity_leave();
	begin_closing(connection, now);
}

int64
zkl_closing_until(void)
{
	return closing_until;
}

bool
zkl_closing_end(bool acknowledged)
{
	bool		replaced = replacing;

	if (replaced && acknowledged)
		not_before = 0;
	else if (replaced)
		ereport(LOG,
				(errmsg("ZooKeeper did not acknowledge that the session is closed"),
				 errdetail("The next session begins when the old one has expired.")));
	closing_until = 0;
	replacing = false;
	return replaced;
}

int64
zkl_closing_not_before(void)
{
	return not_before;
}

void
zkl_closing_wait(uint32 connection)
{
	ZklWireHeader header;
	ZklWireReader body;
	int64		until = zkl_boottime_ms() + SHUTDOWN_MS;
	bool		up = true;

	zkl_link_say(ZKL_WIRE_CLOSE, connection);
	while (up && zkl_boottime_ms() < until)
	{
		if (!zkl_link_flush() || !zkl_link_read())
			break;
		while (zkl_link_next(&header, &body) > 0)
		{
			if (header.type == ZKL_WIRE_GONE)
				up = false;
		}
		if (up)
		{
			zkl_link_wait(Max(until - zkl_boottime_ms(), 0));
			ResetLatch(MyLatch);
		}
	}
}
