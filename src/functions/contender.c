/*
 * contender.c
 *	  What the data of a znode in a queue tells of the client that made it.
 *
 * Owns nothing.  Run by backends.  Takes no locks.  Must not know which queue the
 * znode is in.
 */
#include "postgres.h"

#include <ctype.h>

#include "backend/text.h"
#include "functions/contender.h"
#include "mb/pg_wchar.h"

#define MAX_FOREIGN_DATA	255 /* longer data is not shown */

/*
 * If the lock may be cached, the znode is made for the first of several sessions,
 * and the holder may be another one by now, or none.
 */
static void
hide_session(ZklNodeData *data)
{
	char		server[sizeof(data->server)];

	memcpy(server, data->server, sizeof(server));
	memset(data, 0, sizeof(*data));
	memcpy(data->server, server, sizeof(server));
	data->cached = true;
}

/* Whether data of another client is a short printable text */
static bool
is_short_text(const char *data, uint32 length)
{
	uint32		at = 0;

	if (length == 0 || length > MAX_FOREIGN_DATA)
		return false;
	while (at < length)
	{
		int			bytes = pg_encoding_verifymbchar(PG_UTF8, data + at,
													 (int) (length - at));

		if (bytes < 1 || (bytes == 1 && !isprint((unsigned char) data[at])))
			return false;
		at += bytes;
	}
	return true;
}

void
zkl_contender_add_server(ZklRow *row, const char *text, uint32 length,
						 ZklNodeData *data, bool visible)
{
	bool		ours = zkl_node_data_parse(text, length, data);

	if (data->cached)
		hide_session(data);
	if (ours)
		zkl_row_utf8_or_null(row, data->server, sizeof(data->server));
	else if (visible && is_short_text(text, length))
		zkl_row_text(row, zkl_text_to_display(text, (int) length));
	else
		zkl_row_null(row);
}
