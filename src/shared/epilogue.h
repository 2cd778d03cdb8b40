/*
 * epilogue.h
 *	  A write that belongs to the end of a hold.
 *
 * A backend prepares it in a DSM segment, pins that, and names it in the slot
 * of its hold (s_dsm); s_epilogue says whether it is wanted, and may change
 * until the slot is RELEASED.  Then the worker carries it out, however often the
 * worker or the connection breaks, and gives the lock up only after that.  It
 * unpins the segment in any case.
 *
 * If the data of the znode is "from", the worker changes it to "to".  If it is
 * "to" already, the worker writes it once more: if the backend's own write is
 * still on its way, it expects an older version, and comes too late.  If it is
 * anything else, the worker leaves it alone.
 */
#ifndef ZKL_SHARED_EPILOGUE_H
#define ZKL_SHARED_EPILOGUE_H

#include "znode/znode.h"

typedef struct ZklEpilogue
{
	char		path[ZKL_MAX_PATH + 1]; /* of the znode, with the root */
	uint32		from_length;
	uint32		to_length;
	char		from[ZKL_MAX_NODE_DATA];
	char		to[ZKL_MAX_NODE_DATA];
} ZklEpilogue;

#endif							/* ZKL_SHARED_EPILOGUE_H */
