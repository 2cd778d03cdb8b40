/*
 * dialect.h
 *	  Which dialect a lock has, by the beginning of its name.
 *
 * A list of dialects is text such as "/jobs=curator_mutex, /py=kazoo".  An
 * entry is for the lock of that name and for all below it; "/" is for all.
 * The longest that fits counts; where none fits it is curator_rw.
 */
#ifndef ZKL_ZNODE_DIALECT_H
#define ZKL_ZNODE_DIALECT_H

#include "znode/znode.h"

/* NULL if the list is good, else the broken rule as a full sentence. */
extern const char *zkl_dialect_check_list(const char *list);

/* The dialect of a lock, by a list that is good. */
extern ZklDialect zkl_dialect_find(const char *list, const char *name);

/* As it is written in a list; of one that a list can have. */
extern const char *zkl_dialect_name(ZklDialect dialect);

#endif							/* ZKL_ZNODE_DIALECT_H */
