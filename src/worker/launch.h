/*
 * launch.h
 *	  Starts a session process, and tells it what to connect to.  Worker only.
 */
#ifndef ZKL_WORKER_LAUNCH_H
#define ZKL_WORKER_LAUNCH_H

#include "wire/wire.h"
#include "worker/connect_settings.h"

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
