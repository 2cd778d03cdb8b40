/*
 * launch.c
 *	  Starts a session process, and tells it to what to connect, as whom, and
 *	  whom to trust.
 *
 * Owns no state.  Runs in the worker only; takes no locks but through identity.c.  It
 * must not know when a process is to be started, nor what becomes of it; nor TLS, nor
 * what ZooKeeper makes of credentials.
 */
#include "postgres.h"

#include "shared/control.h"
#include "shared/settings.h"
#include "utils/timestamp.h"
#include "wire/version.h"
#include "worker/identity.h"
#include "worker/launch.h"
#include "worker/link.h"

/* ---- what a CONNECTED frame says of TLS ---- */

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

/* ---- a START frame ---- */

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

static void
put_trust(const ZklConnectSettings *settings, ZklWireBuffer *out)
{
	zkl_wire_put_u8(out, settings->tls.mode);
	zkl_wire_put_text(out, settings->ca.data);
	zkl_wire_put_text(out, settings->certificate.data);
	zkl_wire_put_text(out, settings->key.data);
}

int
zkl_launch_put_start(ZklWireBuffer *out, uint32 connection, const char *host,
					 const ZklConnectSettings *settings, bool attach)
{
	const ZklStatus *status = &zkl_control->ctl_status;
	size_t		frame = zkl_wire_begin(out, ZKL_WIRE_START, connection, 0, 0);
	int			asked_ms = attach && status->timeout_ms != 0 ?
	(int) status->timeout_ms : zkl_session_timeout;

	zkl_wire_put_u32(out, ZKL_LINK_PROTOCOL);
	zkl_wire_put_text(out, host);
	zkl_wire_put_i64(out, attach ? status->session_id : 0);
	zkl_wire_put_string(out, zkl_identity_password(), attach ? ZKL_PASSWORD_BYTES : 0);
	zkl_wire_put_u32(out, (uint32) asked_ms);
	put_credentials(&settings->credentials, out);
	zkl_wire_put_u8(out, zkl_trace);
	put_trust(settings, out);
	zkl_wire_end(out, frame);
	return asked_ms;
}

/* ---- the process ---- */

bool
zkl_launch_begin(uint32 connection, const ZklConnectSettings *settings,
				 char *host, int *asked_ms)
{
	int			pid;

	strlcpy(host, zkl_hosts_next(), ZKL_MAX_HOST);
	*asked_ms = zkl_launch_put_start(zkl_link_output(), connection, host, settings,
									 zkl_control->ctl_status.session_id != 0);
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
