/*
 * by_name.h
 *	  Which slot to look at for a lock, by its name and dialect: a hint.
 *
 * A session that has got a lock exclusively notes its slot.  Nothing clears a
 * note, and another lock may take its place.  So a reader believes the slot
 * only, under its mutex, and may find nothing although there is a slot.
 */
#ifndef ZKL_SHARED_BY_NAME_H
#define ZKL_SHARED_BY_NAME_H

#include "storage/shmem.h"
#include "znode/znode.h"

/* ---- postmaster; processes that attach ---- */

/* The bytes that the notes take; where they are; no notes. */
extern Size zkl_by_name_size(void);
extern void zkl_by_name_attach(void *memory);
extern void zkl_by_name_init(void);

/* ---- backends ---- */

extern void zkl_by_name_note(const char *path, ZklDialect dialect, int slotno);

/* -1: none is noted. */
extern int	zkl_by_name_find(const char *path, ZklDialect dialect);

#endif							/* ZKL_SHARED_BY_NAME_H */
