/*
 * target.h
 *	  From SQL arguments to the locks that they mean: names, times and text, and
 *	  the rights of the role.
 */
#ifndef ZKL_BACKEND_TARGET_H
#define ZKL_BACKEND_TARGET_H

#include "fmgr.h"
#include "nodes/pg_list.h"
#include "utils/timestamp.h"
#include "znode/znode.h"

/* ---- text ---- */

/* Text between the database's encoding and the UTF-8 of names and znodes. */

/*
 * Converts a lock's name of "length" bytes to UTF-8 and checks it: error 22023
 * that says which rule it breaks.  Returns a palloc'd string.
 */
extern char *zkl_text_name_to_utf8(const char *name, int length);

/*
 * Copies a string into "size" bytes of UTF-8, cut at a character; what cannot
 * be converted becomes "?".  Never an error.
 */
extern void zkl_text_copy_to_utf8(char *to, size_t size, const char *from);

/*
 * The palloc'd form to show of "length" bytes that should be UTF-8: control
 * characters, broken ones and such as the database's encoding lacks are shown
 * as \xNN.  Never an error.
 */
extern char *zkl_text_to_display(const char *text, int length);

/*
 * A name of "length" bytes of UTF-8, with each byte of what is not ASCII as
 * \xNN, cut to fit.  Allocates nothing and cannot fail.
 */
extern void zkl_text_to_ascii(const char *name, size_t length, char *buf,
							  size_t size);

/*
 * What a message to the client may repeat of a text in the database's encoding:
 * the text itself if the client's encoding has all of its characters, else its
 * UTF-8 as zkl_text_to_ascii writes it, palloc'd.  So the message cannot fail,
 * and with it what it is about.  Never an error.  Also in an aborted
 * transaction, where no conversion is looked up, and a text that needs one has
 * its own bytes as \xNN.
 */
extern const char *zkl_text_for_client(const char *text);

/* ---- rights: rights by prefix: what a role may do with the locks of some names ---- */

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

/* ---- target ---- */

/*
 * What an SQL function is called with: which lock is meant, a name and the dialect
 * of its queue; and times.
 */

/* The same name is another lock in another dialect. */
typedef struct ZklTarget
{
	const char *path;			/* its name in UTF-8, checked */
	const char *name;			/* the same as the database writes it */
	ZklDialect	dialect;
} ZklTarget;

/*
 * The first argument of an SQL function that takes, asserts or releases what it
 * names: error 22004 if it is NULL, so that nobody takes the result for that of a
 * lock.
 */
extern text * zkl_target_name(FunctionCallInfo fcinfo);

/* The same for other arguments that must be there; "what" is for the message. */
extern void zkl_target_need(FunctionCallInfo fcinfo, int arg, const char *what);

/*
 * The lock that an SQL function is called with, in the dialect that
 * "zklock.dialects" gives it; its strings are palloc'd.  Error 22023 if the
 * name breaks a rule; 42501 if the current role lacks one of the privileges that
 * the call needs for that name, as in all functions here.
 */
extern ZklTarget zkl_target_lock(const text *name, ZklPrivileges needed);

/*
 * What belongs to a recipe of its own dialect: the name with a suffix (empty,
 * or "/" and a segment).  Error 22023 also if both together are too long.
 */
extern ZklTarget zkl_target_recipe(const text *name, const char *suffix,
								   ZklDialect dialect, ZklPrivileges needed);

/*
 * A lock of our own that belongs to a name, in a place where users cannot have
 * one: the name below a reserved directory, such as "/.once".  Error 22023 also
 * if both together are too long.  The name itself is what privileges are for.
 */
extern ZklTarget zkl_target_reserved(const text *name, const char *directory,
									 ZklPrivileges needed);

/*
 * The same as zkl_target_lock, for callers that look at locks or break them: also
 * the name of a lock below ZKL_ONCE_DIRECTORY.
 */
extern ZklTarget zkl_target_any(const text *name, ZklPrivileges needed);

/*
 * In ms, rounded up, a month being 30 days; ZKL_FOREVER if infinite, -1 if
 * it is negative.
 */
extern int64 zkl_target_interval_ms(const Interval *interval);

/*
 * The timeout that is argument number "arg" of an SQL function, likewise;
 * ZKL_FOREVER if it is NULL.  Error 22023 if it is negative.
 */
extern int64 zkl_target_timeout_ms(FunctionCallInfo fcinfo, int arg);

#endif							/* ZKL_BACKEND_TARGET_H */
