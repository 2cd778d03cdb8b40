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

#include "shared/control.h"
#include "shared/hosts.h"
#include "shared/settings.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "wire/version.h"
#include "worker/credentials.h"
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

/* ---- TLS ---- */

static const char *
read_if_set(const char *setting, const char *path, bool secret,
			StringInfo content)
{
	return path[0] == '\0' ? NULL :
		zkl_credentials_read_file(setting, path, secret, content);
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
	const char *fault = zkl_credentials_read(&credentials, settings->auth_file);

	if (fault == NULL)
		fault = read_tls_files(&trust, &settings->tls);
	if (fault == NULL)
		*asked_ms = put_start(out, connection, host, &credentials, &trust,
							  attach);
	zkl_credentials_wipe(&credentials);
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
