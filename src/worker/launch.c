/*
 * launch.c
 *	  Starts a session process, and tells it to what to connect, as whom, and
 *	  whom to trust.
 *
 * Owns the values of the settings that were kept.  Runs in the worker only; takes no
 * locks but through identity.c.  It must not know when a process is to be started, nor
 * what becomes of it; nor TLS, nor what ZooKeeper makes of credentials.
 *
 * The files are read for each connection, so that a renewed certificate is used from
 * the next one on.  No message shows a line of "zklock.auth_file".
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/stringinfo.h"
#include "nodes/pg_list.h"
#include "shared/control.h"
#include "shared/hosts.h"
#include "shared/settings.h"
#include "storage/fd.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "wire/version.h"
#include "worker/identity.h"
#include "worker/launch.h"
#include "worker/link.h"

typedef struct ZklTrust
{
	ZklTls		tls;
	StringInfoData ca;			/* the others, too: PEM, empty without TLS */
	StringInfoData certificate;
	StringInfoData key;
} ZklTrust;

typedef struct ZklCredentials
{
	StringInfoData content;		/* of the file; lines points into it */
	List	   *lines;			/* char *, each scheme:secret */
	bool		is_private;
} ZklCredentials;

/* ---- the settings, as values ---- */

ZklConnectSettings
zkl_launch_settings_wanted(void)
{
	ZklConnectSettings settings;

	settings.connect_string = zkl_connect_string;
	settings.auth_file = zkl_auth_file != NULL ? zkl_auth_file : "";
	settings.tls = zkl_settings_tls();
	return settings;
}

ZklConnectSettings
zkl_launch_settings_keep(const ZklConnectSettings *settings)
{
	static MemoryContext values = NULL;
	MemoryContext before = values;
	MemoryContext old;
	ZklConnectSettings copy = *settings;

	values = AllocSetContextCreate(TopMemoryContext, "zklock connection settings",
								   ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(values);
	copy.connect_string = pstrdup(settings->connect_string);
	copy.auth_file = pstrdup(settings->auth_file);
	copy.tls.ca_file = pstrdup(settings->tls.ca_file);
	copy.tls.cert_file = pstrdup(settings->tls.cert_file);
	copy.tls.key_file = pstrdup(settings->tls.key_file);
	MemoryContextSwitchTo(old);
	if (before != NULL)
		MemoryContextDelete(before);
	return copy;
}

bool
zkl_launch_settings_equal(const ZklConnectSettings *a,
						  const ZklConnectSettings *b)
{
	return strcmp(a->connect_string, b->connect_string) == 0 &&
		strcmp(a->auth_file, b->auth_file) == 0 &&
		a->tls.mode == b->tls.mode &&
		strcmp(a->tls.ca_file, b->tls.ca_file) == 0 &&
		strcmp(a->tls.cert_file, b->tls.cert_file) == 0 &&
		strcmp(a->tls.key_file, b->tls.key_file) == 0;
}

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

/*
 * Appends a file's content to "content".  A secret is read only if its owner and
 * its permissions keep it one.  Returns NULL, or what is wrong, which names the
 * setting and the file.
 */
static const char *
read_file(const char *setting, const char *path, bool secret,
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
		read_file(setting, path, secret, content);
}

/* Reads the files that the settings name.  Returns NULL, or what is wrong. */
static const char *
read_tls_files(ZklTrust *trust, const ZklTlsSettings *settings)
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

/* The end of a START frame */
static void
put_trust(ZklTrust *trust, ZklWireBuffer *out)
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
zkl_launch_get_tls(ZklWireReader *body, ZklTlsStatus *tls)
{
	get_text(body, tls->version, sizeof(tls->version));
	get_text(body, tls->cipher, sizeof(tls->cipher));
	tls->certificate_until = get_time(body);
	tls->ca_until = get_time(body);
	tls->server_until = get_time(body);
}

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
static const char *
read_auth_file(ZklCredentials *credentials, const char *auth_file)
{
	const char *wrong;

	memset(credentials, 0, sizeof(*credentials));
	initStringInfo(&credentials->content);
	if (auth_file[0] == '\0')
		return NULL;
	wrong = read_file("zklock.auth_file", auth_file, true,
					  &credentials->content);
	if (wrong != NULL)
		return wrong;
	wrong = take_lines(credentials);
	return wrong == NULL ? NULL :
		psprintf("\"zklock.auth_file\" \"%s\" %s", auth_file, wrong);
}

/* Their part of a START frame */
static void
put_credentials(const ZklCredentials *credentials, ZklWireBuffer *out)
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

/* To be called in the end, also if something is wrong. */
static void
wipe_credentials(ZklCredentials *credentials)
{
	explicit_bzero(credentials->content.data,
				   (size_t) credentials->content.len);
}

/* Returns the session timeout that it requests. */
static int
put_start(ZklWireBuffer *out, uint32 connection, const char *host,
		  const ZklCredentials *credentials, ZklTrust *trust, bool attach)
{
	const ZklStatus *status = &zkl_control->ctl_status;
	size_t		frame = zkl_wire_begin(out, ZKL_WIRE_START, connection, 0, 0);
	int			asked_ms = attach && status->timeout_ms != 0 ?
	(int) status->timeout_ms : zkl_session_timeout;

	zkl_wire_put_u32(out, ZKL_LINK_PROTOCOL);
	zkl_wire_put_text(out, host);
	zkl_wire_put_i64(out, attach ? status->session_id : 0);
	zkl_wire_put_string(out, status->session_password,
						attach ? sizeof(status->session_password) : 0);
	zkl_wire_put_u32(out, (uint32) asked_ms);
	put_credentials(credentials, out);
	zkl_wire_put_u8(out, zkl_trace);
	put_trust(trust, out);
	zkl_wire_end(out, frame);
	return asked_ms;
}

const char *
zkl_launch_put_start(ZklWireBuffer *out, uint32 connection, const char *host,
					 const ZklConnectSettings *settings, bool attach,
					 int *asked_ms)
{
	ZklCredentials credentials;
	ZklTrust	trust = {0};
	const char *fault = read_auth_file(&credentials, settings->auth_file);

	if (fault == NULL)
		fault = read_tls_files(&trust, &settings->tls);
	if (fault == NULL)
		*asked_ms = put_start(out, connection, host, &credentials, &trust,
							  attach);
	wipe_credentials(&credentials);
	if (trust.key.data != NULL)
		explicit_bzero(trust.key.data, (size_t) trust.key.len);
	return fault;
}

bool
zkl_launch_begin(uint32 connection, const ZklConnectSettings *settings,
				 char *host, int *asked_ms)
{
	const char *fault;
	int			pid;

	strlcpy(host, zkl_hosts_next(), ZKL_MAX_HOST);
	fault = zkl_launch_put_start(zkl_link_output(), connection, host, settings,
								 zkl_control->ctl_status.session_id != 0,
								 asked_ms);
	if (fault != NULL)
	{
		zkl_identity_note_settings(fault);
		zkl_identity_note_error(ZKL_ABOUT_SETTINGS, fault);
		return false;
	}
	pid = zkl_link_spawn();
	if (pid == 0)
	{
		zkl_identity_note_error(ZKL_ABOUT_PROCESS, psprintf("could not start zklock_session: %s",
															strerror(errno)));
		zkl_link_kill();
		return false;
	}
	zkl_identity_process_started(pid);
	return true;
}
