/*
 * rights.c
 *	  Rights by prefix: what a role may do with the locks of some names.
 *
 * Owns this backend's copy of the grants.  Run by backends, inside a transaction.
 * Takes no locks but, while it reads the table of grants, that table's.
 *
 * Must not know how grants are written, nor what is done with a lock.
 *
 * The copy is good until the table's relation cache entry is invalidated: the
 * triggers of the table do that, whatever changes it.  PostgreSQL brings
 * invalidations to all backends when a transaction commits, also on standbys.
 *
 * Roles are stored by name, as in pg_hba.conf, and looked up at each check.  So a
 * dump can be restored before its roles exist.  As long as a name is no role, its
 * grants allow nothing, but their prefixes decide.
 *
 * The table is looked up through the extension that it belongs to: a user can make
 * another one of that name, but not a member of the extension.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "backend/rights.h"
#include "backend/text.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/value.h"
#include "shared/gate.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "znode/znode.h"

/* The columns of the table */
#define COLUMN_PREFIX		1
#define COLUMN_ROLE			2
#define COLUMN_PRIVILEGE	3

/* One row of the table */
typedef struct Right
{
	NameData	role;
	ZklPrivileges privilege;
	char		prefix[FLEXIBLE_ARRAY_MEMBER];	/* in UTF-8; "" covers all
												 * names */
} Right;

/* This backend's copy: a list of Right, and the memory that has it */
static List *rights = NIL;
static MemoryContext rights_memory = NULL;

/*
 * It is good as long as these are equal: the number of invalidations so far, and
 * that number when the copy was made.
 */
static uint64 changes = 1;
static uint64 copied_at = 0;
static Oid	rights_table = InvalidOid;

/* ---- privileges ---- */

/* In the order of their bits */
static const char *const privilege_names[] = {
	"lock", "shared", "once", "lead", "semaphore", "barrier", "keep", "request_release",
	"look", "fence"
};

ZklPrivileges
zkl_rights_privilege(const char *name)
{
	int			i;

	for (i = 0; i < lengthof(privilege_names); i++)
	{
		if (strcmp(privilege_names[i], name) == 0)
			return (ZklPrivileges) 1 << i;
	}
	return ZKL_NEEDS_NOTHING;
}

const char *
zkl_rights_privilege_names(void)
{
	StringInfoData buf;
	int			i;

	initStringInfo(&buf);
	for (i = 0; i < lengthof(privilege_names); i++)
		appendStringInfo(&buf, "%s\"%s\"", i > 0 ? ", " : "", privilege_names[i]);
	return buf.data;
}

const char *
zkl_rights_next_name(ZklPrivileges *privileges)
{
	int			i;

	for (i = 0; i < lengthof(privilege_names); i++)
	{
		ZklPrivileges privilege = (ZklPrivileges) 1 << i;

		if ((*privileges & privilege) == 0)
			continue;
		*privileges &= ~privilege;
		return privilege_names[i];
	}
	return NULL;
}

/* ---- the table ---- */

static bool
is_table_of_name(const FormData_pg_depend * member, const char *wanted)
{
	char	   *name;

	if (member->deptype != DEPENDENCY_EXTENSION ||
		member->classid != RelationRelationId ||
		get_rel_relkind(member->objid) != RELKIND_RELATION)
		return false;
	name = get_rel_name(member->objid);
	return name != NULL && strcmp(name, wanted) == 0;
}

static Oid
find_member_table(Oid extension, const char *name)
{
	Relation	catalog = table_open(DependRelationId, AccessShareLock);
	Oid			table = InvalidOid;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(ExtensionRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(extension));
	scan = systable_beginscan(catalog, DependReferenceIndexId, true, NULL, 2,
							  keys);
	while (!OidIsValid(table) &&
		   HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend member = (Form_pg_depend) GETSTRUCT(tuple);

		if (is_table_of_name(member, name))
			table = member->objid;
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return table;
}

static Oid
member_table(const char *name)
{
	Oid			extension = get_extension_oid(ZKL_EXTENSION_NAME, true);
	Oid			table;

	if (!OidIsValid(extension))
		return InvalidOid;
	table = find_member_table(extension, name);
	if (!OidIsValid(table))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("extension \"%s\" has no table \"%s\"",
						ZKL_EXTENSION_NAME, name),
				 errdetail("Without it, it is not known which role may take which lock, or which token has passed."),
				 errhint("Drop the extension and create it again.")));
	return table;
}

char *
zkl_rights_qualified_table(const char *name, Oid *owner)
{
	Oid			oid = member_table(name);
	Relation	table;
	char	   *qualified;

	if (!OidIsValid(oid))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("extension \"%s\" does not exist in this database",
						ZKL_EXTENSION_NAME),
				 errhint("Use CREATE EXTENSION.")));
	table = table_open(oid, AccessShareLock);
	qualified = quote_qualified_identifier(get_namespace_name(RelationGetNamespace(table)),
										   RelationGetRelationName(table));
	*owner = table->rd_rel->relowner;
	table_close(table, NoLock);
	return qualified;
}

/* ---- the copy ---- */

static void
note_change(Datum arg, Oid relid)
{
	if (relid == rights_table || !OidIsValid(relid) || !OidIsValid(rights_table))
		changes++;
}

static Right *
make_right(HeapTuple tuple, TupleDesc columns)
{
	char		utf8[ZKL_MAX_NAME + 1];
	Right	   *right;
	bool		isnull;
	Datum		prefix = heap_getattr(tuple, COLUMN_PREFIX, columns, &isnull);
	Datum		role = heap_getattr(tuple, COLUMN_ROLE, columns, &isnull);
	Datum		privilege = heap_getattr(tuple, COLUMN_PRIVILEGE, columns, &isnull);

	zkl_text_copy_to_utf8(utf8, sizeof(utf8), TextDatumGetCString(prefix));
	if (strcmp(utf8, "/") == 0)
		utf8[0] = '\0';
	right = palloc(offsetof(Right, prefix) + strlen(utf8) + 1);
	strcpy(right->prefix, utf8);
	right->role = *DatumGetName(role);
	right->privilege = zkl_rights_privilege(TextDatumGetCString(privilege));
	return right;
}

/* As the catalogs are read: what is committed now counts. */
static List *
read_rights(Relation relation)
{
	List	   *list = NIL;
	SysScanDesc scan = systable_beginscan(relation, InvalidOid, false, NULL, 0,
										  NULL);
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		list = lappend(list, make_right(tuple, RelationGetDescr(relation)));
	systable_endscan(scan);
	return list;
}

/*
 * What changes while the table is read invalidates the copy at once: so the
 * number of changes is that of before.
 */
static void
copy_rights(void)
{
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext,
												 "zklock rights",
												 ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(memory);
	List	   *list = NIL;
	uint64		before;

	rights_table = member_table(ZKL_RIGHTS_TABLE);
	before = changes;
	if (OidIsValid(rights_table))
	{
		Relation	relation = table_open(rights_table, AccessShareLock);

		before = changes;
		list = read_rights(relation);
		table_close(relation, AccessShareLock);
	}
	MemoryContextSwitchTo(old);
	MemoryContextSetParent(memory, TopMemoryContext);
	if (rights_memory != NULL)
		MemoryContextDelete(rights_memory);
	rights_memory = memory;
	rights = list;
	copied_at = before;
}

/* Without grants, all that a check costs is this. */
static bool
there_are_rights(void)
{
	static bool listens = false;

	if (!listens)
		CacheRegisterRelcacheCallback(note_change, (Datum) 0);
	listens = true;
	AcceptInvalidationMessages();
	if (copied_at != changes)
		copy_rights();
	return rights != NIL;
}

/* ---- decisions ---- */

/* Whether a prefix is the first parts of a name, or all of them */
static bool
covers(const char *prefix, const char *path)
{
	Size		length = strlen(prefix);

	return strncmp(prefix, path, length) == 0 &&
		(path[length] == '/' || path[length] == '\0');
}

/* The longest prefix that covers a name; NULL: none does */
static const char *
find_prefix(const char *path)
{
	const char *longest = NULL;
	ListCell   *cell;

	foreach(cell, rights)
	{
		const Right *right = lfirst(cell);

		if (covers(right->prefix, path) &&
			(longest == NULL || strlen(right->prefix) > strlen(longest)))
			longest = right->prefix;
	}
	return longest;
}

static bool
is_public(const char *role)
{
	return strcmp(role, ZKL_RIGHTS_PUBLIC) == 0;
}

static bool
has_role(const char *role)
{
	Oid			oid;

	if (is_public(role))
		return true;
	oid = get_role_oid(role, true);
	return OidIsValid(oid) && has_privs_of_role(GetUserId(), oid);
}

/*
 * What of "needed" the current role lacks for a name, and which prefix decides
 * that
 */
static ZklPrivileges
find_missing(const char *path, ZklPrivileges needed, const char **prefix)
{
	ListCell   *cell;

	*prefix = find_prefix(path);
	if (*prefix == NULL)
		return 0;
	foreach(cell, rights)
	{
		const Right *right = lfirst(cell);

		if ((needed & right->privilege) != 0 &&
			strcmp(right->prefix, *prefix) == 0 &&
			has_role(NameStr(right->role)))
			needed &= ~right->privilege;
	}
	return needed;
}

/* What of "needed" the current role has to be granted */
static ZklPrivileges
find_asked(ZklPrivileges needed)
{
	if (needed == ZKL_NEEDS_NOTHING || superuser() || !there_are_rights())
		return ZKL_NEEDS_NOTHING;
	if ((needed & ZKL_MAY_LOOK) != 0 &&
		has_privs_of_role(GetUserId(), ROLE_PG_MONITOR))
		needed &= ~(ZklPrivileges) ZKL_MAY_LOOK;
	return needed;
}

static void
check_name(const char *path, const char *name, ZklPrivileges needed)
{
	const char *prefix;
	ZklPrivileges missing = find_missing(path, needed, &prefix);
	const char *privilege = zkl_rights_next_name(&missing);
	const char *role;

	if (privilege == NULL)
		return;
	role = GetUserNameFromId(GetUserId(), false);
	prefix = prefix[0] == '\0' ? "/" :
		zkl_text_to_display(prefix, (int) strlen(prefix));
	path = zkl_text_to_display(path, (int) strlen(path));
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied for distributed lock \"%s\"",
					zkl_text_for_client(name)),
			 errdetail("Role \"%s\" needs the privilege \"%s\" for \"%s\", where the grants for prefix \"%s\" decide.",
					   zkl_text_for_client(role), privilege,
					   zkl_text_for_client(path), zkl_text_for_client(prefix)),
			 errhint("A superuser can grant it: zk_grant(%s, %s, '%s').",
					 zkl_text_for_client(quote_literal_cstr(prefix)),
					 zkl_text_for_client(quote_literal_cstr(role)), privilege)));
}

/* Whether a part of a name is called as a directory of a semaphore */
static bool
is_semaphore_part(const char *part)
{
	return covers(ZKL_SEMAPHORE_PERMITS, part) || covers(ZKL_SEMAPHORE_GUARD, part);
}

/*
 * All znodes in the directories of a semaphore count as its own.  So whatever puts
 * one there could stall the semaphore.
 */
static void
check_semaphores_above(const char *path, const char *name)
{
	const char *part;

	for (part = strchr(path + 1, '/'); part != NULL; part = strchr(part + 1, '/'))
	{
		if (is_semaphore_part(part))
			check_name(pnstrdup(path, part - path), name, ZKL_MAY_SEMAPHORE);
	}
}

void
zkl_rights_check(const char *path, const char *name, ZklPrivileges needed)
{
	needed = find_asked(needed);
	if (needed == ZKL_NEEDS_NOTHING)
		return;
	check_name(path, name, needed);
	if ((needed & (ZKL_MAY_ONCE | ZKL_MAY_LOOK)) == 0)
		check_semaphores_above(path, name);
}

/* EXECUTE can be granted, but only a superuser may interfere with others. */
void
zkl_rights_check_superuser(const char *message)
{
	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("%s", message)));
}

bool
zkl_rights_may_look(const char *path)
{
	const char *prefix;

	return find_missing(path, find_asked(ZKL_MAY_LOOK), &prefix) == 0;
}

bool
zkl_rights_may_call_queue(const char *path)
{
	Oid			extension = get_extension_oid(ZKL_EXTENSION_NAME, true);
	Oid			table = OidIsValid(extension) ?
	find_member_table(extension, ZKL_RIGHTS_TABLE) : InvalidOid;
	Oid			type = TEXTOID;
	Oid			function;

	if (!OidIsValid(table))
		return false;
	function = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum("zk_queue"),
							   PointerGetDatum(buildoidvector(&type, 1)),
							   ObjectIdGetDatum(get_rel_namespace(table)));
	return OidIsValid(function) &&
		DatumGetBool(DirectFunctionCall2(has_function_privilege_id, ObjectIdGetDatum(function),
										 CStringGetTextDatum("EXECUTE"))) &&
		zkl_rights_may_look(path);
}

List *
zkl_rights_missing_roles(void)
{
	List	   *roles = NIL;
	ListCell   *cell;

	if (!there_are_rights())
		return NIL;
	foreach(cell, rights)
	{
		Right	   *right = lfirst(cell);
		char	   *role = NameStr(right->role);

		if (!is_public(role) && !OidIsValid(get_role_oid(role, true)))
			roles = list_append_unique(roles, makeString(pstrdup(role)));
	}
	return roles;
}
