--
-- Bad arguments: each is refused before ZooKeeper is asked, and the error says
-- which rule was broken.
--
\set SHOW_CONTEXT never

-- names
SELECT zk_lock('');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_lock('nightly');
SELECT zk_lock('/');
SELECT zk_lock('/batch/');
SELECT zk_lock('//nightly');
SELECT zk_lock('/batch//nightly');
SELECT zk_lock('/batch/./nightly');
SELECT zk_lock('/batch/../zookeeper');
SELECT zk_lock('/.servers');
SELECT zk_lock('/batch/.nightly');
SELECT zk_lock(E'/batch\nnightly');
SELECT zk_lock(E'/batch\x7fnightly');
SELECT zk_lock('/batch' || chr(x'85'::int) || 'nightly');
SELECT zk_lock('/batch' || chr(x'E000'::int) || 'nightly');
SELECT zk_lock('/a/_c_00000000-0000-8000-8000-000000000000-__WRIT__0000000001');
SELECT zk_lock('/a__READ__0000000001/b');
SELECT zk_lock('/' || repeat('x', 255));
SELECT zk_lock('/' || repeat(chr(228), 128));
SELECT zk_lock('/' || repeat('x', 65536));

-- the same rules everywhere
SELECT zk_lock_shared('x');
SELECT zk_try_lock('x');
SELECT zk_try_lock_shared('x', '1s');
CALL zk_await_lock('x');
SELECT zk_xact_lock('x');
SELECT zk_xact_lock_shared('x');
SELECT zk_try_xact_lock('x');
SELECT zk_try_xact_lock_shared('x', '1s');
SELECT zk_unlock('x');
SELECT zk_unlock_shared('x');
SELECT zk_fencing_token('x');
SELECT * FROM zk_queue('x');

-- the longest name, and one that is not ASCII, are good
SELECT zk_unlock('/' || repeat('x', 254)) AS held;
SELECT zk_fencing_token('/' || repeat(chr(228), 127)) IS NULL AS none;

-- NULL is no name of what is taken, asserted or released; elsewhere it gives NULL
SELECT zk_lock(NULL);
\set VERBOSITY sqlstate
SELECT zk_lock(NULL);
SELECT zk_lock_shared(NULL);
SELECT zk_xact_lock(NULL);
SELECT zk_xact_lock_shared(NULL);
SELECT zk_try_lock(NULL);
SELECT zk_try_lock_shared(NULL);
SELECT zk_try_xact_lock(NULL);
SELECT zk_try_xact_lock_shared(NULL, '1s');
CALL zk_await_lock(NULL);
CALL zk_await_xact_lock_shared(NULL);
SELECT zk_unlock(NULL);
SELECT zk_unlock_shared(NULL);
SELECT zk_assert_lock(NULL);
\set VERBOSITY default
SELECT zk_fencing_token(NULL) IS NULL AS nothing;
SELECT count(*) FROM zk_queue(NULL);

-- timeouts
SELECT zk_try_lock('/x', '-1 second');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_try_lock_shared('/x', '-1 microsecond');
SELECT zk_try_xact_lock('/x', '1 month -31 days');
SELECT zk_try_xact_lock_shared('/x', '-178000000 years');
SELECT zk_lock('/x', '-1 second');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_lock_shared('/x', '-1 microsecond');
SELECT zk_xact_lock('/x', timeout => '-178000000 years');
SELECT zk_xact_lock_shared('/x', 'soon');
\echo :LAST_ERROR_SQLSTATE

-- lists of dialects
SELECT zk_set_dialects('/a');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_set_dialects('/a=zookeeper');
SELECT zk_set_dialects('/a=kazoo, /a=curator_rw');
SELECT zk_set_dialects(NULL);
