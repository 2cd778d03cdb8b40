/*
 * faults.h
 *	  All that can go wrong in a simulation by chance, for chaos.c to choose
 *	  from.
 */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include "host.h"

/*
 * X(name, weight in a seed that has it, one in how many seeds has it).  A seed
 * is what it is by their order.
 */
#define FAULTS(X) \
	X(reset, 8, 2) \
	X(freeze, 6, 2) \
	X(kill_session_process, 6, 3) \
	X(kill_worker, 4, 3) \
	X(stop_worker, 5, 3) \
	X(stop_worker_amid, 4, 3) \
	X(stop_backend, 4, 3) \
	X(kill_backend, 4, 3) \
	X(crash_host, 2, 6) \
	X(lose_leader, 4, 3) \
	X(lose_quorum, 2, 6) \
	X(cut_follower, 4, 3) \
	X(stop_follower, 3, 4) \
	X(cut_rack, 5, 3) \
	X(pause_follower, 5, 3) \
	X(wipe, 1, 40) \
	X(accept_lower_tokens, 2, 10) \
	X(break_lock, 4, 6) \
	X(reap, 6, 3) \
	X(delete_own, 4, 8) \
	X(set_own, 3, 8) \
	X(delete_heartbeat, 3, 8) \
	X(set_heartbeat, 3, 8) \
	X(set_directory, 3, 6) \
	X(recreate_directory, 8, 4) \
	X(stranger, 6, 5) \
	X(kill_session, 2, 10) \
	X(jump, 3, 10) \
	X(reset_foreign, 5, 4) \
	X(freeze_foreign, 5, 4)

#define FAULT_FUNCTION(name, weight, one_in) extern void do_##name(void);
FAULTS(FAULT_FUNCTION)
#undef FAULT_FUNCTION

extern Host *some_host(void);

/* A while: mostly short, seldom beyond the session's timeout */
extern Time a_while(void);

/* ---- vandals.c ---- */

extern void vandals_begin(void);

/* When an operator goes on with what he has begun, and that he does */
extern Time vandals_due(void);
extern void vandals_step(void);

/* The nodes of strangers go. */
extern void vandals_calm(void);

#endif							/* SIM_FAULTS_H */
