--
-- Semaphores without ZooKeeper: bad arguments are refused before ZooKeeper is
-- asked, and without an answer a call ends with an error or a warning.
--
\set SHOW_CONTEXT never

-- numbers
SELECT zk_acquire('/s', 0);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_acquire('/s', -1);
SELECT zk_acquire('/s', 3, 0);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_acquire('/s', 3, -2);
SELECT zk_acquire('/s', 3, 4);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_xact_acquire('/s', 0);
SELECT zk_try_acquire('/s', 2, 3);
SELECT zk_try_xact_acquire('/s', 2, 0);
SELECT zk_release('/s', 0);
\echo :LAST_ERROR_SQLSTATE

-- names, which leave room for the directories below them
SELECT zk_acquire('s', 1);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_try_acquire('/', 1);
SELECT zk_xact_acquire('/a//b', 1);
SELECT zk_try_xact_acquire('/.a', 1);
SELECT zk_release('/a/');
SELECT zk_acquire('/' || repeat('x', 248), 1);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_acquire('/' || repeat(chr(228), 124), 1);
SELECT zk_release('/' || repeat('x', 247));

-- timeouts
SELECT zk_try_acquire('/s', 1, 1, '-1 second');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_try_xact_acquire('/s', 1, 1, '-1 microsecond');
SELECT zk_acquire('/s', 1, 1, '-1 second');
SELECT zk_xact_acquire('/s', 1, timeout => '-1 microsecond');

-- NULL is no name; a number that is NULL gives NULL
\set VERBOSITY sqlstate
SELECT zk_acquire(NULL, 1);
SELECT zk_xact_acquire(NULL, 1);
SELECT zk_try_acquire(NULL, NULL);
SELECT zk_try_xact_acquire(NULL, 1, 1, '1s');
SELECT zk_release(NULL);
\set VERBOSITY default
SELECT zk_acquire('/s', NULL) IS NULL AND zk_acquire('/s', 1, NULL) IS NULL
   AND zk_try_acquire('/s', 1, NULL, '1s') IS NULL
   AND zk_try_xact_acquire('/s', NULL) IS NULL
   AND zk_release('/s', NULL) IS NULL AS nothing;

-- nothing is held
SELECT zk_release('/s');
SELECT zk_release('/s', 2);
SELECT zk_fencing_token('/s') IS NULL AS none;
