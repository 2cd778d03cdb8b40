--
-- zk_once(): bad arguments are refused before ZooKeeper is asked.
--
\set SHOW_CONTEXT never

-- names
SELECT zk_once('nightly', key => 'k');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_once('/.once/nightly', key => 'k');
SELECT zk_once('/' || repeat('x', 249), key => 'k');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_once('/' || repeat('x', 249), interval '1 day');

-- keys
SELECT zk_once('/nightly', key => '');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_once('/nightly', key => repeat('x', 201));
\echo :LAST_ERROR_SQLSTATE
SELECT zk_once('/nightly', key => repeat(chr(228), 101));
SELECT zk_once('/nightly', key => E'a\nb');
SELECT zk_once('/nightly', key => E'a\x7fb');

-- a period or a key
SELECT zk_once('/nightly', '1 day', key => 'k');
\echo :LAST_ERROR_SQLSTATE
CALL zk_run_once('/nightly', '1 day', 'SELECT 1', key => 'k');
SELECT zk_once('/nightly', called_at => now(), key => 'k');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_once('/nightly');
\echo :LAST_ERROR_SQLSTATE
CALL zk_run_once('/nightly', sql => 'SELECT 1');

-- periods
SELECT zk_once('/nightly', interval '0');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_once('/nightly', interval '-1 hour');
SELECT zk_once('/nightly', interval '1 day -24 hours');
SELECT zk_once('/nightly', interval '1 month 1 day');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_once('/nightly', interval '1 year 1 second');
SELECT zk_once('/nightly', interval '-1 month');
SELECT zk_once('/nightly', interval '200000000 days');
\echo :LAST_ERROR_SQLSTATE

-- time zones
SELECT zk_once('/nightly', interval '1 day', 'Europe/Nowhere');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_once('/nightly', interval '1 day', zone => '');
SELECT zk_once('/nightly', interval '1 hour', zone => 'Europe/Berlin');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_once('/nightly', interval '1 day 12 hours', zone => 'Asia/Kolkata');

-- guarantees
SELECT zk_once('/nightly', key => 'k', guarantee => 'exactly_once');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_once('/nightly', interval '1 day', 'UTC', 'AT_MOST_ONCE');
SELECT zk_once('/nightly', interval '1 hour', 'Etc/GMT', 'none');
SELECT zk_once('/nightly', key => 'k', guarantee => '');

-- resetting
\set VERBOSITY terse
SELECT zk_once_reset('nightly');
SELECT zk_once_reset('/.once/nightly');
SELECT zk_once_reset('/' || repeat('x', 250));

-- NULL is no name, no period, no zone, no key and no guarantee
SELECT zk_once('/nightly', NULL);
SELECT zk_once('/nightly', '1 day', zone => NULL);
SELECT zk_once('/nightly', '1 day', guarantee => NULL);
SELECT zk_once('/nightly', key => NULL);
SELECT zk_once('/nightly', key => 'k', guarantee => NULL);
\set VERBOSITY sqlstate
SELECT zk_once(NULL, key => 'k');
SELECT zk_once(NULL, '1 h');
SELECT zk_once('/nightly', NULL, NULL, NULL);
SELECT zk_once('/nightly', '1 day', zone => NULL);
SELECT zk_once('/nightly', '1 day', guarantee => NULL);
SELECT zk_once('/nightly', key => NULL, guarantee => NULL);
SELECT zk_once('/nightly', key => 'k', guarantee => NULL);
\set VERBOSITY default
SELECT zk_once_reset(NULL) IS NULL AS nothing;
