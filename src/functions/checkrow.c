/*
 * checkrow.c
 *	  A row of zk_healthcheck().
 *
 * Owns nothing.  Run by backends.  Takes no locks.  It must not know what is checked.
 */
#include "postgres.h"

#include "functions/checkrow.h"
#include "functions/row.h"
#include "lib/stringinfo.h"

#define MOST_NAMES		5		/* that one sentence has */

void
zkl_checkrow_put(FunctionCallInfo fcinfo, const char *check, bool known, bool ok,
				 const char *detail)
{
	ZklRow		row = {0};

	zkl_row_text(&row, check);
	row.hidden = !known;
	zkl_row_bool(&row, ok);
	row.hidden = false;
	zkl_row_text(&row, detail);

	zkl_row_put(fcinfo, &row);
}

char *
zkl_checkrow_names(List *names)
{
	StringInfoData buf;
	ListCell   *cell;
	int			n = 0;

	initStringInfo(&buf);
	foreach(cell, names)
	{
		if (n++ == MOST_NAMES)
			break;
		appendStringInfo(&buf, "%s\"%s\"", n > 1 ? ", " : "",
						 (const char *) lfirst(cell));
	}
	if (n > MOST_NAMES)
		appendStringInfo(&buf, " and %d more", list_length(names) - MOST_NAMES);
	return buf.data;
}
