--
-- Settings: who may change them, and which values are refused; calls that need
-- more requests than the settings allow.
--
SET zklock.root = '/other';
SET zklock.max_requests = 100;
SET zklock.connect_string = 'localhost:2181';
ALTER SYSTEM SET zklock.connect_string = 'zk1:2181,zk2:74733';
ALTER SYSTEM SET zklock.connect_string = 'zk1:2181;zk2:2181';
ALTER SYSTEM SET zklock.connect_string = 'zk1:abc';
ALTER SYSTEM SET zklock.connect_string = 'zk1,,zk2';
ALTER SYSTEM SET zklock.connect_string = '';
ALTER SYSTEM SET zklock.connect_string = 'zk1:2181/chroot/';
ALTER SYSTEM SET zklock.connect_string = 'zk1, [::1]:2181,zk3:2181/chroot';
\set VERBOSITY sqlstate
SELECT repeat('zk1,', 63) || 'zk1' AS most, repeat('zk1,', 64) || 'zk1' AS many,
       repeat('z', 256) AS long \gset
ALTER SYSTEM SET zklock.connect_string = :'most';
ALTER SYSTEM SET zklock.connect_string = :'many';
ALTER SYSTEM SET zklock.connect_string = :'long';
\set VERBOSITY default
ALTER SYSTEM RESET zklock.connect_string;
SET zklock.session_timeout = '20s';
SET zklock.trace = on;
\set VERBOSITY sqlstate
SET zklock.answer_timeout = 0;
\set VERBOSITY default
SET zklock.lost_lock_action = 'shrug';
SET zklock.lost_lock_action = 'terminate';
SET zklock.no_such_setting = 1;
SELECT name, setting, unit, context, vartype, min_val, max_val, enumvals
  FROM pg_settings
 WHERE name LIKE 'zklock.%' AND name NOT LIKE '%.answer_timeout'
 ORDER BY name COLLATE "C";

-- more than there are slots
SELECT zk_multilock(array_agg('/' || i)) FROM generate_series(1, 9) i;
\echo :LAST_ERROR_SQLSTATE
SELECT zk_multiunlock(array_agg('/' || i)) FROM generate_series(1, 9) i;
SET zklock.max_requests_per_session = 2;
SELECT zk_try_xact_multilock(ARRAY['/a', '/b', 'c']);
RESET zklock.max_requests_per_session;
SELECT zk_acquire_permits('/s', 2147483647, max_permits => 2147483647);
\echo :LAST_ERROR_SQLSTATE
