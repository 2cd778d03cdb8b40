/*
 * cgroup.h
 *	  A cgroup of the program's own, where the system lets zklock-run make one.
 */
#ifndef ZKL_RUN_CGROUP_H
#define ZKL_RUN_CGROUP_H

#include <stdbool.h>

/* Makes it, if that is possible; else the other functions do nothing. */
extern void zkl_cgroup_make(void);

/* In a child that becomes the program */
extern void zkl_cgroup_enter(void);

/* Ends all processes in it at once, whoever they belong to. */
extern void zkl_cgroup_kill(void);

extern bool zkl_cgroup_is_empty(void);

extern void zkl_cgroup_remove(void);

#endif							/* ZKL_RUN_CGROUP_H */
