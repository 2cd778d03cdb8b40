/*
 * trust.c
 *	  What the session process needs for TLS: whom to trust, and who we are; and
 *	  what it tells of a connection.
 *
 * Owns nothing.  Runs in the worker only; takes no locks.  It must not know TLS:
 * what is in the files, the session process finds out.
 *
 * The files are read for each connection, so that a renewed certificate is used
 * from the next one on.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/fd.h"
#include "utils/timestamp.h"
#include "worker/trust.h"

/* ---- files that settings name ---- */

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
zkl_trust_read_file(const char *setting, const char *path, bool secret,
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

/* ---- TLS ---- */

static const char *
read_if_set(const char *setting, const char *path, bool secret,
			StringInfo content)
{
	return path[0] == '\0' ? NULL :
		zkl_trust_read_file(setting, path, secret, content);
}

const char *
zkl_trust_read(ZklTrust *trust, const ZklTlsSettings *settings)
{
	const char *wrong = zkl_settings_tls_fault(settings);

	trust->tls = settings->mode;
	initStringInfo(&trust->ca);
	initStringInfo(&trust->certificate);
	initStringInfo(&trust->key);
	if (trust->tls == ZKL_TLS_OFF)
		return NULL;
	if (wrong == NULL)
		wrong = read_if_set("zklock.tls_ca_file", settings->ca_file, false,
							&trust->ca);
	if (wrong == NULL)
		wrong = read_if_set("zklock.tls_cert_file", settings->cert_file, false,
							&trust->certificate);
	if (wrong == NULL)
		wrong = read_if_set("zklock.tls_key_file", settings->key_file, true,
							&trust->key);
	return wrong;
}

void
zkl_trust_put(ZklTrust *trust, ZklWireBuffer *out)
{
	zkl_wire_put_u8(out, trust->tls);
	zkl_wire_put_text(out, trust->ca.data);
	zkl_wire_put_text(out, trust->certificate.data);
	zkl_wire_put_text(out, trust->key.data);
}

static void
get_text(ZklWireReader *body, char *text, size_t size)
{
	uint32_t	length;
	const char *bytes = zkl_wire_get_string(body, &length);

	strlcpy(text, pnstrdup(bytes, length), size);
}

/* 0: there is none.  PostgreSQL's timestamps go beyond all that certificates say. */
static TimestampTz
get_time(ZklWireReader *body)
{
	int64		seconds = zkl_wire_get_i64(body);

	return seconds == 0 || body->bad ? 0 :
		time_t_to_timestamptz((pg_time_t) seconds);
}

void
zkl_trust_get_tls(ZklWireReader *body, ZklTlsStatus *tls)
{
	get_text(body, tls->version, sizeof(tls->version));
	get_text(body, tls->cipher, sizeof(tls->cipher));
	tls->certificate_until = get_time(body);
	tls->ca_until = get_time(body);
	tls->server_until = get_time(body);
}
