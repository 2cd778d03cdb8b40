--
-- Lifetimes, as far as they need no ZooKeeper: transactions around locks that
-- are not granted or not held.
--
\set SHOW_CONTEXT never
SET zklock.answer_timeout = '50ms';

-- releasing a lock that is not held
SELECT zk_unlock('/batch/nightly');
SELECT zk_unlock_shared('/batch/nightly');
SELECT zk_unlock_all();
SELECT zk_fencing_token('/batch/nightly');

-- a failed request leaves a savepoint as it was
BEGIN;
CREATE TEMP TABLE done(step text);
SAVEPOINT attempt;
INSERT INTO done VALUES ('lost');
\set VERBOSITY sqlstate
SELECT zk_xact_lock('/batch/nightly') FROM pg_sleep(0), set_config('lock_timeout', '50ms', true);
\set VERBOSITY default
ROLLBACK TO attempt;
INSERT INTO done VALUES ('kept');
SELECT zk_unlock('/batch/nightly');
RELEASE attempt;
COMMIT;
SELECT * FROM done;

-- and so does an exception block, however deep
CREATE FUNCTION try_deep(depth int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	IF depth = 0 THEN
		RETURN zk_try_xact_lock('/batch/deep')::text;
	END IF;
	RETURN try_deep(depth - 1);
EXCEPTION WHEN lock_not_available THEN
	RETURN 'never';
END $$;
DO $$
BEGIN
	PERFORM try_deep(5);
EXCEPTION WHEN connection_failure THEN
	RAISE NOTICE 'caught';
END $$;
DROP FUNCTION try_deep(int);

-- a transaction without locks can be prepared
BEGIN;
INSERT INTO pg_temp.done VALUES ('x');
ROLLBACK;
BEGIN;
CREATE TABLE prepared(x int);
PREPARE TRANSACTION 'zklock';
COMMIT PREPARED 'zklock';
DROP TABLE prepared;

-- so is DISCARD ALL
DISCARD ALL;
SELECT all_quiet();
