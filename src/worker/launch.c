/*
 * launch.c
 *	  Starts a session process, and tells it what to connect to.
 *
 * Owns nothing: it reads the settings and their files.  Runs in the worker only;
 * takes no locks but through identity.c.  It must not know when a process is to
 * be started, nor what becomes of it.
 */
#include "postgres.h"

#include "shared/control.h"
#include "shared/hosts.h"
#include "shared/settings.h"
#include "wire/version.h"
#include "worker/credentials.h"
#include "worker/identity.h"
#include "worker/launch.h"
#include "worker/link.h"
#include "worker/trust.h"

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
	zkl_credentials_put(credentials, out);
	zkl_wire_put_u8(out, zkl_trace);
	zkl_trust_put(trust, out);
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
		fault = zkl_trust_read(&trust, &settings->tls);
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
