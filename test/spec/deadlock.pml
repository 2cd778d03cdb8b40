/*
 * deadlock.pml
 *	  How zklock ends deadlocks across servers, so small that all of its schedules can
 *	  be looked at.
 *
 * S11: deadlocks end, and only deadlocks raise 40P01.  Each rule of src/deadlock/ has
 * a name, and -DNO_<name> takes it away:
 *
 *	  CHECK			the verdict is a transaction that checks what the search has read
 *	  CONTENDERS	it checks the contenders on the cycle as well as the publications
 *	  NEW_NAMES		the name of a publication is never used again
 *	  END			a wait that is given up takes its publication with it
 *
 * With -DNO_ORDER any wait on a cycle may end, not only the one that was published last.
 * Spin finds no violation of two sessions then: this rule only says which wait it is.
 * -DNO_AGAIN lets each wait be searched for once only.
 *
 * Each session, on a server of its own, takes one exclusive lock, then a second one,
 * and may give up this wait.  All of ZooKeeper's writes are in one order, and a search
 * reads one directory or publication at a time, so what it knows may be old.
 */
#ifndef SESSIONS
#define SESSIONS	2
#endif
#ifndef LOCKS
#define LOCKS		SESSIONS
#endif
#ifndef BREAKS
#define BREAKS		1			/* locks that an operator breaks */
#endif
#ifndef GIVE_UPS
#define GIVE_UPS	1			/* waits that end by a timeout, in all */
#endif

mtype = { BEGIN, FIRST, HOLDS, WAITS, HAS, FAILED, GONE, DONE };
#define NOBODY		SESSIONS
#define at(s, l)	((s) * LOCKS + (l))

/* ZooKeeper: a contender is its number, which is its id as well; 0: there is none. */
byte contender[SESSIONS * LOCKS];
byte next = 1;

/* The publication of a session's wait: its name (0: none), the contender that is held,
 * the lock that is waited for, and its place among all. */
byte pub[SESSIONS], pub_holds[SESSIONS], pub_lock[SESSIONS], pub_order[SESSIONS];

/* Sessions, with their servers */
mtype state[SESSIONS] = BEGIN;
byte held[SESSIONS], wanted[SESSIONS];	/* locks */
byte give_ups, breaks;

/* A search: whom it has found to wait for whom, from its own wait on */
bit changed[SESSIONS];			/* something has been written since it began */
bit searching[SESSIONS];
bit closed[SESSIONS];			/* the way leads back to what the session holds */
byte length[SESSIONS];
byte step_id[SESSIONS * SESSIONS];	/* contenders ahead */
byte step_pub[SESSIONS * SESSIONS];	/* publications of their holders' waits */
byte look_lock[SESSIONS];		/* where it reads next */
byte look_id[SESSIONS];			/* and behind whom it stands there */

/* Scratch, no part of the state; searches in breadth know nothing hidden. */
#ifdef BREADTH
#define hidden
#define clean		k = 0; j = 0; n = 0; best = 0; w = 0; steps = 0; good = 0
#else
#define clean		skip
#endif
hidden byte k, j, n, best, w, steps;
hidden byte good;

inline written()
{
#ifndef NO_AGAIN
	for (k : 0 .. SESSIONS - 1) { changed[k] = true }
#endif
	skip
}

/* best: the session whose contender in lock l is the nearest ahead of id */
inline nearest(lock, id)
{
	best = NOBODY;
	for (j : 0 .. SESSIONS - 1) {
		if
		:: contender[at(j, lock)] != 0 && contender[at(j, lock)] < id &&
		   (best == NOBODY || contender[at(j, lock)] > contender[at(best, lock)]) -> best = j
		:: else fi
	}
}

/* good: whether a cycle of waits leads from session s back to it, at this moment */
inline is_deadlocked(s)
{
	good = false; w = s;
	for (steps : 1 .. SESSIONS) {
		if
		:: w != NOBODY && !good && (state[w] == WAITS || state[w] == FIRST) ->
			n = (state[w] == FIRST -> held[w] : wanted[w]); nearest(n, contender[at(w, n)]);
			good = (best == s && n == held[s]); w = best
		:: else -> w = (good -> w : NOBODY)
		fi
	}
}

inline end_search(s)
{
	searching[s] = false; closed[s] = false; look_lock[s] = 0; look_id[s] = 0;
	for (k : 0 .. SESSIONS - 1) {
		step_id[s * SESSIONS + k] = 0; step_pub[s * SESSIONS + k] = 0
	}
	length[s] = 0
}

inline unpublish(s)
{
	pub[s] = 0; pub_holds[s] = 0; pub_lock[s] = 0; pub_order[s] = 0
}

#ifdef NO_ORDER
#define is_later(w, s)	false
#else
#define is_later(w, s)	(pub_order[w] > pub_order[s])
#endif

/* One read: who is nearest ahead, and what does that one wait for? */
inline look(s)
{
	nearest(look_lock[s], look_id[s]);
	if
	:: best == NOBODY || length[s] == SESSIONS -> end_search(s)
	:: else ->
		look_id[s] = contender[at(best, look_lock[s])];
		step_id[s * SESSIONS + length[s]] = look_id[s]; nearest(look_lock[s], look_id[s]);
		w = NOBODY;
		for (k : 0 .. SESSIONS - 1) {
			w = (pub[k] != 0 && pub_holds[k] == look_id[s] -> k : w)
		}
		if
		:: best != NOBODY -> length[s]++	/* it waits in the same queue */
		:: best == NOBODY && (w == NOBODY || is_later(w, s)) -> end_search(s)
		:: else ->
			step_pub[s * SESSIONS + length[s]] = pub[w]; length[s]++; closed[s] = (w == s);
			look_lock[s] = pub_lock[w]; look_id[s] = contender[at(w, pub_lock[w])]
		fi
	fi
}

/* good: whether all that the search has read is still there */
inline check(s)
{
	good = true;
	for (k : 0 .. SESSIONS - 1) {
		if
		:: k < length[s] ->
			best = NOBODY; w = (step_pub[s * SESSIONS + k] == 0 -> s : NOBODY);
			for (j : 0 .. SESSIONS - 1) {
				w = (pub[j] != 0 && pub[j] == step_pub[s * SESSIONS + k] -> j : w);
				for (n : 0 .. LOCKS - 1) {
					best = (contender[at(j, n)] == step_id[s * SESSIONS + k] -> j : best)
				}
			}
#ifdef NO_CHECK
			good = good && (k < length[s] - 1 || w != NOBODY)
#elif defined(NO_CONTENDERS)
			good = good && w != NOBODY
#else
			good = good && w != NOBODY && best != NOBODY
#endif
		:: else fi
	}
}

inline request(s, l, then)
{
	d_step {
		printf("session %d requests lock %d\n", s, l);
		contender[at(s, l)] = next; next++; written(); state[s] = then; clean }
}

#define behind(a, s, l)	(contender[at(a, l)] != 0 && contender[at(a, l)] < contender[at(s, l)])
#if SESSIONS == 2
#define first(s, l)	(!behind(0, s, l) && !behind(1, s, l))
#else
#define first(s, l)	(!behind(0, s, l) && !behind(1, s, l) && !behind(2, s, l))
#endif

active [SESSIONS] proctype Session()
{
	byte me = _pid;
	byte lock;

	do
	/* ---- locks ---- */
	:: atomic { state[me] == BEGIN ->
		select(lock : 0 .. LOCKS - 1); held[me] = lock; lock = 0;
		request(me, held[me], FIRST) }
	:: d_step { state[me] == FIRST && first(me, held[me]) ->
		printf("session %d has lock %d\n", me, held[me]);
		state[me] = HOLDS; clean }
	:: atomic { state[me] == HOLDS ->
		select(lock : 0 .. LOCKS - 1); wanted[me] = lock; lock = 0;
		if
		:: wanted[me] != held[me] -> request(me, wanted[me], WAITS)
		:: else -> state[me] = FAILED	/* wants no more */
		fi }
	:: d_step { state[me] == WAITS && first(me, wanted[me]) ->
		printf("session %d has lock %d as well\n", me, wanted[me]);
		end_search(me); state[me] = HAS; clean }
	:: d_step { state[me] == WAITS && give_ups < GIVE_UPS ->
		printf("session %d gives up, and keeps lock %d\n", me, held[me]);
		give_ups++; contender[at(me, wanted[me])] = 0; end_search(me);
#ifndef NO_END
		unpublish(me);
#endif
		written(); state[me] = HOLDS; clean }
	/* The publication of a wait that has ended by a grant goes at any time. */
	:: d_step { (state[me] == HAS || state[me] == GONE) && pub[me] != 0 ->
		unpublish(me); written(); clean }
	:: d_step { state[me] == WAITS && breaks < BREAKS ->
		printf("an operator breaks lock %d of session %d\n", held[me], me);
		breaks++; contender[at(me, held[me])] = 0; written(); clean }
	/* The server hears of that at some time. */
	:: d_step { state[me] == WAITS && contender[at(me, held[me])] == 0 ->
		printf("session %d has lost its lock\n", me);
		end_search(me); unpublish(me); state[me] = FAILED; clean }
	:: d_step { state[me] == HAS || state[me] == FAILED ->
		printf("session %d releases its locks\n", me);
		contender[at(me, held[me])] = 0; contender[at(me, wanted[me])] = 0; held[me] = 0;
		wanted[me] = 0; written(); state[me] = GONE; clean }
	:: d_step { state[me] == GONE && pub[me] == 0 ->
		state[me] = DONE; clean }
	:: state[me] == DONE -> break

	/* ---- the search ---- */
	:: d_step { state[me] == WAITS && pub[me] == 0 && contender[at(me, held[me])] != 0 ->
		printf("session %d publishes that it holds lock %d and waits for lock %d\n", me,
			   held[me], wanted[me]);
#ifdef NO_NEW_NAMES
		pub[me] = contender[at(me, held[me])];
#else
		pub[me] = next;
#endif
		pub_order[me] = next; next++; pub_holds[me] = contender[at(me, held[me])];
		pub_lock[me] = wanted[me]; changed[me] = true; written(); clean }
	:: d_step { state[me] == WAITS && pub[me] != 0 && !searching[me] && changed[me] ->
		printf("session %d begins a search\n", me);
		changed[me] = false; searching[me] = true; look_lock[me] = wanted[me];
		look_id[me] = contender[at(me, wanted[me])]; clean }
	:: d_step { searching[me] && !closed[me] ->
		printf("session %d reads the queue of lock %d\n", me, look_lock[me]);
		look(me); clean }
	:: d_step { searching[me] && closed[me] ->
		check(me);
		if
		:: good ->
			is_deadlocked(me);
			printf("session %d: deadlock detected (40P01)\n", me);
			assert(good);			/* S11 */
			unpublish(me); contender[at(me, wanted[me])] = 0; written(); state[me] = FAILED
		:: else -> printf("session %d: the cycle is there no more\n", me)
		fi;
		end_search(me); clean }
	od
}
