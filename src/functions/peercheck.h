/*
 * peercheck.h
 *	  The check of zk_healthcheck() that is about messages between servers.
 */
#ifndef ZKL_FUNCTIONS_PEERCHECK_H
#define ZKL_FUNCTIONS_PEERCHECK_H

#include "backend/errand.h"
#include "nodes/pg_list.h"
#include "shared/status.h"

/* Adds a server to the list of those that are checked, and returns that. */
extern List *zkl_peercheck_note(List *peers, const ZklFleetServer *server);

/* Whether all is well, and the detail that says so or what is wrong. */
extern const char *zkl_peercheck_judge(const ZklStatus *status, List *peers, bool *ok);

#endif							/* ZKL_FUNCTIONS_PEERCHECK_H */
