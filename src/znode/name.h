/*
 * name.h
 *	  The rules for names of locks, and for the root.
 */
#ifndef ZKL_ZNODE_NAME_H
#define ZKL_ZNODE_NAME_H

#include <stddef.h>

/*
 * Checks a lock's name against all rules.  Returns NULL if it is good, else
 * the broken rule as a full sentence for errdetail, such as "A lock name must
 * start with \"/\".".
 */
extern const char *zkl_name_check(const char *name, size_t length);

/* The same for a root: at most ZKL_MAX_ROOT bytes, no "." segments */
extern const char *zkl_name_check_root(const char *root, size_t length);

#endif							/* ZKL_ZNODE_NAME_H */
