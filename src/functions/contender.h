/*
 * contender.h
 *	  What the data of a znode in a queue tell of its session.
 */
#ifndef ZKL_FUNCTIONS_CONTENDER_H
#define ZKL_FUNCTIONS_CONTENDER_H

#include "functions/row.h"
#include "shared/listing.h"
#include "znode/znode.h"

/*
 * Reads the data of an entry, and adds the column with the name of the server: of
 * another client, a short text that it has written.
 */
extern void zkl_contender_add_server(ZklRow *row, const ZklListingEntry *entry,
									 ZklNodeData *data);

#endif							/* ZKL_FUNCTIONS_CONTENDER_H */
