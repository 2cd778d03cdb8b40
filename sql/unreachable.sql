--
-- Nobody answers where ZooKeeper should be: a try raises an error, and never
-- returns false; a wait goes on until a timeout; nothing is left behind.
--
SHOW zklock.connect_string;
SET zklock.answer_timeout = '200ms';
\set VERBOSITY terse
\set SHOW_CONTEXT never

SELECT zk_try_lock('/batch/nightly');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_try_lock_shared('/batch/nightly');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_try_xact_lock('/batch/nightly', '0.1 s');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_try_xact_lock_shared('/batch/nightly');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM zk_queue('/batch/nightly');
\echo :LAST_ERROR_SQLSTATE

-- a wait with a timeout of 0 raises the same error; a longer one just ends
SELECT zk_lock('/batch/nightly', '0');
\echo :LAST_ERROR_SQLSTATE
CALL zk_await_lock('/batch/nightly', '0');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_xact_lock_shared('/batch/nightly', '0.1 s');
\echo :LAST_ERROR_SQLSTATE
-- if the timeout is longer than zklock.answer_timeout, a notice comes first
SELECT zk_lock('/batch/nightly', '0.3 s');
\echo :LAST_ERROR_SQLSTATE

-- only PostgreSQL's timeouts end a wait without a timeout
SET zklock.answer_timeout = '1min';
SET lock_timeout = '300ms';
SELECT zk_lock('/batch/nightly');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_xact_lock_shared('/batch/nightly');
\echo :LAST_ERROR_SQLSTATE
-- lock_timeout also ends a try and a wait with a longer timeout
SELECT zk_try_lock('/batch/nightly', '1 hour');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_lock('/batch/nightly', '1 hour');
\echo :LAST_ERROR_SQLSTATE
RESET lock_timeout;
SET statement_timeout = '300ms';
SELECT zk_lock_shared('/batch/nightly');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_xact_lock('/batch/nightly');
\echo :LAST_ERROR_SQLSTATE
CALL zk_await_xact_lock('/batch/nightly');
\echo :LAST_ERROR_SQLSTATE
RESET statement_timeout;

-- the error names the lock, and says that no other holder was in the way
\set VERBOSITY default
\set SHOW_CONTEXT errors
SET lock_timeout = '50ms';
DO $$
DECLARE
	detail text;
	context text;
BEGIN
	PERFORM zk_lock('/batch/nightly');
EXCEPTION WHEN connection_failure THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL,
		context = PG_EXCEPTION_CONTEXT;
	RAISE NOTICE '%', split_part(detail, '.  ', 1);
	RAISE NOTICE '%', split_part(context, E'\n', 1);
END $$;
RESET lock_timeout;
SET zklock.answer_timeout = '200ms';

-- a try ends neither before its time nor much later
SET client_min_messages = warning;
DO $$
DECLARE
	start timestamptz := clock_timestamp();
	waited interval;
BEGIN
	PERFORM zk_try_lock('/batch/nightly', '0.3 s');
EXCEPTION WHEN connection_failure THEN
	waited := clock_timestamp() - start;
	RAISE WARNING 'not less: %, not much more: %',
		waited >= '0.5 s', waited < '5 s';
END $$;
RESET client_min_messages;

-- many calls in a row use up no slots (there are 8)
SET zklock.answer_timeout = '1ms';
DO $$
DECLARE
	refused int := 0;
BEGIN
	FOR i IN 1..40 LOOP
		BEGIN
			PERFORM zk_try_lock('/batch/' || i);
		EXCEPTION WHEN connection_failure THEN
			refused := refused + 1;
			PERFORM pg_sleep(0.01);
		END;
	END LOOP;
	RAISE NOTICE '% refused', refused;
END $$;

-- the status says why
DO $$
BEGIN
	FOR i IN 1..100 LOOP
		EXIT WHEN (SELECT last_error IS NOT NULL FROM zk_status);
		PERFORM pg_sleep(0.1);
	END LOOP;
END $$;
SELECT state IN ('connecting', 'disconnected') AS away, zookeeper_server, session_id,
       session_timeout, lease_remaining, worker_pid IS NOT NULL AS worker,
       locks_held, waiting, connects, sessions_lost, batches,
       last_error IS NOT NULL AS says_why, last_error_at <= now() AS since
  FROM zk_status, zk_stat_server;

-- the longest timeouts, and none at all
\set VERBOSITY terse
SET zklock.answer_timeout = '50ms';
SET client_min_messages = warning;
SET statement_timeout = '50ms';
SELECT zk_try_lock('/x', '178000000 years');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_lock('/x', '178000000 years');
\echo :LAST_ERROR_SQLSTATE
\set VERBOSITY sqlstate
SELECT zk_try_lock('/x', NULL);
SELECT zk_lock('/x', NULL);
SELECT zk_lead('/x', timeout => NULL);
RESET statement_timeout;

-- several locks at once
SELECT zk_try_multilock(ARRAY['/a', '/b', '/c']);
SELECT zk_multilock(ARRAY['/a', '/b', '/c'], '50ms');
SELECT zk_xact_multilock(ARRAY['/a', '/b', '/c'], timeout => '0');

-- time limits
SELECT zk_try_lock('/x', '0', '1 microsecond');
SELECT zk_try_lock_shared('/x', '0', '1s', '1s');
SELECT zk_try_xact_lock('/x', '0', NULL, '0');
SELECT zk_try_lock('/x', '0', '178000000 years', '1h');
SELECT zk_lock('/x', '0', at_most => '1h');
SET lock_timeout = '50ms';
SELECT zk_lock('/x', at_most => '1h', at_least => '1s');
SELECT zk_lock('/x', '1h', '1h', '1s');
RESET lock_timeout;
\set VERBOSITY terse

-- barriers
SELECT zk_barrier_enter('/x', 1, '0');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_barrier('/x', 1, '10ms');
\echo :LAST_ERROR_SQLSTATE
SET lock_timeout = '50ms';
SELECT zk_barrier_enter('/x', 1);
\echo :LAST_ERROR_SQLSTATE
RESET lock_timeout;

-- semaphores: an error, never false
SELECT zk_try_acquire_permits('/s', max_permits => 1);
\echo :LAST_ERROR_SQLSTATE
SELECT zk_try_xact_acquire_permits('/s', 1, max_permits => 1, timeout => '0.1 s');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_acquire_permits('/s', max_permits => 1, timeout => '0');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_xact_acquire_permits('/s', 1, max_permits => 1, timeout => '0.1 s');
\echo :LAST_ERROR_SQLSTATE
SET lock_timeout = '200ms';
SELECT zk_acquire_permits('/s', max_permits => 1);
\echo :LAST_ERROR_SQLSTATE
RESET lock_timeout;

-- leaders and requests for a release
SELECT zk_request_release('/x');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM zk_leader('/x');
\echo :LAST_ERROR_SQLSTATE
SET lock_timeout = '50ms';
SELECT zk_lead('/x', id => repeat('x', 255));
\echo :LAST_ERROR_SQLSTATE
SELECT zk_lead('/x');
RESET lock_timeout;
SELECT zk_lead('/x', timeout => '50ms');
\echo :LAST_ERROR_SQLSTATE

-- jobs that run once
SELECT zk_once('/nightly', key => '2026-11-21');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_once('/nightly', key => '1');
SELECT zk_once('/nightly', key => '1 banana', guarantee => 'at_least_once');
SELECT zk_once('/nightly', key => 'k', guarantee => 'at_most_once');
SELECT zk_once('/nightly', '1 day', guarantee => 'at_least_once');
SELECT zk_once('/nightly', interval '1 week');
SELECT zk_once_reset('/nightly');
\echo :LAST_ERROR_SQLSTATE
RESET client_min_messages;

-- if a role may not see the settings, errors do not show it hosts
CREATE ROLE regress_zklock_user;
GRANT EXECUTE ON FUNCTION zk_try_lock TO regress_zklock_user;
SET ROLE regress_zklock_user;
DO $$
DECLARE
	detail text;
BEGIN
	PERFORM zk_try_lock('/x');
EXCEPTION WHEN connection_failure THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RAISE NOTICE 'tells of an error: %', detail LIKE '%127.0.0.1%';
END $$;
RESET ROLE;
REVOKE ALL ON FUNCTION zk_try_lock FROM regress_zklock_user;
DROP ROLE regress_zklock_user;
SELECT all_quiet();
