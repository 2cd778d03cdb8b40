/*
 * launch.h
 *	  Starts a session process, and tells it to what to connect, as whom, and
 *	  whom to trust.  Worker only.
 *
 * A reload changes the variables of the settings at once, but the connection that
 * works with the old values goes on until the new ones work, too.
 */
#ifndef ZKL_WORKER_LAUNCH_H
#define ZKL_WORKER_LAUNCH_H

#include "shared/settings.h"
#include "shared/status.h"
#include "wire/wire.h"

typedef struct ZklConnectSettings
{
	const char *connect_string;
	const char *auth_file;
	ZklTlsSettings tls;
} ZklConnectSettings;

/* The present values of the variables, until the next reload */
extern ZklConnectSettings zkl_launch_settings_wanted(void);

/* A copy that lasts.  Only the last copy does. */
extern ZklConnectSettings zkl_launch_settings_keep(const ZklConnectSettings *settings);

extern bool zkl_launch_settings_equal(const ZklConnectSettings *a,
									  const ZklConnectSettings *b);

/* What a CONNECTED frame says of TLS */
extern void zkl_launch_get_tls(ZklWireReader *body, ZklTlsStatus *tls);

/*
 * Starts a process for the connection of this number, to the next host, which goes
 * to host[ZKL_MAX_HOST], as the requested session timeout goes to asked_ms.  False:
 * that failed, and the reason is noted.
 */
extern bool zkl_launch_begin(uint32 connection,
							 const ZklConnectSettings *settings, char *host,
							 int *asked_ms);

/*
 * Reads the files that the settings name, and writes START, which attaches this
 * server's session or begins a new one.  Returns NULL, or what is wrong.
 */
extern const char *zkl_launch_put_start(ZklWireBuffer *out, uint32 connection,
										const char *host,
										const ZklConnectSettings *settings,
										bool attach, int *asked_ms);

#endif							/* ZKL_WORKER_LAUNCH_H */
