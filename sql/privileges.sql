--
-- Least privilege: a role without grants takes no lock and sees none, but may let
-- go and look at its own; a role that may read a view sees only its own locks, and
-- pg_monitor sees all.
--
\set SHOW_CONTEXT never
CREATE ROLE regress_zklock_nobody;
CREATE ROLE regress_zklock_user;
CREATE ROLE regress_zklock_monitor IN ROLE pg_monitor;
GRANT EXECUTE ON FUNCTION zk_try_lock TO regress_zklock_user;
GRANT SELECT ON zk_locks TO regress_zklock_user;
GRANT SELECT ON zk_status TO regress_zklock_user;
GRANT SELECT (path) ON zk_stat_locks TO regress_zklock_user;
GRANT SELECT (lapses) ON zk_stat_server TO regress_zklock_user;

SET ROLE regress_zklock_nobody;
SELECT zk_lock('/x');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_lock_shared('/x');
SELECT zk_try_lock('/x');
SELECT zk_try_lock_shared('/x');
SELECT zk_xact_lock('/x');
SELECT zk_xact_lock_shared('/x');
SELECT zk_try_xact_lock('/x');
SELECT zk_try_xact_lock_shared('/x');
CALL zk_await_lock('/x');
CALL zk_await_lock_shared('/x');
CALL zk_await_xact_lock('/x');
CALL zk_await_xact_lock_shared('/x');
SELECT zk_lock('/x', '1s');
SELECT zk_xact_lock('/x', at_most => '1s');
SELECT zk_multilock(ARRAY['/x'], '1s');
SELECT zk_acquire_permits('/x', max_permits => 1, timeout => '1s');
SELECT zk_lead('/x', timeout => '1s');
SELECT zk_enqueue('/x', '1s');
SELECT zk_enqueue_all(ARRAY['/x'], '1s');
SELECT zk_claim_ticket(1);
\set VERBOSITY sqlstate
SELECT ticket FROM zk_claim_next('0');
\set VERBOSITY default
SELECT zk_withdraw(NULL);
SELECT * FROM zk_tickets;
SELECT zk_unlock('/x');
SELECT zk_unlock_shared('/x');
SELECT zk_multiunlock(ARRAY['/x']);
SELECT zk_unlock_all();
SELECT zk_release_permits('/x');
SELECT zk_resign('/x');
SELECT zk_extend('/x', '1s');
SELECT zk_fencing_token('/x');
SELECT * FROM zk_locks;
SELECT * FROM zk_status;
SELECT * FROM zk_get_locks();
SELECT * FROM zk_get_status();
SELECT * FROM zk_queue('/x');
\set VERBOSITY sqlstate
SHOW zklock.connect_string;
SHOW zklock.auth_file;
\set VERBOSITY default
SELECT current_setting('zklock.root') <> '' AS shown;
SELECT name FROM pg_settings
 WHERE name IN ('zklock.connect_string', 'zklock.auth_file') OR name LIKE 'zklock.tls%';
RESET ROLE;

-- a role that may not see the settings is not shown hosts
SET ROLE regress_zklock_user;
SELECT zookeeper_server IS NULL AND last_error IS NULL AS masked FROM zk_get_status();
SELECT zookeeper_server IS NULL AND last_error IS NULL AS masked FROM zk_status;
SELECT count(path) FROM zk_locks;
SELECT * FROM zk_stat_locks;

-- nor does a grant of some columns open the function that returns all
SELECT count(path) FROM zk_stat_locks;
SELECT * FROM zk_get_stat_locks();
SELECT lapses FROM zk_stat_server;
SELECT * FROM zk_get_stat_server();
RESET ROLE;

SET ROLE regress_zklock_monitor;
SELECT count(*) >= 0 AS shown FROM zk_locks;
SELECT count(*) FROM zk_status, zk_stat_server;
SELECT current_setting('zklock.connect_string') <> '' AS shown;
SELECT zk_lock('/x');
RESET ROLE;

-- a view without the right to read it shows nothing, whatever else is granted
REVOKE SELECT ON zk_locks FROM pg_monitor;
SET ROLE regress_zklock_monitor;
SELECT * FROM zk_get_locks();
RESET ROLE;
GRANT SELECT ON zk_locks TO pg_monitor;

DROP OWNED BY regress_zklock_user;
DROP ROLE regress_zklock_nobody, regress_zklock_user, regress_zklock_monitor;
