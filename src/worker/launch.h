/*
 * launch.h
 *	  Starts a session process, and tells it to what to connect, as whom, and
 *	  whom to trust.  Worker only.
 */
#ifndef ZKL_WORKER_LAUNCH_H
#define ZKL_WORKER_LAUNCH_H

#include "shared/status.h"
#include "wire/wire.h"
#include "worker/connect_settings.h"

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
 * Writes START, which attaches this server's session or begins a new one.  Returns the
 * session timeout that it requests.
 */
extern int	zkl_launch_put_start(ZklWireBuffer *out, uint32 connection,
								 const char *host,
								 const ZklConnectSettings *settings,
								 bool attach);

#endif							/* ZKL_WORKER_LAUNCH_H */
