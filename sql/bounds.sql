--
-- Locks for a bounded time: the arguments, as far as they need no ZooKeeper.
--
\set SHOW_CONTEXT never

-- the second argument is the timeout, whatever follows
\pset format unaligned
EXPLAIN (VERBOSE, COSTS OFF)
SELECT zk_lock('/x'), zk_lock_shared('/x', '5s'), zk_xact_lock(path => '/x'),
       zk_xact_lock_shared('/x', timeout => '5s');
EXPLAIN (VERBOSE, COSTS OFF)
SELECT zk_try_lock('/x'), zk_try_lock_shared('/x', '5s'),
       zk_try_xact_lock('/x', timeout => '5s'),
       zk_try_xact_lock_shared('/x', interval '5s');
EXPLAIN (VERBOSE, COSTS OFF)
SELECT zk_lock('/x', at_most => '1h'), zk_lock_shared('/x', '5s', '1h', '1s'),
       zk_xact_lock('/x', at_least => '1s', timeout => '5s'),
       zk_xact_lock_shared('/x', NULL, NULL, NULL);
EXPLAIN (VERBOSE, COSTS OFF)
SELECT zk_try_lock('/x', at_most => '1h'),
       zk_try_lock_shared('/x', '5s', at_least => '1s'),
       zk_try_xact_lock('/x', '5s', '1h', '1s'),
       zk_try_xact_lock_shared('/x', NULL, NULL, NULL);
EXPLAIN (VERBOSE, COSTS OFF)
SELECT zk_multilock(ARRAY['/x']), zk_xact_multilock('{/x}', '5s'),
       zk_try_multilock(paths => '{/x}'), zk_try_xact_multilock(ARRAY['/x'], NULL);
\pset format aligned

-- no time at all, or less
SELECT zk_lock('/x', at_most => '0');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_lock_shared('/x', at_most => '-1s');
SELECT zk_xact_lock('/x', at_most => '-1 microsecond');
SELECT zk_xact_lock_shared('/x', at_most => '1 month -31 days');
SELECT zk_try_lock('/x', '0', '0');
SELECT zk_try_lock_shared('/x', '-1s', '1s');
SELECT zk_try_xact_lock('/x', '0', '1h', '-1s');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_try_xact_lock_shared('/x', '0', NULL, '-1 microsecond');
SELECT zk_extend('/x', '0');
\echo :LAST_ERROR_SQLSTATE

-- longer than allowed
SET zklock.max_at_least = '1h';
SELECT zk_lock('/x', NULL, '1s', '1001ms');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_try_lock('/x', '0', '1 month', '31 days');
SELECT zk_try_lock('/x', '0', '2h', '1h 1us');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_xact_lock_shared('/x', at_least => '178000000 years');
SET zklock.max_at_least = 0;
SELECT zk_lock('/x', at_least => '1us');
\echo :LAST_ERROR_SQLSTATE
RESET zklock.max_at_least;

-- a NULL name is refused, whatever the other arguments are
\set VERBOSITY sqlstate
SELECT zk_lock(NULL, '-1s');
SELECT zk_xact_lock(NULL, '1s', '1h', '1s');
SELECT zk_try_xact_lock_shared(NULL, '0', '0', '-1s');
SELECT zk_extend(NULL, '1h');
\set VERBOSITY default

-- a lock that is not held
SELECT zk_extend('/x', '1h');
SELECT zk_extend('/x', NULL);
SELECT zk_extend('x', '1h');
