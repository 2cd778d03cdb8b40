/*
 * script.h
 *	  The version of the extension's SQL script in this database, and whether the
 *	  library serves it.
 */
#ifndef ZKL_BACKEND_SCRIPT_H
#define ZKL_BACKEND_SCRIPT_H

#include "nodes/nodes.h"

typedef enum ZklScriptAge
{
	ZKL_SCRIPT_NONE,			/* the database has no extension */
	ZKL_SCRIPT_TOO_OLD,
	ZKL_SCRIPT_OLDER,			/* served */
	ZKL_SCRIPT_OWN,
	ZKL_SCRIPT_NEWER
} ZklScriptAge;

/* Its version (palloc'd; NULL if there is none), and what that means */
extern char *zkl_script_version(ZklScriptAge *age);

/* A NOTICE if the statement was DROP EXTENSION and sessions still hold locks */
extern void zkl_script_note_drop(Node *statement);

/* An error 55000 if the library does not serve the script */
extern void zkl_script_check(void);

#endif							/* ZKL_BACKEND_SCRIPT_H */
