/*
 * target.c
 *	  From SQL arguments to the locks that they mean, and to times.
 *
 * Owns nothing.  Run by backends.  Takes no locks.  Must not know what is done
 * with a lock.
 *
 * All names that SQL gives become targets here.  So here is asked, before anything
 * is done with a lock, whether the current role may do that.
 */
#include "postgres.h"

#include "backend/target.h"
#include "backend/text.h"
#include "backend/wait.h"
#include "datatype/timestamp.h"
#include "shared/compat.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "utils/builtins.h"
#include "znode/znode.h"

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
