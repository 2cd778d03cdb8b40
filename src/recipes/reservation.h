/*
 * reservation.h
 *	  Locks that belong to a token, not to a session.
 *
 * A reservation is an exclusive lock that its session releases as soon as it has it,
 * and that the server keeps for a time.  Any session of that server whose user made the
 * reservation, or is a superuser, renews or ends it.
 */
#ifndef ZKL_RECIPES_RESERVATION_H
#define ZKL_RECIPES_RESERVATION_H

#include "backend/acquire.h"

/*
 * Waits for the lock, and reserves it for at_least_ms of the request, of which "lock",
 * "is_try", "timeout_ms" and "at_least_ms" count.  *token is its fencing token.  False: a
 * try timed out.  Error 55006 if the session holds it, 53400 if the user has too many
 * reservations; if the user has reserved it already, 55P03 if "once", else it is held as by
 * others.
 */
extern bool zkl_reservation_make(ZklLockRequest *request, bool once, int64 *token);

/*
 * From now on the reservation lasts for so many ms; 0: it ends.  False, with a WARNING:
 * there is none with that token on this server, or its time is over, or it is lost.
 * Error 42501 if another user made it; 40001 if it is renewed, but the lease has passed.
 */
extern bool zkl_reservation_renew(const ZklTarget *lock, int64 token, int64 ms);

/*
 * For how many ms, at least one, nobody else surely has the lock.  Error 55000 if there
 * is no such reservation, 40001 if the lease has passed.  Waits for nothing.
 */
extern int64 zkl_reservation_assert(const ZklTarget *lock, int64 token);

#endif							/* ZKL_RECIPES_RESERVATION_H */
