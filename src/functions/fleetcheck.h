/*
 * fleetcheck.h
 *	  The checks of zk_healthcheck() that are about the servers of the fleet.
 */
#ifndef ZKL_FUNCTIONS_FLEETCHECK_H
#define ZKL_FUNCTIONS_FLEETCHECK_H

#include "backend/errand.h"
#include "fmgr.h"
#include "nodes/pg_list.h"
#include "shared/status.h"

/* ---- peercheck ---- */

/* The check of zk_healthcheck() that is about messages between servers. */

/* Whether all is well, and the detail that says so or what is wrong. */
extern const char *zkl_peercheck_judge(const ZklStatus *status, List *peers, bool *ok);

/* ---- accesscheck ---- */

/* The check of zk_healthcheck() that is about access control lists. */

typedef struct ZklAccessCheck ZklAccessCheck;

/* ---- fleetcheck ---- */

/*
 * The checks of zk_healthcheck() that need ZooKeeper: the fleet, and its leader's
 * clock.
 */

/* The check that tells that ZooKeeper does not answer */
#define ZKL_FLEETCHECK_CONNECTED	"connected"

typedef struct ZklFleetCheck ZklFleetCheck;

/* Waits for "zklock.answer_timeout" at most; without a connection, not at all. */
extern ZklFleetCheck *zkl_fleetcheck_read(const ZklStatus *status);

/*
 * NULL if ZooKeeper has answered; else how it did not, or an empty string if there was
 * no connection to ask on
 */
extern const char *zkl_fleetcheck_silence(const ZklFleetCheck *fleet);

/* The servers; see peercheck */
extern List *zkl_fleetcheck_peers(const ZklFleetCheck *fleet);

extern void zkl_fleetcheck_put(FunctionCallInfo fcinfo, const ZklFleetCheck *fleet,
							   const ZklStatus *status);

#endif							/* ZKL_FUNCTIONS_FLEETCHECK_H */
