/*
 * census.h
 *	  Finds all contenders for locks of certain names, on any server or client.
 */
#ifndef ZKL_RECIPES_CENSUS_H
#define ZKL_RECIPES_CENSUS_H

#include "lib/stringinfo.h"

/*
 * Looks for contenders, of any dialect, for the locks that have another dialect
 * in list b than in list a.  It sees everything that was there when it was called.
 * Returns how many it found, and adds a line about each one to "who"; it stops
 * after a few.  Errors as ZooKeeper answers.
 */
extern int	zkl_census_take(const char *a, const char *b, StringInfo who);

#endif							/* ZKL_RECIPES_CENSUS_H */
