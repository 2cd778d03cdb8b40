/*
 * node_write.h
 *	  The creates and deletes of our nodes.
 */
#ifndef ZKL_CORE_NODE_WRITE_H
#define ZKL_CORE_NODE_WRITE_H

#include "core/state.h"

/* What the delete of r's node, which was sent alone, is answered */
extern void zkl_node_write_deleted(ZklManager *m, ZklRequest *r, int32_t rc);

#endif							/* ZKL_CORE_NODE_WRITE_H */
