--
-- Revocation and leadership, as far as they need no ZooKeeper: bad arguments,
-- and the errors if nobody answers.
--
\set SHOW_CONTEXT never

-- names
SELECT zk_revoke('x');
SELECT zk_revoke('/');
SELECT zk_lead('x');
SELECT zk_lead('/a/_c_00000000-0000-8000-8000-000000000000-latch-0000000001');
SELECT zk_resign('x');
SELECT * FROM zk_leader('x');

-- NULL is no name of what is taken or released; elsewhere it gives NULL
\set VERBOSITY sqlstate
SELECT zk_lead(NULL);
SELECT zk_lead(NULL, '-1s', 'me');
SELECT zk_resign(NULL);
\set VERBOSITY default
SELECT zk_revoke(NULL) IS NULL AS nothing;
SELECT count(*) FROM zk_leader(NULL);

-- participants: 255 bytes at most, in UTF-8
SELECT zk_lead('/x', id => repeat('x', 256));
\echo :LAST_ERROR_SQLSTATE
SELECT zk_lead('/x', id => repeat(chr(228), 128));

-- timeouts
SELECT zk_lead('/x', '-1s');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_lead('/x', '-1 microsecond', 'me');

-- not leading
SELECT zk_resign('/x');

-- settings
SET zklock.on_revoke = 'shrug';
SET zklock.on_revoke = 'ignore';
SET zklock.on_revoke = 'terminate';
SET zklock.on_revoke = 'cancel';
SET zklock.on_revoke = 'notice';
