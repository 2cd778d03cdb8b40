/*
 * epilogue.h
 *	  A write that belongs to the end of a hold.
 *
 * A backend prepares it in a DSM segment, pins that, and names it in the slot
 * of its hold (s_dsm); s_epilogue says whether it is wanted, and may change
 * until the slot is RELEASED.  The worker carries it out then, however often it
 * or the connection breaks, and only after that gives the lock up.  It unpins
 * the segment in any case.
 *
 * The data of the znode is made "to" if it is "from", and left alone if it is
 * something else; if it is "to" already it is written once more, so that a
 * write on its way to it, which expects a version, comes too late.
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
