--
-- Several locks at once: bad arrays are refused.
--
\set SHOW_CONTEXT never

SELECT zk_multilock('{}');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_multilock(ARRAY['/a', NULL]);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_multilock(ARRAY['/a', '/b', '/a']);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_multilock(ARRAY[ARRAY['/a', '/b'], ARRAY['/c', '/d']]);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_multilock(ARRAY['/a', 'b']);
\echo :LAST_ERROR_SQLSTATE

-- the same rules everywhere
SELECT zk_xact_multilock('{}');
SELECT zk_try_multilock('{}');
SELECT zk_try_xact_multilock('{}');
SELECT zk_multiunlock('{}');
SELECT zk_try_multilock(ARRAY['/a', '/b'], '-1s');
SELECT zk_multilock(ARRAY['/a', '/b'], '-1s');
\echo :LAST_ERROR_SQLSTATE

-- NULL is no array of names
SELECT zk_multilock(NULL);
\set VERBOSITY sqlstate
SELECT zk_multilock(NULL);
SELECT zk_xact_multilock(NULL);
SELECT zk_try_multilock(NULL, '-1s');
SELECT zk_try_xact_multilock(NULL);
SELECT zk_multiunlock(NULL);
SELECT zk_multiunlock(ARRAY['/a', NULL]);
\set VERBOSITY default

-- not held
SELECT zk_multiunlock(ARRAY['/b', '/a']);
