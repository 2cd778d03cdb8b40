/*
 * when.h
 *	  The conditions of the rules; rules.c says in words what each means.
 */
#ifndef SPEC_WHEN_H
#define SPEC_WHEN_H

#include "spec.h"

#define CONDITIONS(X) \
	X(free) X(waits) X(granted) X(timed_out) X(together) X(ready) X(in_lease) X(down) \
	X(same_session) X(bound) X(seen) X(unmarked) X(undoubted) X(no_loss) X(has_node) X(leans) \
	X(stands) X(covered) X(number_good) X(place_good) X(all_known) X(not_tainted) \
	X(no_other_ahead) X(no_own_ahead) X(permits_left) X(token_good) X(token_grows) X(recent) \
	X(in_the_way) X(behind_cached) X(refused) X(no_number) \
	X(one_beat) X(version) X(beat_first) X(new_beat) X(checked) X(to_make) X(announced) X(unmade) \
	X(over) X(unclaimed) X(own_version) X(no_own_node) X(not_kazoos) X(proved_read) X(own_id) X(before_gone) X(same_number) \
	X(generation) X(goes) X(told_once) X(reason) X(released) X(node_gone) X(unheld) X(word) X(was_asked) \
	X(peers) X(others_znode) X(question) X(may_be_cached) X(alone) X(token_room) X(not_offered) \
	X(writes_lost) X(new_name) X(checks) X(deadlock)
#define DECLARE_WHEN(name) extern bool when_##name(Server *s, const Line *line);
CONDITIONS(DECLARE_WHEN)

#endif							/* SPEC_WHEN_H */
