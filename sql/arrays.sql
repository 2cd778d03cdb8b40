--
-- Several locks at once: bad arrays are refused, and a literal without a type
-- is one name.
--
\set SHOW_CONTEXT never

SELECT zk_lock('{}'::text[]);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_lock(ARRAY['/a', NULL]);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_lock(ARRAY['/a', '/b', '/a']);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_lock(ARRAY[ARRAY['/a', '/b'], ARRAY['/c', '/d']]);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_lock(ARRAY['/a', 'b']);
\echo :LAST_ERROR_SQLSTATE


-- the same rules everywhere
SELECT zk_lock_shared('{}'::text[]);
SELECT zk_xact_lock('{}'::text[]);
SELECT zk_xact_lock_shared('{}'::text[]);
SELECT zk_try_lock('{}'::text[]);
SELECT zk_try_lock_shared('{}'::text[]);
SELECT zk_try_xact_lock('{}'::text[]);
SELECT zk_try_xact_lock_shared('{}'::text[]);
SELECT zk_unlock('{}'::text[]);
SELECT zk_unlock_shared('{}'::text[]);
SELECT zk_try_lock(ARRAY['/a', '/b'], '-1s');
SELECT zk_lock(ARRAY['/a', '/b'], '-1s');
\echo :LAST_ERROR_SQLSTATE

-- one name
SELECT zk_lock('{/a}');
SELECT zk_unlock('/a');

-- NULL is no array of names
SELECT zk_lock(NULL::text[]);
\set VERBOSITY sqlstate
SELECT zk_lock(NULL::text[]);
SELECT zk_try_lock(NULL::text[], '-1s');
SELECT zk_unlock(NULL::text[]);
SELECT zk_unlock_shared(ARRAY['/a', NULL]);
\set VERBOSITY default

-- not held
SELECT zk_unlock(ARRAY['/b', '/a']);
SELECT zk_unlock_shared(ARRAY['/a']);

