--
-- zk_once(): bad arguments are refused before ZooKeeper is asked; and which
-- function is called.
--
\set SHOW_CONTEXT never

-- names
SELECT zk_once('nightly', 'k');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_once('/.once/nightly', 'k');
SELECT zk_once('/' || repeat('x', 249), 'k');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_once('/' || repeat('x', 249), interval '1 day');

-- keys
SELECT zk_once('/nightly', '');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_once('/nightly', repeat('x', 201));
\echo :LAST_ERROR_SQLSTATE
SELECT zk_once('/nightly', repeat(chr(228), 101));
SELECT zk_once('/nightly', E'a\nb');
SELECT zk_once('/nightly', E'a\x7fb');

-- a text that looks like a period is no key
SELECT zk_once('/nightly', '1 hour');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_once('/nightly', '30min');
SELECT zk_once('/nightly', '1 month');
SELECT zk_once('/nightly', '1 day 2 hours');
SELECT zk_once('/nightly', '01:00');
SELECT zk_once('/nightly', 'PT1H');
SELECT zk_once('/nightly', '1.5 Days');

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
SELECT zk_once('/nightly', 'k', 'exactly_once');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_once('/nightly', interval '1 day', 'UTC', 'AT_MOST_ONCE');
SELECT zk_once('/nightly', interval '1 hour', 'Etc/GMT', 'none');
SELECT zk_once('/nightly', 'k', guarantee => '');

-- resetting
\set VERBOSITY terse
SELECT zk_once_reset('nightly');
SELECT zk_once_reset('/.once/nightly');
SELECT zk_once_reset('/' || repeat('x', 250));

-- NULL is no name, no period and no key; elsewhere it gives NULL
SELECT zk_once('/nightly', NULL::interval);
SELECT zk_once('/nightly', NULL::text);
\set VERBOSITY sqlstate
SELECT zk_once(NULL, 'k');
SELECT zk_once(NULL, interval '1 h');
SELECT zk_once('/nightly', NULL::interval);
SELECT zk_once('/nightly', NULL::text, NULL);
\set VERBOSITY default
SELECT zk_once('/nightly', 'k', NULL) IS NULL
   AND zk_once('/nightly', interval '1 day', zone => NULL) IS NULL
   AND zk_once_reset(NULL) IS NULL AS nothing;
