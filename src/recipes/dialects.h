/*
 * dialects.h
 *	  Changing the dialects of the root, for all servers.
 */
#ifndef ZKL_RECIPES_DIALECTS_H
#define ZKL_RECIPES_DIALECTS_H

/*
 * Makes a good list, in UTF-8, the root's.  Error 55006 if a lock whose dialect
 * would change is held or awaited; others as ZooKeeper answers.  After an error
 * the root has its old list, or a warning says that it may be marked as changing.
 */
extern void zkl_dialects_change(const char *list);

#endif							/* ZKL_RECIPES_DIALECTS_H */
