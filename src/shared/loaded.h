/*
 * loaded.h
 *	  Whether zklock can be used in this process at all.
 */
#ifndef ZKL_SHARED_LOADED_H
#define ZKL_SHARED_LOADED_H

#define ZKL_EXTENSION_NAME	"zklock"

/* An error 55000 with a hint unless zklock was preloaded */
extern void zkl_loaded_check(void);

/* The same, and an error 55000 too if this server runs no worker */
extern void zkl_loaded_check_worker(void);

/* The postmaster's, while it preloads: whether the worker is registered */
extern void zkl_loaded_set_worker(bool registered);

#endif							/* ZKL_SHARED_LOADED_H */
