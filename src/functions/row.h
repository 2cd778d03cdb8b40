/*
 * row.h
 *	  Rows of set-returning functions, a column at a time.
 */
#ifndef ZKL_FUNCTIONS_ROW_H
#define ZKL_FUNCTIONS_ROW_H

#include "shared/compat.h"
#include "znode/mode.h"

#define ZKL_ROW_COLUMNS	29

/* A row under construction: columns are added in order. */
typedef struct ZklRow
{
	Datum		values[ZKL_ROW_COLUMNS];
	bool		nulls[ZKL_ROW_COLUMNS];
	int			n;
} ZklRow;

extern void zkl_row_add(ZklRow *row, Datum value);
extern void zkl_row_null(ZklRow *row);
extern void zkl_row_text(ZklRow *row, const char *value);

/* UTF-8 of unknown origin; it may fill its buffer, without a zero behind it */
extern void zkl_row_utf8(ZklRow *row, const char *value, size_t size);

/* These add NULL for an empty string or 0. */
extern void zkl_row_text_or_null(ZklRow *row, const char *value);
extern void zkl_row_utf8_or_null(ZklRow *row, const char *value, size_t size);
extern void zkl_row_time_or_null(ZklRow *row, TimestampTz value);
extern void zkl_row_unix_ms_or_null(ZklRow *row, int64 ms); /* since 1970; also if
															 * it is absurd */
extern void zkl_row_pid_or_null(ZklRow *row, int pid);
extern void zkl_row_session_id(ZklRow *row, int64 id);

extern void zkl_row_interval_ms(ZklRow *row, int64 ms);

/*
 * Begins the result of the function behind a view: everybody may call it, but it
 * raises error 42501 unless the current role may read the whole view.
 */
extern void zkl_row_begin_view(FunctionCallInfo fcinfo, const char *name);

/* Adds the row to the function's result. */
extern void zkl_row_put(FunctionCallInfo fcinfo, ZklRow *row);

/* The name of a mode in SQL */
extern const char *zkl_row_mode_name(ZklLockMode mode);

#endif							/* ZKL_FUNCTIONS_ROW_H */
