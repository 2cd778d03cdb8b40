/*
 * credentials.c
 *	  As whom to connect to ZooKeeper: what "zklock.auth_file" holds.
 *
 * Owns nothing.  Runs in the worker only; takes no locks.  It must not know what
 * ZooKeeper makes of credentials; and no message shows a line of the file.
 */
#include "postgres.h"

#include "worker/credentials.h"
#include "worker/trust.h"

#define ACL		"acl"

/* Returns what is wrong with one line, or NULL. */
static const char *
take_line(ZklCredentials *credentials, char *line)
{
	const char *colon = strchr(line, ':');

	if (colon == NULL || colon == line)
		return "must hold lines scheme:credentials";
	if (strncmp(line, ACL ":", strlen(ACL ":")) != 0)
	{
		credentials->lines = lappend(credentials->lines, line);
		return NULL;
	}
	if (strcmp(colon + 1 + strspn(colon + 1, " "), "private") != 0)
		return "has a line \"acl:\" other than \"acl: private\"";
	credentials->is_private = true;
	return NULL;
}

static bool
name_us(const ZklCredentials *credentials)
{
	ListCell   *cell;

	foreach(cell, credentials->lines)
	{
		const char *line = lfirst(cell);

		if (strncmp(line, ZKL_SCHEME_ENSEMBLE ":",
					strlen(ZKL_SCHEME_ENSEMBLE ":")) != 0)
			return true;
	}
	return false;
}

static const char *
take_lines(ZklCredentials *credentials)
{
	char	   *next = credentials->content.data;
	const char *wrong = NULL;
	char	   *line;

	while (wrong == NULL && (line = strsep(&next, "\r\n")) != NULL)
	{
		if (line[0] != '\0')
			wrong = take_line(credentials, line);
	}
	if (wrong == NULL && credentials->lines == NIL)
		wrong = "must hold lines scheme:credentials";
	if (wrong == NULL && credentials->is_private && !name_us(credentials))
		wrong = "has a line \"acl: private\", which needs credentials such as digest:user:secret";
	return wrong;
}

/*
 * An unreadable file is an error in zk_status, not a connection without
 * credentials.
 */
const char *
zkl_credentials_read(ZklCredentials *credentials, const char *auth_file)
{
	const char *wrong;

	memset(credentials, 0, sizeof(*credentials));
	initStringInfo(&credentials->content);
	if (auth_file[0] == '\0')
		return NULL;
	wrong = zkl_trust_read_file("zklock.auth_file", auth_file, true,
								&credentials->content);
	if (wrong != NULL)
		return wrong;
	wrong = take_lines(credentials);
	return wrong == NULL ? NULL :
		psprintf("\"zklock.auth_file\" \"%s\" %s", auth_file, wrong);
}

void
zkl_credentials_put(const ZklCredentials *credentials, ZklWireBuffer *out)
{
	ListCell   *cell;

	zkl_wire_put_u32(out, (uint32) list_length(credentials->lines));
	foreach(cell, credentials->lines)
	{
		const char *line = lfirst(cell);
		const char *colon = strchr(line, ':');

		zkl_wire_put_string(out, line, (size_t) (colon - line));
		zkl_wire_put_text(out, colon + 1);
	}
	zkl_wire_put_u8(out, credentials->is_private);
}

void
zkl_credentials_wipe(ZklCredentials *credentials)
{
	explicit_bzero(credentials->content.data,
				   (size_t) credentials->content.len);
}
