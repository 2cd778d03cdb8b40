--
-- Semaphores without ZooKeeper: bad arguments are refused before ZooKeeper is
-- asked, and without an answer a call ends with an error or a warning.
--
\set SHOW_CONTEXT never

-- numbers
SELECT zk_acquire_permits('/s', 0);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_acquire_permits('/s', -1);
SELECT zk_acquire_permits('/s', 3, 0);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_acquire_permits('/s', 3, -2);
SELECT zk_acquire_permits('/s', 3, 4);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_xact_acquire_permits('/s', 0);
SELECT zk_try_acquire_permits('/s', 2, 3);
SELECT zk_try_xact_acquire_permits('/s', 2, 0);
SELECT zk_release_permits('/s', 0);
\echo :LAST_ERROR_SQLSTATE

-- names, which leave room for the directories below them
SELECT zk_acquire_permits('s', 1);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_try_acquire_permits('/', 1);
SELECT zk_xact_acquire_permits('/a//b', 1);
SELECT zk_try_xact_acquire_permits('/.a', 1);
SELECT zk_release_permits('/a/');
SELECT zk_acquire_permits('/' || repeat('x', 248), 1);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_acquire_permits('/' || repeat(chr(228), 124), 1);
SELECT zk_release_permits('/' || repeat('x', 247));

-- timeouts
SELECT zk_try_acquire_permits('/s', 1, 1, '-1 second');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_try_xact_acquire_permits('/s', 1, 1, '-1 microsecond');
SELECT zk_acquire_permits('/s', 1, 1, '-1 second');
SELECT zk_xact_acquire_permits('/s', 1, timeout => '-1 microsecond');

-- NULL is no name and no number
\set VERBOSITY sqlstate
SELECT zk_acquire_permits(NULL, 1);
SELECT zk_xact_acquire_permits(NULL, 1);
SELECT zk_try_acquire_permits(NULL, NULL);
SELECT zk_try_xact_acquire_permits(NULL, 1, 1, '1s');
SELECT zk_release_permits(NULL);
SELECT zk_acquire_permits('/s', 1, NULL);
SELECT zk_xact_acquire_permits('/s', NULL);
SELECT zk_try_acquire_permits('/s', 1, NULL, '1s');
SELECT zk_try_xact_acquire_permits('/s', NULL);
SELECT zk_release_permits('/s', NULL);
\set VERBOSITY default
SELECT zk_acquire_permits('/s', NULL);
SELECT zk_acquire_permits('/s', 1, NULL);

-- nothing is held
SELECT zk_release_permits('/s');
SELECT zk_release_permits('/s', 2);
SELECT zk_fencing_token('/s') IS NULL AS none;
