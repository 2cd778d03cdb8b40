/*
 * target.c
 *	  From SQL arguments to the locks that they mean: names, times and text, and
 *	  the rights of the role.
 *
 * Owns this backend's copy of the grants.  Run by backends, inside a transaction.
 * Takes no locks but, while it reads the table of grants, that table's.  Must not
 * know how grants are written, nor what is done with a lock.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "backend/target.h"
#include "backend/wait.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "datatype/timestamp.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/value.h"
#include "shared/compat.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* ---- text ---- */

/*
 * Text between the database's encoding and the UTF-8 of names and znodes.
 *
 * Run by backends inside a transaction, unless a function says otherwise
 * (conversions are found in the catalog).
 *
 * The databases of a server may differ in their encodings, the worker has none,
 * and ZooKeeper's is UTF-8.  So backends convert on entry and on display.
 *
 * Must not know what the strings are for, except that names have rules.
 */

/* No encoding takes more than four times the bytes of UTF-8. */
#define MAX_NAME_ANY_ENCODING	(4 * ZKL_MAX_NAME)

/* How much of a bad name an error message repeats */
#define MAX_QUOTED_NAME			100

static bool
database_is_utf8(void)
{
	/* SQL_ASCII means bytes of unknown meaning: taken for UTF-8 */
	return GetDatabaseEncoding() == PG_UTF8 ||
		GetDatabaseEncoding() == PG_SQL_ASCII;
}

/*
 * Converts between the database's encoding and UTF-8, as far as it goes.
 * Returns a palloc'd string; *converted tells how many bytes went into it.
 */
static char *
convert(const char *from, int length, int from_encoding, int to_encoding,
		int *converted)
{
	Size		size = (Size) length * MAX_CONVERSION_GROWTH + 1;
	char	   *to = palloc0(size);
	Oid			proc = FindDefaultConversionProc(from_encoding, to_encoding);

	*converted = 0;
	if (OidIsValid(proc))
		*converted = pg_do_encoding_conversion_buf(proc,
												   from_encoding, to_encoding,
												   (unsigned char *) unconstify(char *, from),
												   length,
												   (unsigned char *) to,
												   (int) size, true);
	return to;
}

static void
bad_name(const char *name, int length, const char *rule)
{
	int			shown = pg_mbcliplen(name, length, MAX_QUOTED_NAME);

	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid lock name: \"%.*s%s\"",
					shown, name, shown < length ? "..." : ""),
			 errdetail("%s", rule),
			 errhint("A lock name is a path, such as \"/batch/nightly\".")));
}

char *
zkl_text_name_to_utf8(const char *name, int length)
{
	char	   *utf8 = pnstrdup(name, length);
	const char *rule;

	if (!database_is_utf8() && length <= MAX_NAME_ANY_ENCODING)
	{
		int			converted;

		utf8 = convert(name, length, GetDatabaseEncoding(), PG_UTF8,
					   &converted);
		if (converted < length)
			bad_name(name, length,
					 "A lock name must have an equivalent in UTF-8.");
	}
	rule = zkl_name_check(utf8, strlen(utf8));
	if (rule != NULL)
		bad_name(name, length, rule);
	return utf8;
}

void
zkl_text_copy_to_utf8(char *to, size_t size, const char *from)
{
	int			length = (int) strlen(from);
	const char *utf8 = from;
	size_t		used = 0;

	if (!database_is_utf8())
	{
		int			converted;

		utf8 = convert(from, length, GetDatabaseEncoding(), PG_UTF8,
					   &converted);
		length = (int) strlen(utf8);
	}
	while (length > 0)
	{
		int			bytes = pg_encoding_verifymbchar(PG_UTF8, utf8, length);
		bool		good = bytes > 0;

		if (!good)
			bytes = 1;
		if (used + bytes >= size)
			break;
		memcpy(to + used, good ? utf8 : "?", bytes);
		used += bytes;
		utf8 += bytes;
		length -= bytes;
	}
	to[used] = '\0';
}

static void
append_escaped(StringInfo buf, const char *text, int length)
{
	int			i;

	for (i = 0; i < length; i++)
		appendStringInfo(buf, "\\x%02x", (unsigned char) text[i]);
}

/* Appends one character of UTF-8 that takes more than a byte. */
static void
append_character(StringInfo buf, const char *text, int length)
{
	char	   *local;
	int			converted;

	if (database_is_utf8())
	{
		appendBinaryStringInfo(buf, text, length);
		return;
	}
	local = convert(text, length, PG_UTF8, GetDatabaseEncoding(), &converted);
	if (converted == length)
		appendStringInfoString(buf, local);
	else
		append_escaped(buf, text, length);
	pfree(local);
}

char *
zkl_text_to_display(const char *text, int length)
{
	StringInfoData buf;

	initStringInfo(&buf);
	while (length > 0)
	{
		unsigned char first = (unsigned char) *text;
		int			bytes = 1;

		if (first >= 0x20 && first < 0x7f)
			appendStringInfoChar(&buf, first);
		else if (first < 0x80 ||
				 (bytes = pg_encoding_verifymbchar(PG_UTF8, text, length)) < 0)
			append_escaped(&buf, text, bytes = 1);
		else
			append_character(&buf, text, bytes);
		text += bytes;
		length -= bytes;
	}
	return buf.data;
}

void
zkl_text_to_ascii(const char *name, size_t length, char *buf, size_t size)
{
	static const char hex[] = "0123456789ABCDEF";
	const char *end = name + length;
	char	   *at = buf;

	for (; name < end && size - (size_t) (at - buf) > 4; name++)
	{
		unsigned char c = (unsigned char) *name;

		if (c < 0x80)
			*at++ = *name;
		else
		{
			*at++ = '\\';
			*at++ = 'x';
			*at++ = hex[c >> 4];
			*at++ = hex[c & 15];
		}
	}
	*at = '\0';
}

static bool
is_ascii(const char *text)
{
	while ((unsigned char) *text - 1U < 0x7f)
		text++;
	return *text == '\0';
}

/* Whether PostgreSQL can send a text to the client for sure */
static bool
client_can_show(const char *text)
{
	int			client = pg_get_client_encoding();
	int			length = (int) strlen(text);
	int			converted;

	if (client == GetDatabaseEncoding() || client == PG_SQL_ASCII ||
		is_ascii(text))
		return true;
	if (GetDatabaseEncoding() == PG_SQL_ASCII)
		return pg_verify_mbstr(client, text, length, true);
	if (!IsTransactionState())
		return false;
	pfree(convert(text, length, GetDatabaseEncoding(), client, &converted));
	return converted == length;
}

const char *
zkl_text_for_client(const char *text)
{
	Size		length = strlen(text);
	Size		size = 4 * (MAX_CONVERSION_GROWTH * length + 1);
	char	   *utf8;
	char	   *ascii;

	if (client_can_show(text))
		return text;
	utf8 = palloc(size);
	ascii = palloc(size);
	if (IsTransactionState())
		zkl_text_copy_to_utf8(utf8, size, text);
	else
		strlcpy(utf8, text, size);
	zkl_text_to_ascii(utf8, strlen(utf8), ascii, size);
	pfree(utf8);
	return ascii;
}

/* ---- rights: rights by prefix: what a role may do with the locks of some names ---- */

/*
 * Run by backends, inside a transaction.  Takes no locks but, while it reads the
 * table of grants, that table's.
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

/* ---- target: from SQL arguments to the locks that they mean, and to times ---- */

/*
 * All names that SQL gives become targets here.  So here is asked, before anything
 * is done with a lock, whether the current role may do that.
 */

/* ---- locks ---- */

void
zkl_target_need(FunctionCallInfo fcinfo, int arg, const char *what)
{
	if (PG_ARGISNULL(arg))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be null", what)));
}

text *
zkl_target_name(FunctionCallInfo fcinfo)
{
	zkl_target_need(fcinfo, 0, "lock name");
	return PG_GETARG_TEXT_PP(0);
}

ZklTarget
zkl_target_lock(const text *name, ZklPrivileges needed)
{
	ZklTarget	target;

	zkl_gate_check();
	target.path = zkl_text_name_to_utf8(VARDATA_ANY(name),
										VARSIZE_ANY_EXHDR(name));
	target.name = text_to_cstring(name);
	target.dialect = zkl_dialect_find(zkl_dialects, target.path);
	zkl_rights_check(target.path, target.name, needed);
	return target;
}

static void
refuse_longer(const ZklTarget *target, const char *addition)
{
	Size		most = ZKL_MAX_NAME - strlen(addition);

	if (strlen(target->path) > most)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid lock name: \"%s\"", target->name),
				 errdetail("It must have at most %zu bytes in UTF-8, to leave room for \"%s\".",
						   most, addition)));
}

ZklTarget
zkl_target_recipe(const text *name, const char *suffix, ZklDialect dialect,
				  ZklPrivileges needed)
{
	ZklTarget	target = zkl_target_lock(name, needed);

	refuse_longer(&target, suffix);
	target.path = psprintf("%s%s", target.path, suffix);
	target.dialect = dialect;
	return target;
}

ZklTarget
zkl_target_reserved(const text *name, const char *directory,
					ZklPrivileges needed)
{
	ZklTarget	target = zkl_target_lock(name, needed);

	refuse_longer(&target, directory);
	target.path = psprintf("%s%s", directory, target.path);
	target.name = psprintf("%s%s", directory, target.name);
	target.dialect = ZKL_DIALECT_CURATOR_RW;
	return target;
}

ZklTarget
zkl_target_any(const text *name, ZklPrivileges needed)
{
	Size		prefix = strlen(ZKL_ONCE_DIRECTORY);
	char	   *text = text_to_cstring(name);

	if (strncmp(text, ZKL_ONCE_DIRECTORY "/", prefix + 1) != 0)
		return zkl_target_lock(name, needed);
	return zkl_target_reserved(cstring_to_text(text + prefix),
							   ZKL_ONCE_DIRECTORY, needed);
}

/* ---- times ---- */

#define MS_PER_DAY		((int64) 86400000)
#define US_PER_MS		1000

/*
 * No interval overflows: the months of the largest one are less than 2^63 ms.
 */
int64
zkl_target_interval_ms(const Interval *interval)
{
	int64		days = (int64) interval->month * DAYS_PER_MONTH + interval->day;
	int64		ms = days * MS_PER_DAY + interval->time / US_PER_MS;
	int64		rest = interval->time % US_PER_MS;

	if (zkl_compat_interval_is_infinite(interval))
		return ZKL_FOREVER;
	if (zkl_compat_interval_is_minus_infinite(interval) ||
		ms < 0 || (ms == 0 && rest < 0))
		return -1;
	return rest > 0 ? ms + 1 : ms;
}

int64
zkl_target_timeout_ms(FunctionCallInfo fcinfo, int arg)
{
	int64		ms = PG_ARGISNULL(arg) ? ZKL_FOREVER :
	zkl_target_interval_ms(PG_GETARG_INTERVAL_P(arg));

	if (ms < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("timeout must not be negative")));
	return ms;
}
