/*
 * contender.h
 *	  What the data of a znode in a queue tells of the client that made it.
 */
#ifndef ZKL_FUNCTIONS_CONTENDER_H
#define ZKL_FUNCTIONS_CONTENDER_H

#include "functions/row.h"
#include "znode/znode.h"

/*
 * Reads the data of a znode, and adds the column with the name of the server: of
 * another client, if the role may see whose the znode is, a short text that it has
 * written.  *data tells of no session if that may be another one by now.
 */
extern void zkl_contender_add_server(ZklRow *row, const char *text,
									 uint32 length, ZklNodeData *data,
									 bool visible);

#endif							/* ZKL_FUNCTIONS_CONTENDER_H */
