--
-- Semaphores without ZooKeeper: bad arguments are refused before ZooKeeper is
-- asked, and without an answer a call ends with an error or a warning.
--
\set SHOW_CONTEXT never

-- numbers
SELECT zk_acquire_permits('/s', max_permits => 0);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_acquire_permits('/s', max_permits => -1);
SELECT zk_acquire_permits('/s', 0, max_permits => 3);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_acquire_permits('/s', -2, max_permits => 3);
SELECT zk_acquire_permits('/s', 4, max_permits => 3);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_xact_acquire_permits('/s', max_permits => 0);
SELECT zk_try_acquire_permits('/s', 3, max_permits => 2);
SELECT zk_try_xact_acquire_permits('/s', 0, max_permits => 2);
SELECT zk_release_permits('/s', 0);
\echo :LAST_ERROR_SQLSTATE
-- the second argument is how many, and the maximum must be named
SELECT zk_acquire_permits('/s', 3);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_xact_acquire_permits('/s');
SELECT zk_try_acquire_permits('/s', 3, timeout => '1s');
SELECT zk_try_xact_acquire_permits('/s', 3, NULL);
SELECT zk_acquire_permits('/s', 4, 3);

-- names, which leave room for the directories below them
SELECT zk_acquire_permits('s', max_permits => 1);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_try_acquire_permits('/', max_permits => 1);
SELECT zk_xact_acquire_permits('/a//b', max_permits => 1);
SELECT zk_try_xact_acquire_permits('/.a', max_permits => 1);
SELECT zk_release_permits('/a/');
SELECT zk_acquire_permits('/' || repeat('x', 248), max_permits => 1);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_acquire_permits('/' || repeat(chr(228), 124), max_permits => 1);
SELECT zk_release_permits('/' || repeat('x', 247));

-- timeouts
SELECT zk_try_acquire_permits('/s', 1, max_permits => 1, timeout => '-1 second');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_try_xact_acquire_permits('/s', 1, max_permits => 1, timeout => '-1 microsecond');
SELECT zk_acquire_permits('/s', 1, max_permits => 1, timeout => '-1 second');
SELECT zk_xact_acquire_permits('/s', max_permits => 1, timeout => '-1 microsecond');

-- NULL is no name and no number
\set VERBOSITY sqlstate
SELECT zk_acquire_permits(NULL, max_permits => 1);
SELECT zk_xact_acquire_permits(NULL, max_permits => 1);
SELECT zk_try_acquire_permits(NULL, max_permits => NULL);
SELECT zk_try_xact_acquire_permits(NULL, 1, max_permits => 1, timeout => '1s');
SELECT zk_release_permits(NULL);
SELECT zk_acquire_permits('/s', NULL, max_permits => 1);
SELECT zk_xact_acquire_permits('/s', max_permits => NULL);
SELECT zk_try_acquire_permits('/s', NULL, max_permits => 1, timeout => '1s');
SELECT zk_try_xact_acquire_permits('/s', max_permits => NULL);
SELECT zk_release_permits('/s', NULL);
\set VERBOSITY default
SELECT zk_acquire_permits('/s', max_permits => NULL);
SELECT zk_acquire_permits('/s', NULL, max_permits => 1);

-- nothing is held
SELECT zk_release_permits('/s');
SELECT zk_release_permits('/s', 2);
SELECT zk_fencing_token('/s') IS NULL AS none;
