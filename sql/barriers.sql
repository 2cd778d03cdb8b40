--
-- Barriers: bad arguments, and calls that need no ZooKeeper.
--
\set SHOW_CONTEXT never

-- names: the same rules as for locks
SELECT zk_barrier_enter('x', 2);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_barrier_leave('/x/');
SELECT zk_barrier('/' || repeat('x', 255), 2);

-- parties
SELECT zk_barrier_enter('/x', 0);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_barrier('/x', -1);

-- timeouts
SELECT zk_barrier_enter('/x', 2, '-1 second');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_barrier_leave('/x', '-1 microsecond');
SELECT zk_barrier('/x', 2, '1 month -31 days');

-- NULL is no name and no number; as a timeout it means no limit
\set VERBOSITY sqlstate
SELECT zk_barrier_enter(NULL, 2);
SELECT zk_barrier(NULL, NULL);
SELECT zk_barrier_leave(NULL);
SELECT zk_barrier('/x', NULL);
\set VERBOSITY default
SELECT zk_barrier_enter('/x', NULL);
SELECT zk_barrier_leave('/x');
SELECT zk_barrier_leave('/x', NULL);
