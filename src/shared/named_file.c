/*
 * named_file.c
 *	  Reads the files that settings name.
 *
 * Owns nothing.  Runs in the worker; takes no locks.  It must not know what is in
 * the files.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/fd.h"

#include "shared/named_file.h"

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
zkl_named_file_read(const char *setting, const char *path, bool secret,
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
