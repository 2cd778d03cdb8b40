/*
 * credentials.c
 *	  Reads the files that settings name: "zklock.auth_file" and those of TLS.
 *
 * Owns no state.  Runs in the worker only; takes no locks.  It must not know what the
 * credentials are used for.  No message shows a line of a file.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/fd.h"
#include "worker/credentials.h"
#include "znode/zkapi.h"

/* ---- files ---- */

#define MOST_BYTES		(1024 * 1024)

/*
 * The rule that PostgreSQL has for its own key file: it is ours, and no other user
 * can read it; or it is root's, and only a group that we are in can read it, too.
 */
static const char *
fault_of_secret(const struct stat *st)
{
	if (st->st_uid != geteuid() && st->st_uid != 0)
		return "must be owned by the database user or root";
	if (st->st_mode & (st->st_uid == 0 ? S_IWGRP | S_IXGRP | S_IRWXO :
					   S_IRWXG | S_IRWXO))
		return "must have permissions 0600 or less if it is owned by the database user, or 0640 or less if it is owned by root";
	return NULL;
}

/* Judges the open file: its name could lead to another one by now. */
static const char *
fault_of_file(int fd, bool secret)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return psprintf("could not be examined: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return "is not a regular file";
	if (st.st_size > MOST_BYTES)
		return psprintf("is larger than %d bytes", MOST_BYTES);
	return secret ? fault_of_secret(&st) : NULL;
}

static const char *
read_all(int fd, StringInfo content)
{
	char		bytes[4096];
	ssize_t		n;

	do
	{
		n = read(fd, bytes, sizeof(bytes));
		if (n > 0)
			appendBinaryStringInfo(content, bytes, (int) n);
	} while (n > 0 && content->len <= MOST_BYTES);
	explicit_bzero(bytes, sizeof(bytes));
	if (n < 0)
		return psprintf("could not be read: %s", strerror(errno));
	if (memchr(content->data, '\0', (size_t) content->len) != NULL)
		return "is not a text file";
	return NULL;
}

const char *
zkl_credentials_read_file(const char *setting, const char *path, bool secret,
						  StringInfo content)
{
	const char *wrong;

	/* A pipe must not hold the worker up. */
	int			fd = OpenTransientFile(path, O_RDONLY | O_NONBLOCK | PG_BINARY);

	if (fd < 0)
		return psprintf("could not open \"%s\" \"%s\": %s", setting, path,
						strerror(errno));
	wrong = fault_of_file(fd, secret);
	if (wrong == NULL)
		wrong = read_all(fd, content);
	CloseTransientFile(fd);
	return wrong != NULL ? psprintf("\"%s\" \"%s\" %s", setting, path, wrong) :
		NULL;
}

/* ---- credentials ---- */

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

/* Whether one of the lines is a secret of ours, and not the ensemble's name */
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

const char *
zkl_credentials_read(ZklCredentials *credentials, const char *auth_file)
{
	const char *wrong;

	memset(credentials, 0, sizeof(*credentials));
	initStringInfo(&credentials->content);
	if (auth_file[0] == '\0')
		return NULL;
	wrong = zkl_credentials_read_file("zklock.auth_file", auth_file, true,
									  &credentials->content);
	if (wrong != NULL)
		return wrong;
	wrong = take_lines(credentials);
	return wrong == NULL ? NULL :
		psprintf("\"zklock.auth_file\" \"%s\" %s", auth_file, wrong);
}

void
zkl_credentials_wipe(ZklCredentials *credentials)
{
	explicit_bzero(credentials->content.data,
				   (size_t) credentials->content.len);
}
