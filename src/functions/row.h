/*
 * row.h
 *	  Rows of set-returning functions, a column at a time; and how requests and
 *	  checks are shown in them.
 */
#ifndef ZKL_FUNCTIONS_ROW_H
#define ZKL_FUNCTIONS_ROW_H

#include "fmgr.h"
#include "nodes/pg_list.h"
#include "shared/compat.h"
#include "shared/slot.h"

#define ZKL_ROW_COLUMNS	39

/* A row under construction: columns are added in order. */
typedef struct ZklRow
{
	Datum		values[ZKL_ROW_COLUMNS];
	bool		nulls[ZKL_ROW_COLUMNS];
	int			n;
	bool		hidden;			/* what is added now becomes NULL: the role
								 * may not see it */
} ZklRow;

extern void zkl_row_add(ZklRow *row, Datum value);
extern void zkl_row_null(ZklRow *row);
extern void zkl_row_bool(ZklRow *row, bool value);
extern void zkl_row_int64(ZklRow *row, int64 value);
extern void zkl_row_text(ZklRow *row, const char *value);

/* UTF-8 of unknown origin; it may fill its buffer, without a zero behind it */
extern void zkl_row_utf8(ZklRow *row, const char *value, size_t size);

/* These add NULL for an empty string or 0. */
extern void zkl_row_text_or_null(ZklRow *row, const char *value);
extern void zkl_row_utf8_or_null(ZklRow *row, const char *value, size_t size);
extern void zkl_row_time_or_null(ZklRow *row, TimestampTz value);
extern void zkl_row_unix_ms_or_null(ZklRow *row, int64 ms); /* since 1970; also if
															 * it is absurd */
extern void zkl_row_int_or_null(ZklRow *row, int value);
extern void zkl_row_interval_ms_or_null(ZklRow *row, int64 ms);
extern void zkl_row_session_id(ZklRow *row, int64 id);

extern void zkl_row_interval_ms(ZklRow *row, int64 ms);

/* The path of a znode, whose directory is below the root */
extern void zkl_row_znode(ZklRow *row, const char *directory, const char *name,
						  int length);

/*
 * Begins the result of the function behind a view: everybody may call it, but it
 * raises error 42501 unless the current role may read the whole view.
 */
extern void zkl_row_begin_view(FunctionCallInfo fcinfo, const char *name);

/* Adds the row to the function's result. */
extern void zkl_row_put(FunctionCallInfo fcinfo, ZklRow *row);

/* ---- requests ---- */

/* The name of a mode in SQL */
extern const char *zkl_row_mode_name(ZklLockMode mode);

extern const char *zkl_row_slot_mode(const ZklSlot *slot);

/* Empty, and 0: no session has a lock that is cached, so it has neither. */
extern const char *zkl_row_slot_lifetime(const ZklSlot *slot);
extern TimestampTz zkl_row_slot_granted_at(const ZklSlot *slot);

/*
 * False once the session has released the lock: it may have ended, and another
 * process may have its number.
 */
extern bool zkl_row_slot_has_session(const ZklSlot *slot);

/* Columns datname, usename and application_name, as they were at the request */
extern void zkl_row_slot_add_session(ZklRow *row, const ZklSlot *slot, bool visible);

/* NULL: a request in this state is not shown. */
extern const char *zkl_row_slot_state(const ZklSlot *slot);

/*
 * Whether the current role may see which lock it is, and what belongs to that:
 * it is the session's role, or may read all statistics.  A cached lock is no
 * session's.
 */
extern bool zkl_row_slot_is_visible(const ZklSlot *slot);

/* ---- checkrow: a row of zk_healthcheck() ---- */

/* "known": whether it can be told now; else "ok" does not count. */
extern void zkl_checkrow_put(FunctionCallInfo fcinfo, const char *check, bool known,
							 bool ok, const char *detail);

/* Some of these strings, each in quotes, and how many more there are; palloc'd */
extern char *zkl_checkrow_names(List *names);

#endif							/* ZKL_FUNCTIONS_ROW_H */
