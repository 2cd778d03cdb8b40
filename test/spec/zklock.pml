/*
 * zklock.pml
 *	  What zklock does, so small that all of its schedules can be looked at.
 *
 * Read it beside src/ARGUMENT.md: each place that a lemma needs has the lemma's
 * number, and -DNO_LEMMA_n takes the rule away.  Then Spin must find a violation;
 * with all rules, none.  run.sh does both, and has the table of what it looks at.
 * no_lemma_*.txt are the violations: why each rule is there.
 *
 * Left to the simulation: the margins of lemma 3 (T/500, 7T/24: a ping is answered as soon
 * as the member has heard of the session) and shortened timeouts; numbers near 2^31,
 * number 0 and continuity, and taint (lemma 1: here a server always lists); lost writes
 * (lemma 2); shared locks, semaphores, at_most, at_least; workers that end; a grant ahead of
 * the watch on its znode.
 *
 * One lock, always exclusive.  Servers have backends; backend b has the slot b, and
 * the request in slot b has one znode.  Time is counted in whole units; T is the
 * session timeout.  All times are relative, so runs may be of any length.
 */
/* The defaults are the smallest instance. */
#ifndef SERVERS
#define SERVERS		2
#endif
#ifndef BACKENDS
#define BACKENDS	1			/* of each server */
#endif
#ifndef TURNS
#define TURNS		1			/* times that each backend takes the lock */
#endif
#ifndef RENEWALS
#define RENEWALS	0			/* sessions that are made because one has ended */
#endif
#ifndef SLOW
#define SLOW		1			/* server 0 alone; the others send a beat in each unit, and have its answer */
#endif
#ifndef BREAKS
#define BREAKS		0			/* of connections, without a reason */
#endif
#ifndef ELECTIONS
#define ELECTIONS	1
#endif
#ifndef OPERATORS
#define OPERATORS	0			/* calls of zk_break_lock() */
#endif
#ifndef KILLS
#define KILLS		0			/* backends that are killed, and planned stops */
#endif
#ifndef CACHES
#define CACHES		0			/* whether servers cache locks */
#endif
#ifndef LAG
#define LAG			1			/* writes that a member may not know yet */
#endif
#define REQUESTS	(SERVERS * BACKENDS)
#define T			6
#define MOST		7			/* numbers of znodes */
#define server(r)	((r) / BACKENDS)
#define bit(n)		(1 << (n))	/* bit 0 stands for no znode */
#define ALL			255

/* Scratch, no part of the state; searches in breadth know nothing hidden. */
#ifdef BREADTH
#define hidden
#define clean		k = 0; m = 0; r_ = 0; op_ = 0; of_ = 0; n_ = 0; mine_ = 0
#else
#define clean		skip
#endif
hidden byte k, m, r_;
hidden mtype op_;
hidden byte of_, n_, mine_;

mtype = { DOWN, PROVING, READY };	/* connections */
mtype = { FREE, WAITING, GRANTED, LOST, RELEASED, CACHED };	/* slots */
mtype = { NONE, NEW, EXISTS, DELETE, UNSETTLED };	/* znodes, as their server knows them */
mtype = { IDLE, WAITS, HOLDS, COMMITS };	/* backends; COMMITS: behind the check */
mtype = { BEAT, OPEN, CREATE, REMOVE, MARK, CLOSE };	/* writes */

/* ---- ZooKeeper: its leader, and a member for each server ---- */

byte znode[REQUESTS];			/* its number; 0: there is none */
byte next = 1;					/* the next number */
bit alive[SERVERS];				/* the session of this server */
byte session_left[SERVERS];		/* until the leader may end it */
bit tells[SERVERS];				/* a ping's answer on the wire to the leader, ahead of the next batch */
byte tree[SERVERS * REQUESTS];	/* what each member knows: a prefix, */
bit tree_marked[SERVERS * REQUESTS];
chan way[SERVERS] = [LAG] of { mtype, byte, byte, bit };	/* and what follows */
byte elections, breaks, renewals, calls, kills;	/* what has happened so far */

/* ---- servers ---- */

mtype connection[SERVERS] = DOWN;
byte generation[SERVERS];		/* of the session; with lease_left, one word */
byte lease_left[SERVERS];
bit on_wire[SERVERS], applied[SERVERS];	/* the batch under way: before, or behind the leader */
mtype batch[SERVERS];			/* what it does beside its beat, */
byte batch_of[SERVERS];			/* for which request */
byte batch_age[SERVERS];		/* since it was sent */
byte contact[SERVERS];			/* age of the latest contact */
mtype late[SERVERS];			/* a batch of an earlier connection that is still under way */
byte late_of[SERVERS];

/* ---- requests, slots and backends ---- */

mtype slot[REQUESTS] = FREE;
mtype node[REQUESTS] = NONE;
byte number[REQUESTS];			/* of the latest znode */
byte ahead[REQUESTS] = ALL;			/* bits: numbers ahead, as read; ALL: not read yet */
bit watched[REQUESTS];			/* seen on this connection, and the watch is armed */
byte granted_in[REQUESTS];		/* generation of the grant; 0: none yet */
byte takes[REQUESTS];			/* since the znode was made: part of the token */
bit offered[REQUESTS];			/* a release makes it CACHED */
byte promise[REQUESTS];			/* time until which the holder was told that it has it */
byte said;						/* bits: numbers of znodes that have departed */
byte said_of;					/* the same by request: only a broken rule looks */
mtype backend[REQUESTS] = IDLE;
byte uses[REQUESTS];			/* the slot whose lock a backend has */
byte turns[REQUESTS] = TURNS;

bit broken[REQUESTS];			/* an operator has deleted its znode */
byte break_of, break_number, break_left;	/* the operator's znode, and how long it waits */

byte last_number, last_token;	/* of grants so far */
byte fence, written;			/* highest token that the resource has seen; its true order */

/* ---- the claims ---- */

#define of_server(r, s)	((r) / BACKENDS == (s))
#define valid(r)	(generation[server(r)] == granted_in[r] && lease_left[server(r)] > 0)
/* A session has the lock.  Behind its commit check that is so until the lease ends, or an
 * operator takes the lock away: this is the gap (lemma 8). */
#define acts(b)		(valid(uses[b]) && ((backend[b] == HOLDS && slot[uses[b]] == GRANTED) || \
					 (backend[b] == COMMITS && !broken[uses[b]])))
#if BACKENDS == 1
#define wanted(s)	(slot[(s)] != FREE)
#else
#define wanted(s)	(slot[BACKENDS * (s)] != FREE || slot[BACKENDS * (s) + 1] != FREE)
#endif
#define relies(r)	(slot[r] == WAITING || slot[r] == GRANTED || slot[r] == CACHED || slot[r] == LOST)
#define relied_on(s)	(relies(BACKENDS * (s)) || relies(BACKENDS * (s) + BACKENDS - 1))
#define at_rest(s)	(connection[s] == READY && !on_wire[s] && !applied[s] && len(way[s]) == 0)
#if REQUESTS == 2
#define holders		(acts(0) + acts(1))
#elif REQUESTS == 3
#define holders		(acts(0) + acts(1) + acts(2))
#else
#define holders		(acts(0) + acts(1) + acts(2) + acts(3))
#endif
#define S1			(holders <= 1)
#define S5(r)		(!at_rest(server(r)) || node[r] != NONE || znode[r] == 0)
#define S7(b)		(!acts(b) || alive[server(b)])
#define order(r)	(4 * number[r] + takes[r])
#ifdef NO_LEMMA_8
#define token(r)	1
#else
#define token(r)	order(r)
#endif
#ifdef ONLY				/* one claim alone, so that a counterexample tells its whole story */
#define claimed(c)	(ONLY == c)
#else
#define claimed(c)	true
#endif

#define claims(r)	((S1 || !claimed(1)) && (S5(r) || !claimed(5)) && (S7(r) || !claimed(7)))
proctype Claims(byte r)
{
end:
	atomic { !claims(r) ->
		assert(S1 || !claimed(1)); assert(S5(r) || !claimed(5));
		assert(S7(r) || !claimed(7)) }
}

/* S1 and S3, when a session takes a grant, or passes its commit check */
inline claim_holds(b)
{
	for (k : 0 .. REQUESTS - 1) { assert(!claimed(1) || k == b || !acts(k)) };
	skip
}

/* S2, S6 and S12, at each grant and take */
inline claim_grant(r, is_take)
{
	assert(!claimed(6) || is_take || number[r] > last_number); last_number = number[r];
	assert(!claimed(2) || token(r) > last_token); last_token = token(r);
	for (k : 0 .. REQUESTS - 1) { assert(!claimed(12) || k == r || promise[k] == 0) };
	skip
}

/* ---- ZooKeeper ---- */

/* All members hear of all writes in one order; "answers": server who hears of its own. */
#define NOBODY		SERVERS
#define room		(len(way[0]) < LAG && len(way[1]) < LAG && len(way[SERVERS - 1]) < LAG)
inline write_znodes(op, r, n, answers)
{
	for (m : 0 .. SERVERS - 1) { way[m]!op, r, n, (m == answers) }
}

/* The leader takes what server s has sent: a beat, and what goes with it. */
inline apply(s, op, r, answers)
{
	if
	:: op == CREATE ->
		znode[r] = next; number[r] = next; takes[r] = 0; next++;
		write_znodes(CREATE, r, znode[r], answers)
	:: op == REMOVE && znode[r] != 0 ->
		write_znodes(REMOVE, r, znode[r], answers); znode[r] = 0
	:: op == REMOVE && znode[r] == 0 && answers != NOBODY ->
		way[s]!REMOVE, r, 0, true
	:: else fi
}

inline forget(s, r)
{
	tree[s * REQUESTS + r] = 0; tree_marked[s * REQUESTS + r] = false
}

inline end_session(s)
{
	for (k : 0 .. REQUESTS - 1) { if :: server(k) == s -> znode[k] = 0 :: else fi }
	write_znodes(CLOSE, s, 0, NOBODY); alive[s] = false; session_left[s] = 0; late[s] = 0;
	tells[s] = false
}

/* ---- a server's connection ---- */

/* Its answers are lost.  What it sent may still be applied. */
inline disconnect(s)
{
	if
	:: on_wire[s] && batch[s] != OPEN && batch[s] != BEAT && alive[s] ->
		late[s] = batch[s]; late_of[s] = batch_of[s]
	:: else fi;
	for (k : 0 .. REQUESTS - 1) {
		if
		:: server(k) == s ->
			watched[k] = false;
			if :: node[k] == NEW -> node[k] = UNSETTLED :: else fi
		:: else fi
	}
	for (k : 1 .. len(way[s])) {	/* no answers any more */
		way[s]?op_, of_, n_, mine_; way[s]!op_, of_, n_, false
	}
	on_wire[s] = false; applied[s] = false; no_batch(s); contact[s] = 0; tells[s] = false;
	connection[s] = DOWN
}

inline no_batch(s)
{
	batch[s] = 0; batch_of[s] = 0; batch_age[s] = 0
}

/* Lemma 3: min(c + T, s + 2T/3).  As long as a batch is under way, there is no later contact. */
#define least(a, b)	((a) < (b) -> (a) : (b))
#define left(age, of)	((age) < (of) -> (of) - (age) : 0)
#ifdef NO_LEMMA_3
#define lease_of(s)	left(batch_age[s], 4)
#else
#define lease_of(s)	least(left(contact[s], T), left(batch_age[s], 4))
#endif

inline send(s, op, r)
{
	batch[s] = op; batch_of[s] = r; on_wire[s] = true; batch_age[s] = 0
}

#define may_send(s)	(connection[s] == READY && alive[s] && !on_wire[s] && !applied[s])

/* A hold whose znode was not seen on this connection: no batch extends the lease. */
#define unseen(r, s)	(server(r) == s && (slot[r] == GRANTED || slot[r] == CACHED) && \
						 granted_in[r] == generation[s] && !watched[r])

inline no_number(r)
{
	said = said & ~bit(number[r]); number[r] = 0
}

#define unseen_holds(s)	(unseen(0, s) || unseen(1, s) || unseen(REQUESTS - 1, s) || \
						 unseen(REQUESTS - 2, s))

inline answer(s, op, r)
{
	printf("server %d: its %e is answered\n", s, op);
	if
	:: !unseen_holds(s) && lease_of(s) > lease_left[s] -> lease_left[s] = lease_of(s)
	:: else fi;
	contact[s] = batch_age[s]; applied[s] = false; no_batch(s);
	if
	:: op == OPEN -> connection[s] = READY
	:: op == CREATE -> node[r] = EXISTS
	:: op == REMOVE -> node[r] = NONE; no_number(r)
	:: else fi
}

/* A watch tells of our own znode: it is gone, or marked (lemma 4). */
inline event(s, op, r)
{
	if
	:: server(r) == s && (op == REMOVE || op == MARK) && watched[r] -> lose(r, op == MARK)
	:: else fi
}

inline lose(r, is_mark)
{
#ifdef NO_LEMMA_4
	if
	:: is_mark -> skip
	:: else ->
#endif
	printf("server %d: the znode of request %d is gone or marked\n", server(r), r);
	if
	:: slot[r] == WAITING || slot[r] == GRANTED -> slot[r] = LOST
	:: slot[r] == CACHED -> slot[r] = RELEASED
	:: else fi;
	offered[r] = false; watched[r] = false
#ifdef NO_LEMMA_4
	fi
#endif
}

inline read(s, r)
{
	if
	:: node[r] == UNSETTLED -> node[r] = (tree[s * REQUESTS + r] != 0 -> EXISTS : NONE)
	:: else fi;
	if
	:: node[r] == EXISTS && (tree[s * REQUESTS + r] == 0 || tree_marked[s * REQUESTS + r]) ->
		lose(r, tree[s * REQUESTS + r] != 0)
	:: node[r] == EXISTS && tree[s * REQUESTS + r] != 0 && !tree_marked[s * REQUESTS + r] ->
		watched[r] = true
	:: else fi;
#ifdef NO_LEMMA_1
	if
	:: node[r] != NONE && slot[r] == WAITING && ahead[r] == ALL ->
#else
	if
	:: node[r] == EXISTS && slot[r] == WAITING ->
#endif
		ahead[r] = 0;
		for (k : 0 .. REQUESTS - 1) {
			n_ = tree[s * REQUESTS + k];
			if
			:: k != r && n_ != 0 && (n_ < number[r] || number[r] == 0) ->
				ahead[r] = ahead[r] | bit(n_)
			:: else fi
		}
	:: else fi
}

/* The member knows one more write, and tells its server. */
inline go_on(s)
{
	way[s]?op_, of_, n_, mine_;
	if
	:: op_ == CREATE -> tree[s * REQUESTS + of_] = n_
	:: op_ == REMOVE -> forget(s, of_)
	:: op_ == MARK -> tree_marked[s * REQUESTS + of_] = true
	:: op_ == CLOSE ->
		for (k : 0 .. REQUESTS - 1) {
			if :: server(k) == of_ -> forget(s, k) :: else fi
		};
		skip
	:: else fi;
	if
	:: mine_ -> answer(s, op_, of_)
	:: else -> event(s, op_, of_)
	fi
}

#define may_renew(s)	(generation[s] == 0 || renewals < RENEWALS + kills)
proctype Connection(byte my)
{
	do
	/* The leader decides that the session goes on: that is a contact, too. */
	:: d_step { connection[my] == DOWN && alive[my] && wanted(my) ->
		printf("server %d connects\n", my);
		session_left[my] = T; connection[my] = PROVING; contact[my] = 0;
		send(my, OPEN, 0); clean }
	/* The session is over: all that was held is lost (lemma 2). */
	:: d_step { connection[my] == DOWN && !alive[my] && wanted(my) &&
				may_renew(my) ->
		printf("server %d connects with a new session\n", my);
		renewals = (generation[my] > 0 -> renewals + 1 : renewals); generation[my]++;
		lease_left[my] = 0;
		for (k : 0 .. REQUESTS - 1) {
			if
			:: server(k) == my ->
				node[k] = NONE; no_number(k); ahead[k] = ALL
			:: else fi
		}
		alive[my] = true; session_left[my] = T; connection[my] = PROVING; contact[my] = 0;
		send(my, OPEN, 0); clean }
	:: d_step { connection[my] != DOWN && wanted(my) && (breaks < BREAKS || !alive[my]) ->
		printf("server %d: its connection breaks\n", my);
		breaks = (alive[my] -> breaks + 1 : breaks); disconnect(my); clean }
	:: d_step { may_send(my) && wanted(my) && my < SLOW && contact[my] > 0 ->
		printf("server %d sends a beat\n", my);
		send(my, BEAT, 0); clean }
	/* A listing, and a look at our own znodes, behind the first beat (lemma 1) */
#ifdef NO_LEMMA_1_PROVED
	:: d_step { connection[my] != DOWN && alive[my] ->
#else
	:: d_step { connection[my] == READY && alive[my] ->
#endif
		printf("server %d reads\n", my);
		for (r_ : 0 .. REQUESTS - 1) {
			if :: server(r_) == my -> read(my, r_) :: else fi
		};
		skip }
	od; clean }

/* ---- ZooKeeper's processes ---- */

proctype ZooKeeper(byte my)
{
	do
	/* Behind a batch, the member answers a ping.  The leader has that at once, or else
	 * before the next batch, as the wire keeps its order. */
	:: atomic { on_wire[my] && alive[my] && room ->
		d_step {
		if :: tells[my] -> session_left[my] = T :: else fi;
		tells[my] = true; on_wire[my] = false;
		printf("leader applies %e of server %d (request %d)\n", batch[my], my, batch_of[my]);
		if
#ifndef NO_LEMMA_1_CHAIN
		:: batch[my] == OPEN -> late[my] = 0	/* lemma 1: a new chain */
#endif
		:: else fi;
		if
		:: batch[my] == OPEN || batch[my] == BEAT ->
			do
			:: len(way[my]) > 0 -> go_on(my)
			:: else -> break
			od;
			op_ = batch[my]; answer(my, op_, 0)
		:: else ->
			applied[my] = true; apply(my, batch[my], batch_of[my], my)
		fi; clean };
		if
		:: session_left[my] = T; tells[my] = false
		:: my < SLOW
		fi }
	/* So does a batch whose connection is gone; a session's end refuses it. */
	:: d_step { late[my] != 0 && alive[my] && room ->
		printf("leader applies a late %e of server %d (request %d)\n", late[my], my, late_of[my]);
		apply(my, late[my], late_of[my], NOBODY); late[my] = 0; clean }
	/* The session's time is over: it may end, and its znodes with it. */
	:: d_step { alive[my] && session_left[my] == 0 && room && wanted(my) ->
		printf("leader ends the session of server %d\n", my);
		end_session(my); clean }
	/* The member goes on by one write, and tells its server. */
	:: d_step { len(way[my]) > 0 -> go_on(my); clean }
	od
}

/* An election ends all connections, and gives each session its whole time again. */
active proctype Elections()
{
	do
	:: d_step { elections < ELECTIONS ->
		elections++;
		printf("an election\n");
		for (m : 0 .. SERVERS - 1) {
			disconnect(m); session_left[m] = (alive[m] -> T : 0)
		}; clean }
	od
}

/* A server that is not slow has its beats answered in each unit. */
#define in_time(s)	((s) < SLOW || !wanted(s) || (!alive[s] && !may_renew(s)) || (connection[s] == READY && \
					 len(way[s]) == 0 && !unseen_holds(s)))
inline healthy(s)
{
	session_left[s] = T; lease_left[s] = 4; contact[s] = 0; batch_age[s] = 0
}

#define down(left)	left = (left > 0 -> left - 1 : 0)
#define up(age)		age = (age < T -> age + 1 : T)

/* One unit passes.  The assumption of S1: each member answers a ping in each unit. */
active proctype Time()
{
	do
	:: d_step { in_time(0) && in_time(1) && in_time(SERVERS - 1) ->
		printf("---- time passes ----\n");
		for (k : 0 .. SERVERS - 1) {
			down(session_left[k]);
			lease_left[k] = (relied_on(k) && lease_left[k] > 0 -> lease_left[k] - 1 : 0);
			if :: on_wire[k] || applied[k] -> up(batch_age[k]) :: else fi;
			if :: connection[k] != DOWN -> up(contact[k]) :: else fi;
			if :: k >= SLOW && connection[k] == READY -> healthy(k) :: else fi
		}
		for (k : 0 .. REQUESTS - 1) { down(promise[k]) }
		down(break_left); clean }
	od
}

/* ---- the server and one of its slots ---- */

/* Lemma 2: a lost hold is not over before its backend says so, which may commit.
 * Lemma 9: nor is one whose time was told.  Lemma 6: nor is one that can be taken. */
#ifdef NO_LEMMA_9
#define over(r)		(slot[r] == RELEASED)
#elif defined(NO_LEMMA_2)
#define over(r)		((slot[r] == RELEASED || slot[r] == LOST) && promise[r] == 0)
#elif defined(NO_LEMMA_6)
#define over(r)		((slot[r] == RELEASED || slot[r] == CACHED) && promise[r] == 0)
#else
#define over(r)		(slot[r] == RELEASED && promise[r] == 0)
#endif
#ifdef NO_LEMMA_7				/* a word takes away whatever its slot has there by then */
#define word(k)		((said_of & bit(k)) != 0 && number[k] != 0 -> bit(number[k]) : 0)
#define departed	(word(0) | word(1) | word(REQUESTS - 2) | word(REQUESTS - 1))
#else
#define departed	said
#endif

/* Whoever wants nothing any more is of no interest. */
#define wants_more(s)	(turns[BACKENDS * (s)] > 0 || turns[BACKENDS * (s) + BACKENDS - 1] > 0)
inline retire(s)
{
	disconnect(s); alive[s] = false; session_left[s] = 0; lease_left[s] = 0; late[s] = 0
}

proctype Slot(byte mine)
{
	byte my = server(mine);

	do
	:: d_step { slot[mine] == WAITING && node[mine] == NONE && may_send(my) && next <= MOST ->
		printf("server %d sends a create for request %d\n", my, mine);
		node[mine] = NEW; ahead[mine] = ALL; send(my, CREATE, mine); clean }
	/* Lemma 1: nothing conflicts ahead, but what has departed (lemma 7) */
	:: d_step { slot[mine] == WAITING && node[mine] == EXISTS && watched[mine] && ahead[mine] != ALL &&
				(ahead[mine] & ~departed) == 0 && connection[my] == READY && lease_left[my] > 0 ->
		printf("server %d grants request %d (number %d)\n", my, mine, number[mine]);
		slot[mine] = GRANTED; granted_in[mine] = generation[my]; ahead[mine] = ALL;
		claim_grant(mine, false); clean }
	/* Lemma 5: a loss may be carried out late; the generation has told of it. */
	:: d_step { slot[mine] == GRANTED && granted_in[mine] != generation[my] ->
		printf("server %d: request %d is lost\n", my, mine);
		slot[mine] = LOST; offered[mine] = false; clean }
	:: d_step { slot[mine] == CACHED && granted_in[mine] != generation[my] ->
		slot[mine] = RELEASED; offered[mine] = false; clean }
	/* Lemma 6: a recall is one step.  Until then the lock can be taken. */
	:: d_step { offered[mine] ->
		printf("server %d recalls request %d\n", my, mine);
		offered[mine] = false;
		slot[mine] = (slot[mine] == CACHED -> RELEASED : slot[mine]); clean }
	:: d_step { CACHES && slot[mine] == GRANTED && granted_in[mine] == generation[my] && !offered[mine] &&
				watched[mine] && takes[mine] < 3 ->
		printf("server %d offers request %d\n", my, mine);
		offered[mine] = true; clean }
	/* The demand has ended, and no commit that looked at it is under way (lemma 2). */
	:: d_step { node[mine] == EXISTS && over(mine) ->
		printf("server %d ends request %d\n", my, mine);
		node[mine] = DELETE;
		if
		:: granted_in[mine] != 0 -> 
			said = said | bit(number[mine]);
#ifdef NO_LEMMA_7
			said_of = said_of | bit(mine)
#endif
		:: else fi; clean }
	:: d_step { node[mine] == DELETE && may_send(my) ->
		printf("server %d sends a delete for request %d\n", my, mine);
		send(my, REMOVE, mine); clean }
	:: d_step { slot[mine] == RELEASED && node[mine] == NONE ->
		slot[mine] = FREE; broken[mine] = false; granted_in[mine] = 0; ahead[mine] = ALL;
		if :: !wanted(my) && !wants_more(my) -> retire(my) :: else fi; clean }
	od
}

/* ---- a backend ---- */

/* Lemma 5: the generation, and the time, read in one word */
#ifdef NO_LEMMA_5
#define may_act(r)	(lease_left[server(r)] > 0)
#else
#define may_act(r)	valid(r)
#endif

inline release(b)
{
	slot[uses[b]] = (slot[uses[b]] == GRANTED && offered[uses[b]] -> CACHED : RELEASED);
	backend[b] = IDLE; uses[b] = 0
}

inline take(b, r)
{
	uses[b] = r;
	if
	:: may_act(r) ->
		printf("backend %d has the lock\n", b);
		backend[b] = HOLDS; claim_holds(b)
	:: else ->
		printf("backend %d has no lease, and gives the lock back\n", b);
		release(b)
	fi
}

#define can_take(b, r)	(server(b) == server(r) && slot[r] == CACHED && backend[b] == IDLE && \
						 turns[b] > 0 && granted_in[r] == generation[server(r)])
inline take_cached(b, r)
{
	printf("backend %d takes the cached lock of slot %d\n", b, r);
	turns[b]--; slot[r] = GRANTED; takes[r]++; claim_grant(r, true); take(b, r)
}

proctype Backend(byte me)
{
	do
	/* Backends of one server are alike: the first one begins first. */
	:: d_step { backend[me] == IDLE && turns[me] > 0 && slot[me] == FREE &&
				(me % BACKENDS == 0 || turns[me - 1] < TURNS) ->
		printf("backend %d wants the lock\n", me);
		turns[me]--; slot[me] = WAITING; backend[me] = WAITS; clean }
	:: d_step { can_take(me, 0) -> take_cached(me, 0); clean }
	:: d_step { can_take(me, 1) -> take_cached(me, 1); clean }
#if REQUESTS > 2
	:: d_step { can_take(me, 2) -> take_cached(me, 2); clean }
	:: d_step { can_take(me, REQUESTS - 1) -> take_cached(me, REQUESTS - 1); clean }
#endif
	:: d_step { backend[me] == WAITS && slot[me] == GRANTED -> take(me, me); clean }
	:: d_step { backend[me] == WAITS && slot[me] == LOST ->
		uses[me] = me; release(me); clean }
	:: d_step { backend[me] == WAITS && slot[me] == WAITING && kills < KILLS ->
		printf("backend %d is cancelled\n", me);
		kills++; uses[me] = me; release(me); clean }
	/* The commit check */
	:: d_step { backend[me] == HOLDS && slot[uses[me]] == GRANTED && may_act(uses[me]) ->
		printf("backend %d passes its commit check\n", me);
		backend[me] = COMMITS; claim_holds(me); clean }
	:: d_step { backend[me] == HOLDS && !(slot[uses[me]] == GRANTED && may_act(uses[me])) ->
		printf("backend %d fails its commit check\n", me);
		promise[uses[me]] = 0; release(me); clean }
	/* Behind it, however late: the resource asks for the token (lemma 8). */
	:: d_step { backend[me] == COMMITS ->
		if
		:: token(uses[me]) >= fence ->
			printf("the resource takes the write of backend %d\n", me);
			assert(!claimed(8) || order(uses[me]) >= written); fence = token(uses[me]);
			written = order(uses[me])
		:: else -> printf("the fence refuses backend %d\n", me)
		fi;
		promise[uses[me]] = 0; release(me); clean }
	/* Lemma 9: zk_assert_lock() tells a time, and then the backend is killed. */
	:: d_step { KILLS && backend[me] == HOLDS && slot[uses[me]] == GRANTED && may_act(uses[me]) ->
		printf("backend %d is told that it has the lock for %d\n", me, lease_left[server(me)]);
		promise[uses[me]] = lease_left[server(me)]; clean }
	:: d_step { backend[me] == HOLDS && kills < KILLS ->
		printf("backend %d is killed\n", me);
		kills++; release(me); clean }
	od
}

/* ---- an operator, and planned stops ---- */

#define heads(r)	(znode[r] != 0 && (znode[r] <= znode[0] || znode[0] == 0) && \
					 (znode[r] <= znode[1] || znode[1] == 0))
inline mark(r)
{
	printf("an operator marks the znode of request %d\n", r);
	calls++; write_znodes(MARK, r, znode[r], NOBODY); break_of = r; break_number = znode[r];
	break_left = T
}

/* Lemma 4: marks the head of the queue, and deletes it when T has passed. */
active proctype Operator()
{
	do
	:: d_step { calls < OPERATORS && room && heads(0) -> mark(0); clean }
	:: d_step { calls < OPERATORS && room && heads(1) -> mark(1); clean }
	:: d_step { break_number != 0 && break_left == 0 && room ->
		if
		:: znode[break_of] == break_number ->
			printf("the operator deletes the znode of request %d\n", break_of);
			broken[break_of] = true; apply(server(break_of), REMOVE, break_of, NOBODY)
		:: else fi; break_number = 0; break_of = 0; clean }
	od
}

#define idle(r, s)	(server(r) != s || ((slot[r] == FREE || slot[r] == RELEASED) && no_promise(r)))
#ifdef NO_LEMMA_9
#define no_promise(r)	true
#else
#define no_promise(r)	(promise[r] == 0)
#endif

/* A planned stop closes the session once nobody holds, and nothing is promised. */
proctype Stop(byte my)
{
end:
	d_step { kills < KILLS && connection[my] == READY && alive[my] && room &&
			 idle(0, my) && idle(1, my) && idle(REQUESTS - 1, my) && idle(REQUESTS - 2, my) ->
		printf("server %d stops, and closes its session\n", my);
		kills++; lease_left[my] = 0; end_session(my); disconnect(my); clean }
}

init
{
	byte i;

	atomic {
		for (i : 0 .. SERVERS - 1) {
			run ZooKeeper(i); run Connection(i)
		}
		for (i : 0 .. REQUESTS - 1) {
			run Slot(i); run Backend(i); run Claims(i)
		}
		for (i : 0 .. SERVERS * KILLS - 1) { run Stop(i) }
	}
}
