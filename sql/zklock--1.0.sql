/* sql/zklock--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION zklock" to load this file. \quit

-- The functions would say so too, but later.
DO $$
BEGIN
	IF current_setting('zklock.root', true) IS NULL THEN
		RAISE WARNING 'zklock is not loaded'
			USING HINT = 'Add zklock to "shared_preload_libraries" and restart the server.';
	END IF;
END
$$;

--
-- Acquiring: they return the fencing token, or whether a try succeeded
--
CREATE FUNCTION zk_lock(path text)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_lock'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_lock_shared(path text)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_lock_shared'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_xact_lock(path text)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_xact_lock'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_xact_lock_shared(path text)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_xact_lock_shared'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_try_lock(path text, timeout interval DEFAULT '0')
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_lock'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_try_lock_shared(path text, timeout interval DEFAULT '0')
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_lock_shared'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_try_xact_lock(path text, timeout interval DEFAULT '0')
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_xact_lock'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_try_xact_lock_shared(path text, timeout interval DEFAULT '0')
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_xact_lock_shared'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

--
-- Releasing, and looking at one's own
--
CREATE FUNCTION zk_unlock(path text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_unlock'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_unlock_shared(path text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_unlock_shared'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_unlock_all()
RETURNS void
AS 'MODULE_PATHNAME', 'zkl_sql_unlock_all'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_fencing_token(path text)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_fencing_token'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

--
-- Looking at all
--
CREATE FUNCTION zk_get_locks(
	OUT path text,
	OUT mode text,
	OUT lifetime text,
	OUT granted boolean,
	OUT state text,
	OUT pid integer,
	OUT fencing_token bigint,
	OUT holds integer,
	OUT requested_at timestamptz,
	OUT granted_at timestamptz,
	OUT znode text,
	OUT revoked boolean)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'zkl_sql_locks'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_get_status(
	OUT state text,
	OUT server text,
	OUT session_id text,
	OUT session_timeout interval,
	OUT lease_remaining interval,
	OUT worker_pid integer,
	OUT session_pid integer,
	OUT locks_held bigint,
	OUT waiting bigint,
	OUT connects bigint,
	OUT sessions_lost bigint,
	OUT batches bigint,
	OUT operations bigint,
	OUT listings bigint,
	OUT creates bigint,
	OUT continuity double precision,
	OUT watches bigint,
	OUT last_error text,
	OUT last_error_at timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'zkl_sql_status'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
ROWS 1;

CREATE FUNCTION zk_queue(
	path text,
	OUT "position" integer,
	OUT mode text,
	OUT granted boolean,
	OUT server text,
	OUT database text,
	OUT pid integer,
	OUT usename text,
	OUT application_name text,
	OUT znode text,
	OUT session_id text,
	OUT created_at timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'zkl_sql_queue'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

--
-- For operators
--
CREATE FUNCTION zk_break_lock(path text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_break_lock'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_accept_lower_tokens()
RETURNS void
AS 'MODULE_PATHNAME', 'zkl_sql_accept_lower_tokens'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE VIEW zk_locks AS SELECT * FROM zk_get_locks();

CREATE VIEW zk_status AS SELECT * FROM zk_get_status();

--
-- What they are for
--
COMMENT ON FUNCTION zk_lock(text) IS
'wait for a distributed lock, exclusive, until unlocked or the end of the session';
COMMENT ON FUNCTION zk_lock_shared(text) IS
'wait for a distributed lock, shared, until unlocked or the end of the session';
COMMENT ON FUNCTION zk_xact_lock(text) IS
'wait for a distributed lock, exclusive, until the end of the transaction';
COMMENT ON FUNCTION zk_xact_lock_shared(text) IS
'wait for a distributed lock, shared, until the end of the transaction';
COMMENT ON FUNCTION zk_try_lock(text, interval) IS
'try to get a distributed lock, exclusive, until unlocked or the end of the session';
COMMENT ON FUNCTION zk_try_lock_shared(text, interval) IS
'try to get a distributed lock, shared, until unlocked or the end of the session';
COMMENT ON FUNCTION zk_try_xact_lock(text, interval) IS
'try to get a distributed lock, exclusive, until the end of the transaction';
COMMENT ON FUNCTION zk_try_xact_lock_shared(text, interval) IS
'try to get a distributed lock, shared, until the end of the transaction';
COMMENT ON FUNCTION zk_unlock(text) IS
'release an exclusive distributed lock of session lifetime';
COMMENT ON FUNCTION zk_unlock_shared(text) IS
'release a shared distributed lock of session lifetime';
COMMENT ON FUNCTION zk_unlock_all() IS
'release all distributed locks of session lifetime';
COMMENT ON FUNCTION zk_fencing_token(text) IS
'fencing token of a distributed lock that this session holds';
COMMENT ON FUNCTION zk_get_locks() IS
'rows of the view zk_locks';
COMMENT ON FUNCTION zk_get_status() IS
'row of the view zk_status';
COMMENT ON FUNCTION zk_queue(text) IS
'everyone who holds or awaits a distributed lock, on all servers';
COMMENT ON FUNCTION zk_break_lock(text) IS
'remove the head of the queue of a distributed lock, whoever owns it';
COMMENT ON FUNCTION zk_accept_lower_tokens() IS
'go on with an ensemble whose fencing tokens begin lower than before';
COMMENT ON VIEW zk_locks IS
'distributed locks held or awaited by sessions of this server';
COMMENT ON VIEW zk_status IS
'the connection of this server to ZooKeeper';

--
-- Nothing is for everybody
--
REVOKE ALL ON FUNCTION zk_lock(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_lock_shared(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_xact_lock(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_xact_lock_shared(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_try_lock(text, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_try_lock_shared(text, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_try_xact_lock(text, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_try_xact_lock_shared(text, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_unlock(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_unlock_shared(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_unlock_all() FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_fencing_token(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_get_locks() FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_get_status() FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_queue(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_break_lock(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_accept_lower_tokens() FROM PUBLIC;
REVOKE ALL ON zk_locks FROM PUBLIC;
REVOKE ALL ON zk_status FROM PUBLIC;

GRANT EXECUTE ON FUNCTION zk_get_locks() TO pg_monitor;
GRANT EXECUTE ON FUNCTION zk_get_status() TO pg_monitor;
GRANT EXECUTE ON FUNCTION zk_queue(text) TO pg_monitor;
GRANT SELECT ON zk_locks TO pg_monitor;
GRANT SELECT ON zk_status TO pg_monitor;

--
-- Several locks at once, all or nothing; tokens in the order of the names
--
CREATE FUNCTION zk_lock(paths text[])
RETURNS bigint[]
AS 'MODULE_PATHNAME', 'zkl_sql_lock_all'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_lock_shared(paths text[])
RETURNS bigint[]
AS 'MODULE_PATHNAME', 'zkl_sql_lock_all_shared'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_xact_lock(paths text[])
RETURNS bigint[]
AS 'MODULE_PATHNAME', 'zkl_sql_xact_lock_all'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_xact_lock_shared(paths text[])
RETURNS bigint[]
AS 'MODULE_PATHNAME', 'zkl_sql_xact_lock_all_shared'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_try_lock(paths text[], timeout interval DEFAULT '0')
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_lock_all'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_try_lock_shared(paths text[], timeout interval DEFAULT '0')
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_lock_all_shared'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_try_xact_lock(paths text[], timeout interval DEFAULT '0')
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_xact_lock_all'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_try_xact_lock_shared(paths text[], timeout interval DEFAULT '0')
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_xact_lock_all_shared'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_unlock(paths text[])
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_unlock_all_of'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_unlock_shared(paths text[])
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_unlock_all_of_shared'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION zk_lock(text[]) IS
'wait for several distributed locks, exclusive, until unlocked or the end of the session';
COMMENT ON FUNCTION zk_lock_shared(text[]) IS
'wait for several distributed locks, shared, until unlocked or the end of the session';
COMMENT ON FUNCTION zk_xact_lock(text[]) IS
'wait for several distributed locks, exclusive, until the end of the transaction';
COMMENT ON FUNCTION zk_xact_lock_shared(text[]) IS
'wait for several distributed locks, shared, until the end of the transaction';
COMMENT ON FUNCTION zk_try_lock(text[], interval) IS
'try to get several distributed locks, exclusive, until unlocked or the end of the session';
COMMENT ON FUNCTION zk_try_lock_shared(text[], interval) IS
'try to get several distributed locks, shared, until unlocked or the end of the session';
COMMENT ON FUNCTION zk_try_xact_lock(text[], interval) IS
'try to get several distributed locks, exclusive, until the end of the transaction';
COMMENT ON FUNCTION zk_try_xact_lock_shared(text[], interval) IS
'try to get several distributed locks, shared, until the end of the transaction';
COMMENT ON FUNCTION zk_unlock(text[]) IS
'release several exclusive distributed locks of session lifetime';
COMMENT ON FUNCTION zk_unlock_shared(text[]) IS
'release several shared distributed locks of session lifetime';

REVOKE ALL ON FUNCTION zk_lock(text[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_lock_shared(text[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_xact_lock(text[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_xact_lock_shared(text[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_try_lock(text[], interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_try_lock_shared(text[], interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_try_xact_lock(text[], interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_try_xact_lock_shared(text[], interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_unlock(text[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_unlock_shared(text[]) FROM PUBLIC;

--
-- Barriers
--
CREATE FUNCTION zk_barrier_enter(path text, parties integer, timeout interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_barrier_enter'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION zk_barrier_leave(path text, timeout interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_barrier_leave'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION zk_barrier(path text, parties integer, timeout interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_barrier'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION zk_barrier_enter(text, integer, interval) IS
'wait until so many sessions, on all servers, are in, to start together';
COMMENT ON FUNCTION zk_barrier_leave(text, interval) IS
'wait until all who are in want to leave, to end together';
COMMENT ON FUNCTION zk_barrier(text, integer, interval) IS
'wait until so many sessions, on all servers, have come, and go on';

REVOKE ALL ON FUNCTION zk_barrier_enter(text, integer, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_barrier_leave(text, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_barrier(text, integer, interval) FROM PUBLIC;

--
-- Semaphores
--
CREATE FUNCTION zk_acquire(path text, max_leases integer,
	leases integer DEFAULT 1)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_acquire'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_xact_acquire(path text, max_leases integer,
	leases integer DEFAULT 1)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_xact_acquire'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_try_acquire(path text, max_leases integer,
	leases integer DEFAULT 1, timeout interval DEFAULT '0')
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_acquire'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_try_xact_acquire(path text, max_leases integer,
	leases integer DEFAULT 1, timeout interval DEFAULT '0')
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_xact_acquire'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_release(path text, leases integer DEFAULT 1)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_release'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION zk_acquire(text, integer, integer) IS
'wait for leases of a semaphore, until released or the end of the session';
COMMENT ON FUNCTION zk_xact_acquire(text, integer, integer) IS
'wait for leases of a semaphore, until the end of the transaction';
COMMENT ON FUNCTION zk_try_acquire(text, integer, integer, interval) IS
'try to get leases of a semaphore, until released or the end of the session';
COMMENT ON FUNCTION zk_try_xact_acquire(text, integer, integer, interval) IS
'try to get leases of a semaphore, until the end of the transaction';
COMMENT ON FUNCTION zk_release(text, integer) IS
'release leases of a semaphore of session lifetime';

REVOKE ALL ON FUNCTION zk_acquire(text, integer, integer) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_xact_acquire(text, integer, integer) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_try_acquire(text, integer, integer, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_try_xact_acquire(text, integer, integer, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_release(text, integer) FROM PUBLIC;

--
-- Asking holders to give a lock up
--
CREATE FUNCTION zk_revoke(path text)
RETURNS integer
AS 'MODULE_PATHNAME', 'zkl_sql_revoke'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION zk_revoke(text) IS
'ask all who hold a distributed lock to give it up';

REVOKE ALL ON FUNCTION zk_revoke(text) FROM PUBLIC;

--
-- Leaders
--
CREATE FUNCTION zk_lead(path text, id text DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_lead'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION zk_resign(path text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_resign'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION zk_leader(
	path text,
	OUT id text,
	OUT znode text,
	OUT session_id text,
	OUT since timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'zkl_sql_leader'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
ROWS 1;

COMMENT ON FUNCTION zk_lead(text, text) IS
'wait to be the leader, until resigning or the end of the session';
COMMENT ON FUNCTION zk_resign(text) IS
'be the leader no longer';
COMMENT ON FUNCTION zk_leader(text) IS
'the present leader, if there is one, and when it stood for that';

REVOKE ALL ON FUNCTION zk_lead(text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_resign(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_leader(text) FROM PUBLIC;

GRANT EXECUTE ON FUNCTION zk_leader(text) TO pg_monitor;

--
-- Once per period or run key, over all servers
--
CREATE FUNCTION zk_once(path text, period interval,
	guarantee text DEFAULT 'at_most_once')
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_once_period'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_once(text, interval, text) IS
'whether this transaction is the one of all servers to do a job in this period';
REVOKE ALL ON FUNCTION zk_once(text, interval, text) FROM PUBLIC;

CREATE FUNCTION zk_once(path text, run_key text,
	guarantee text DEFAULT 'at_most_once')
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_once_key'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_once(text, text, text) IS
'whether this transaction is the one of all servers to do the run of that key';
REVOKE ALL ON FUNCTION zk_once(text, text, text) FROM PUBLIC;

CREATE FUNCTION zk_once_reset(path text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_once_reset'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_once_reset(text) IS
'forget which turns of a job were used up, so that it can run again';
REVOKE ALL ON FUNCTION zk_once_reset(text) FROM PUBLIC;

--
-- Holding for a bounded time: at most so long from the grant on, and at least,
-- also if it is released before.  NULL: no bound
--
CREATE FUNCTION zk_lock(path text, at_most interval, at_least interval DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_lock'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION zk_lock_shared(path text, at_most interval, at_least interval DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_lock_shared'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION zk_xact_lock(path text, at_most interval, at_least interval DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_xact_lock'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION zk_xact_lock_shared(path text, at_most interval, at_least interval DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_xact_lock_shared'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION zk_try_lock(path text, timeout interval, at_most interval, at_least interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_lock'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION zk_try_lock_shared(path text, timeout interval, at_most interval, at_least interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_lock_shared'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION zk_try_xact_lock(path text, timeout interval, at_most interval, at_least interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_xact_lock'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION zk_try_xact_lock_shared(path text, timeout interval, at_most interval, at_least interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_xact_lock_shared'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION zk_extend(path text, at_most interval)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_extend'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION zk_lock(text, interval, interval) IS
'wait for a distributed lock, exclusive, until unlocked or the end of the session, for a bounded time';
COMMENT ON FUNCTION zk_lock_shared(text, interval, interval) IS
'wait for a distributed lock, shared, until unlocked or the end of the session, for a bounded time';
COMMENT ON FUNCTION zk_xact_lock(text, interval, interval) IS
'wait for a distributed lock, exclusive, until the end of the transaction, for a bounded time';
COMMENT ON FUNCTION zk_xact_lock_shared(text, interval, interval) IS
'wait for a distributed lock, shared, until the end of the transaction, for a bounded time';
COMMENT ON FUNCTION zk_try_lock(text, interval, interval, interval) IS
'try to get a distributed lock, exclusive, until unlocked or the end of the session, for a bounded time';
COMMENT ON FUNCTION zk_try_lock_shared(text, interval, interval, interval) IS
'try to get a distributed lock, shared, until unlocked or the end of the session, for a bounded time';
COMMENT ON FUNCTION zk_try_xact_lock(text, interval, interval, interval) IS
'try to get a distributed lock, exclusive, until the end of the transaction, for a bounded time';
COMMENT ON FUNCTION zk_try_xact_lock_shared(text, interval, interval, interval) IS
'try to get a distributed lock, shared, until the end of the transaction, for a bounded time';
COMMENT ON FUNCTION zk_extend(text, interval) IS
'let the time for which a distributed lock may be held begin anew';

REVOKE ALL ON FUNCTION zk_lock(text, interval, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_lock_shared(text, interval, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_xact_lock(text, interval, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_xact_lock_shared(text, interval, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_try_lock(text, interval, interval, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_try_lock_shared(text, interval, interval, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_try_xact_lock(text, interval, interval, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_try_xact_lock_shared(text, interval, interval, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION zk_extend(text, interval) FROM PUBLIC;

--
-- Looking into the worker
--
CREATE FUNCTION zk_dump(
	OUT path text,
	OUT item text,
	OUT pid integer,
	OUT state text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'zkl_sql_dump'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION zk_dump() IS
'all that the worker of this server believes: per lock (path; NULL: the server itself) what each line is about (item), its backend (pid), and the state in words and key=value pairs';

REVOKE ALL ON FUNCTION zk_dump() FROM PUBLIC;
