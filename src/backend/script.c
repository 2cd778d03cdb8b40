/*
 * script.c
 *	  The version of the extension's SQL script.
 *
 * Owns which versions are served.  Run by backends.  Takes no locks but
 * PostgreSQL's on its catalog.  Must not know what the functions do.
 *
 * Library and script are upgraded one after the other: the library by a restart
 * of each server, standbys first; the script by ALTER EXTENSION on the primary,
 * which all standbys replay.  So a library serves the scripts of releases before
 * it.  It cannot serve a later one, whose functions may mean something that it
 * does not know.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "backend/script.h"
#include "backend/statement.h"
#include "backend/text.h"
#include "catalog/pg_extension.h"
#include "miscadmin.h"
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/slot.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "wire/version.h"

#define EXTENSION_NAME	"zklock"

/* As of the last look.  An update of the extension replaces functions. */
static bool served = false;

static void
forget_check(Datum arg, int cacheid, uint32 hash)
{
	served = false;
}

/* Versions are numbers with dots between them. */
static int
compare(const char *a, const char *b)
{
	while (*a != '\0' || *b != '\0')
	{
		char	   *end_of_a;
		char	   *end_of_b;
		long		x = strtol(a, &end_of_a, 10);
		long		y = strtol(b, &end_of_b, 10);

		if (x != y)
			return x < y ? -1 : 1;
		if (end_of_a == a && end_of_b == b)
			return strcmp(a, b);
		a = end_of_a + (*end_of_a == '.');
		b = end_of_b + (*end_of_b == '.');
	}
	return 0;
}

static char *
read_version(void)
{
	Relation	catalog = table_open(ExtensionRelationId, AccessShareLock);
	char	   *version = NULL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ,
				CStringGetDatum(EXTENSION_NAME));
	scan = systable_beginscan(catalog, ExtensionNameIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		bool		isnull;
		Datum		value = heap_getattr(tuple, Anum_pg_extension_extversion,
										 RelationGetDescr(catalog), &isnull);

		version = isnull ? NULL : TextDatumGetCString(value);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return version;
}

char *
zkl_script_version(ZklScriptAge *age)
{
	char	   *version = read_version();

	if (version == NULL)
		*age = ZKL_SCRIPT_NONE;
	else if (compare(version, ZKL_SCRIPT) > 0)
		*age = ZKL_SCRIPT_NEWER;
	else if (compare(version, ZKL_OLDEST_SCRIPT) < 0)
		*age = ZKL_SCRIPT_TOO_OLD;
	else
		*age = compare(version, ZKL_SCRIPT) < 0 ? ZKL_SCRIPT_OLDER : ZKL_SCRIPT_OWN;
	return version;
}

void
zkl_script_check(void)
{
	static bool registered = false;
	ZklScriptAge age;
	char	   *version;

	if (served)
		return;
	if (!registered)
		CacheRegisterSyscacheCallback(PROCOID, forget_check, (Datum) 0);
	registered = true;
	version = zkl_script_version(&age);
	if (age == ZKL_SCRIPT_NEWER)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("extension \"zklock\" is newer than its library"),
				 errdetail("The extension in this database has version %s, and the library serves %s to %s.",
						   version, ZKL_OLDEST_SCRIPT, ZKL_SCRIPT),
				 errhint("Restart the server after the new library is installed.")));
	if (age == ZKL_SCRIPT_TOO_OLD)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("extension \"zklock\" is too old for its library"),
				 errdetail("The extension in this database has version %s, and the library serves %s to %s.",
						   version, ZKL_OLDEST_SCRIPT, ZKL_SCRIPT),
				 errhint("Run ALTER EXTENSION zklock UPDATE.")));
	served = true;
}

/* ---- its end ---- */

/* How many locks sessions of this database hold */
static int
count_holds(void)
{
	char	   *name = get_database_name(MyDatabaseId);
	char		database[sizeof(zkl_slots->s_request.database)];
	int			n = 0;
	int			i;

	zkl_text_copy_to_utf8(database, sizeof(database), name ? name : "");
	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		ZklSlot		slot;

		if (zkl_slot_peek(i) != ZKL_SLOT_GRANTED)
			continue;
		zkl_slot_copy(i, &slot);
		n += slot.s_state == ZKL_SLOT_GRANTED &&
			strcmp(slot.s_request.database, database) == 0;
	}
	return n;
}

void
zkl_script_note_drop(Node *statement)
{
	int			n;

	if (!zkl_statement_drops_extension(statement, EXTENSION_NAME))
		return;
	n = count_holds();
	if (n > 0)
		ereport(NOTICE,
				(errmsg_plural("sessions of this database still hold %d distributed lock",
							   "sessions of this database still hold %d distributed locks",
							   n, n),
				 errhint("Without the extension, a session releases its locks with DISCARD ALL, or when it ends.")));
}
