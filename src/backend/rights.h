/*
 * rights.h
 *	  Rights by prefix: what a role may do with the locks of some names.
 */
#ifndef ZKL_BACKEND_RIGHTS_H
#define ZKL_BACKEND_RIGHTS_H

#include "nodes/pg_list.h"

/* A set of privileges */
typedef uint32 ZklPrivileges;

#define ZKL_MAY_LOCK		0x0001
#define ZKL_MAY_SHARE		0x0002
#define ZKL_MAY_ONCE		0x0004
#define ZKL_MAY_LEAD		0x0008
#define ZKL_MAY_SEMAPHORE	0x0010
#define ZKL_MAY_BARRIER		0x0020
#define ZKL_MAY_KEEP		0x0040
#define ZKL_MAY_REQUEST_RELEASE		0x0080
#define ZKL_MAY_LOOK		0x0100
#define ZKL_MAY_FENCE		0x0200
#define ZKL_MAY_ALL			0x03FF

/* For calls that everybody may make: those that release, extend or leave */
#define ZKL_NEEDS_NOTHING	0

/*
 * Error 42501 if the current role lacks one of these privileges for a name, which
 * is given in UTF-8, and for messages in the database's encoding.
 */
extern void zkl_rights_check(const char *path, const char *name,
							 ZklPrivileges needed);

/* Error 42501 with this message unless the current role is a superuser's */
extern void zkl_rights_check_superuser(const char *message);

/* Whether the current role may see what is told of a name */
extern bool zkl_rights_may_look(const char *path);

/* Whether it may call zk_queue() for a name */
extern bool zkl_rights_may_call_queue(const char *path);

/* The names in grants that are no roles, each once */
extern List *zkl_rights_missing_roles(void);

/* ---- for those that write grants ---- */

/* How zk_grant() calls the role that everybody is a member of */
#define ZKL_RIGHTS_PUBLIC	"public"

/* The tables of the extension: that of grants, and that of fences */
#define ZKL_RIGHTS_TABLE	"zk_rights"
#define ZKL_FENCES_TABLE	"zk_fences"

/*
 * The name of such a table as SQL writes it, with its schema, and its owner.  Error 55000
 * if it is not in this database.
 */
extern char *zkl_rights_qualified_table(const char *name, Oid *owner);

/* The privilege of a name, or ZKL_NEEDS_NOTHING; and all their names */
extern ZklPrivileges zkl_rights_privilege(const char *name);
extern const char *zkl_rights_privilege_names(void);

/* The first privilege of a set by name; the set loses it.  NULL: it is empty. */
extern const char *zkl_rights_next_name(ZklPrivileges *privileges);

#endif							/* ZKL_BACKEND_RIGHTS_H */
