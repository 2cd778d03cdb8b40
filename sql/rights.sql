--
-- Rights by prefix, as far as they can be seen without ZooKeeper: what zk_grant()
-- and zk_revoke() take, and what is refused.
--
\set SHOW_CONTEXT never
CREATE ROLE regress_zklock_owner;
CREATE ROLE regress_zklock_user;
CREATE ROLE "regress_zklock_O'Odd";
GRANT EXECUTE ON ALL ROUTINES IN SCHEMA public TO regress_zklock_owner, regress_zklock_user, "regress_zklock_O'Odd";

-- arguments
SELECT zk_grant('team', 'public');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_grant('/team/', 'public');
SELECT zk_grant('', 'public');
SELECT zk_grant('/.once/x', 'public');
SELECT zk_grant('/team', 'regress_zklock_nobody');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_grant('/team', 'PUBLIC');
SELECT zk_grant('/team', 'public', 'lock, break');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_grant('/team', 'public', '');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_grant('/team', 'public', 'lock,');
SELECT zk_grant('/team', 'public', '"LOCK"');
SELECT zk_grant(NULL, 'public') IS NULL, zk_grant('/team', NULL) IS NULL, zk_grant('/team', 'public', NULL) IS NULL;
SELECT zk_revoke('team', 'public');
SELECT zk_revoke('/team', 'public', 'lock, break');
SELECT * FROM zk_grants;
SELECT zk_rights_changed();
INSERT INTO zk_rights VALUES ('/team/', 'public', 'lock');
INSERT INTO zk_rights VALUES ('/team', 'public', 'locks');

-- what is granted adds up, and is taken back in parts
SELECT zk_grant('/team', 'regress_zklock_owner', ' Request_Release,LOCK , lock');
SELECT zk_grant('/team', 'regress_zklock_owner', 'look');
SELECT zk_grant('/', 'public');
SELECT zk_grant('/all', 'public', 'all');
SELECT * FROM zk_grants;
SELECT zk_revoke('/team', 'regress_zklock_owner', 'shared'), zk_revoke('/te', 'public');
SELECT zk_revoke('/team', 'regress_zklock_owner', 'shared, lock');
SELECT zk_revoke('/team', 'regress_zklock_nobody');
SELECT zk_revoke('/team', 'regress_zklock_owner');
SELECT zk_revoke('/all', 'public');
SELECT * FROM zk_grants;
SELECT zk_revoke('/', 'public');

-- for superusers only, whatever is granted
SET ROLE regress_zklock_owner;
SELECT zk_grant('/team', 'regress_zklock_owner');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_revoke('/team', 'public');
SELECT * FROM zk_grants;
SELECT * FROM zk_rights;
RESET ROLE;

-- each kind of call is refused, and none of those that end something
SELECT zk_grant('/team', 'regress_zklock_owner', 'all');
SET ROLE regress_zklock_user;
SELECT zk_lock('/team/x');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_lock_shared('/team/x');
SELECT zk_xact_lock('/team');
SELECT zk_xact_lock_shared('/team/x/y');
CALL zk_await_lock('/team/x');
CALL zk_await_xact_lock_shared('/team/x');
SELECT zk_try_lock('/team/x');
SELECT zk_try_lock_shared('/team/x', '1min');
SELECT zk_try_xact_lock('/team/x');
SELECT zk_try_xact_lock_shared('/team/x');
SELECT zk_multilock(ARRAY['/a', '/team/x']);
SELECT zk_xact_multilock(ARRAY['/team/x']);
SELECT zk_try_multilock(ARRAY['/team/x']);
SELECT zk_try_xact_multilock(ARRAY['/team/x']);
SELECT zk_acquire_permits('/team/x', max_permits => 3);
SELECT zk_xact_acquire_permits('/team/x', max_permits => 3);
SELECT zk_try_acquire_permits('/team/x', max_permits => 3);
SELECT zk_try_xact_acquire_permits('/team/x', max_permits => 3);
SELECT zk_lead('/team/x');
SELECT zk_barrier('/team/x', 2);
SELECT zk_barrier_enter('/team/x', 2);
SELECT zk_once('/team/x', interval '1 day');
SELECT zk_once('/team/x', key => 'monday');
SELECT zk_once_reset('/team/x');
SELECT zk_request_release('/team/x');
SELECT * FROM zk_queue('/team/x');
SELECT * FROM zk_queue('/.once/team/x');
SELECT * FROM zk_leader('/team/x');
\set VERBOSITY terse
SELECT zk_unlock('/team/x'), zk_unlock_shared('/team/x'), zk_multiunlock(ARRAY['/team/x', '/team/y']),
       zk_release_permits('/team/x'), zk_resign('/team/x'), zk_barrier_leave('/team/x'),
       zk_extend('/team/x', '1min'), zk_fencing_token('/team/x');
SELECT zk_unlock_all();
\set VERBOSITY default
RESET ROLE;

-- names are looked at first, then rights, then other arguments
SET ROLE regress_zklock_user;
SELECT zk_lock('team/x');
SELECT zk_lock('/team/x', at_most => '-1s');
RESET ROLE;

-- names and roles that need quotes
SELECT zk_grant('/O''Odd "team"', 'public', 'look');
SET ROLE "regress_zklock_O'Odd";
SELECT zk_lock('/O''Odd "team"/x');
RESET ROLE;

-- without its table, nothing is known: a session that has not looked before may
-- do nothing
ALTER EXTENSION zklock DROP VIEW zk_grants;
ALTER EXTENSION zklock DROP TABLE zk_rights;
\c -
SET ROLE regress_zklock_user;
SELECT zk_lock('/team/x');
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;
SELECT zk_grant('/team', 'public');
ALTER EXTENSION zklock ADD TABLE zk_rights;
ALTER EXTENSION zklock ADD VIEW zk_grants;
SET ROLE regress_zklock_user;
SELECT zk_lock('/team/x');
RESET ROLE;

TRUNCATE zk_rights;
DROP OWNED BY regress_zklock_owner, regress_zklock_user, "regress_zklock_O'Odd";
DROP ROLE regress_zklock_owner, regress_zklock_user, "regress_zklock_O'Odd";
