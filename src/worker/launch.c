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
#include "worker/identity.h"
#include "worker/launch.h"
#include "worker/link.h"
#include "worker/trust.h"

/* Returns the session timeout that it requests. */
static int
send_start(uint32 connection, const char *host, char *credentials,
		   ZklTrust *trust)
{
	const ZklStatus *status = &zkl_control->ctl_status;
	ZklWireBuffer *out = zkl_link_output();
	size_t		frame = zkl_wire_begin(out, ZKL_WIRE_START, connection, 0, 0);
	char	   *secret = strchr(credentials, ':');
	int			asked_ms = status->session_id != 0 && status->timeout_ms != 0 ?
	(int) status->timeout_ms : zkl_session_timeout;

	if (secret != NULL)
		*secret++ = '\0';
	zkl_wire_put_u32(out, ZKL_LINK_PROTOCOL);
	zkl_wire_put_text(out, host);
	zkl_wire_put_i64(out, status->session_id);
	zkl_wire_put_string(out, status->session_password,
						status->session_id != 0 ?
						sizeof(status->session_password) : 0);
	zkl_wire_put_u32(out, (uint32) asked_ms);
	zkl_wire_put_text(out, credentials);
	zkl_wire_put_text(out, secret != NULL ? secret : "");
	zkl_wire_put_u32(out, (uint32) zkl_log_level);
	zkl_trust_put(trust, out);
	zkl_wire_end(out, frame);
	return asked_ms;
}

/* Reads the files that the settings name.  Returns what is wrong, or NULL. */
static const char *
read_files(char *credentials, size_t size, ZklTrust *trust)
{
	const char *fault = zkl_hosts_credentials(credentials, size);

	return fault != NULL ? fault : zkl_trust_read(trust);
}

static void
wipe_files(char *credentials, size_t size, ZklTrust *trust)
{
	explicit_bzero(credentials, size);
	if (trust->key.data != NULL)
		explicit_bzero(trust->key.data, (size_t) trust->key.len);
}

const char *
zkl_launch_fault(void)
{
	char		credentials[1024];
	ZklTrust	trust = {0};
	const char *fault = read_files(credentials, sizeof(credentials), &trust);

	wipe_files(credentials, sizeof(credentials), &trust);
	return fault;
}

bool
zkl_launch_begin(uint32 connection, char *host, int *asked_ms)
{
	char		credentials[1024];
	ZklTrust	trust = {0};
	const char *fault = read_files(credentials, sizeof(credentials), &trust);
	int			pid = 0;

	zkl_identity_note_settings(fault);
	if (fault != NULL)
		zkl_identity_note_error(ZKL_ABOUT_SETTINGS, fault);
	else if ((pid = zkl_link_spawn()) == 0)
		zkl_identity_note_error(ZKL_ABOUT_PROCESS, psprintf("could not start zklock_session: %s",
															strerror(errno)));
	else
	{
		zkl_identity_process_started(pid);
		strlcpy(host, zkl_hosts_next(), ZKL_MAX_HOST);
		*asked_ms = send_start(connection, host, credentials, &trust);
	}
	wipe_files(credentials, sizeof(credentials), &trust);
	return pid != 0;
}
