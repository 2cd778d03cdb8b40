--
-- Leaders and requests for a release, as far as they need no ZooKeeper: bad arguments,
-- and the errors if nobody answers.
--
\set SHOW_CONTEXT never

-- names
SELECT zk_request_release('x');
SELECT zk_request_release('/');
SELECT zk_lead('x');
SELECT zk_lead('/a/_c_00000000-0000-8000-8000-000000000000-latch-0000000001');
SELECT zk_resign('x');
SELECT * FROM zk_leader('x');

-- NULL is no name of what is taken or released; of what is looked at, it gives NULL
\set VERBOSITY sqlstate
SELECT zk_lead(NULL);
SELECT zk_lead(NULL, 'me', '-1s');
SELECT zk_resign(NULL);
\set VERBOSITY default
SELECT zk_request_release(NULL) IS NULL AS nothing;
SELECT count(*) FROM zk_leader(NULL);

-- participants: 255 bytes at most, in UTF-8
SELECT zk_lead('/x', id => repeat('x', 256));
\echo :LAST_ERROR_SQLSTATE
SELECT zk_lead('/x', id => repeat(chr(228), 128));

-- timeouts
SELECT zk_lead('/x', timeout => '-1s');
\echo :LAST_ERROR_SQLSTATE
SELECT zk_lead('/x', 'me', '-1 microsecond');

-- not leading
SELECT zk_resign('/x');

-- settings
SET zklock.on_release_request = 'shrug';
SET zklock.on_release_request = 'ignore';
SET zklock.on_release_request = 'terminate';
SET zklock.on_release_request = 'cancel';
SET zklock.on_release_request = 'notice';
