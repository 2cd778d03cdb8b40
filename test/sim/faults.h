/*
 * faults.h
 *	  All that can go wrong in a simulation by chance, for chaos.c to choose
 *	  from.
 */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include "host.h"

/*
 * X(name, weight in a seed that has it, one in how many seeds has it, weight in
 * a storm, weight in a seed of the profiles "quorum" and "slew").  0: it is as in others,
 * but more seldom.  A seed is what it is by their order.
 */
#define FAULTS(X) \
	X(reset, 8, 2, 4, 6) \
	X(freeze, 6, 2, 2, 8) \
	X(kill_session_process, 6, 3, 4, 2) \
	X(kill_worker, 4, 3, 14, 2) \
	X(kill_at_worst, 4, 4, 10, 4) \
	X(stop_worker, 5, 3, 3, 4) \
	X(stop_worker_amid, 4, 3, 10, 3) \
	X(stop_backend, 4, 3, 1, 1) \
	X(kill_backend, 4, 3, 4, 1) \
	X(crash_host, 2, 6, 1, 1) \
	X(lose_leader, 4, 3, 1, 10) \
	X(lose_quorum, 2, 6, 0, 6) \
	X(cut_follower, 4, 3, 1, 8) \
	X(stop_follower, 3, 4, 0, 6) \
	X(cut_rack, 5, 3, 0, 12) \
	X(pause_follower, 5, 3, 1, 10) \
	X(wipe, 1, 40, 0, 0) \
	X(accept_lower_tokens, 2, 10, 0, 0) \
	X(break_lock, 4, 6, 30, 2) \
	X(break_downgrade, 3, 8, 30, 0) \
	X(reap, 6, 3, 2, 1) \
	X(delete_own, 4, 3, 0, 0) \
	X(set_own, 3, 8, 3, 0) \
	X(delete_heartbeat, 3, 8, 0, 0) \
	X(set_heartbeat, 3, 8, 0, 0) \
	X(set_directory, 3, 6, 0, 0) \
	X(recreate_directory, 8, 4, 0, 0) \
	X(stranger, 6, 5, 1, 0) \
	X(kill_session, 2, 10, 0, 0) \
	X(jump, 3, 10, 0, 0) \
	X(refuse, 4, 4, 1, 3) \
	X(change_timeout, 2, 12, 0, 0) \
	X(uncache, 3, 6, 1, 1) \
	X(stop_leader, 4, 4, 1, 8) \
	X(reset_foreign, 5, 4, 6, 4) \
	X(freeze_foreign, 5, 4, 4, 4) \
	X(lose_writes, 3, 8, 0, 0) \
	X(set_cache_time, 4, 4, 1, 1) \
	X(switch_detection, 3, 3, 1, 0) \
	X(client_refuses, 4, 5, 1, 3) \
	X(lose_end, 8, 8, 0, 8) \
	X(switch_peers, 3, 4, 1, 1) \
	X(copy_name, 6, 8, 0, 0) \
	X(stop_host, 3, 4, 2, 2)

#define FAULT_FUNCTION(name, weight, one_in, storm, quorum) \
	 extern void do_##name(void);
FAULTS(FAULT_FUNCTION)
#undef FAULT_FUNCTION

extern Host *some_host(void);

/* A while: mostly short, seldom beyond the session's timeout */
extern Time a_while(void);

/* ---- vandals.c ---- */

extern void vandals_begin(void);

/* A transaction is in the log: somebody may act on it, then. */
extern void vandals_see(const Entry *entry);
extern Time vandals_due(void);
extern void vandals_step(void);

/* The nodes of strangers go. */
extern void vandals_calm(void);

/* Whether one has deleted the heartbeat node of a server, ever */
extern bool vandals_deleted_heartbeat(void);

/* ---- operators.c ---- */

extern void operators_begin(void);

/*
 * Somebody is about to give back an exclusive lock that he holds shared, too:
 * whether an operator has waited for that, and breaks it.
 */
extern bool operators_await_downgrade(int lock);

/* ZooKeeper has lost writes: what operators saw gone may be there still. */
extern void operators_look_again(void);

/*
 * The node of another client has been taken away.  That one knows of nothing:
 * what it believes, and makes, from now on does not count (docs/interop.md).
 */
extern void operators_note_broken(const ZklUuid *owner);
extern bool operators_broke(const ZklUuid *owner);

/* When one of them goes on with what he has begun, and that he does */
extern Time operators_due(void);
extern void operators_step(void);

#endif							/* SIM_FAULTS_H */
