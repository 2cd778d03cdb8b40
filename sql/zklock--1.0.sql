/* sql/zklock--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION zklock" to load this file. \quit

-- The functions would say so too, but later.
DO $$
BEGIN
	IF current_setting('zklock.root', true) IS NULL THEN
		RAISE WARNING 'zklock is not loaded'
			USING HINT = 'Add "zklock" to "shared_preload_libraries" and restart the server.';
	END IF;
END
$$;

--
-- Locks.  If the timeout ends, zk_lock() raises an error and zk_try_lock()
-- returns false; a timeout of NULL never ends.  The session loses the lock when
-- it has held it for at_most.  No other session gets the lock before at_least
-- has passed since the grant, even if it was released.  NULL means no limit.
--
CREATE FUNCTION zk_lock(path text, timeout interval DEFAULT NULL,
	at_most interval DEFAULT NULL, at_least interval DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_lock'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_lock(text, interval, interval, interval) IS
'acquire an exclusive distributed lock until it is unlocked or the session ends; returns its fencing token';

CREATE FUNCTION zk_lock_shared(path text, timeout interval DEFAULT NULL,
	at_most interval DEFAULT NULL, at_least interval DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_lock_shared'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_lock_shared(text, interval, interval, interval) IS
'acquire a shared distributed lock until it is unlocked or the session ends; returns its fencing token';

CREATE FUNCTION zk_xact_lock(path text, timeout interval DEFAULT NULL,
	at_most interval DEFAULT NULL, at_least interval DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_xact_lock'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_xact_lock(text, interval, interval, interval) IS
'acquire an exclusive distributed lock until the transaction ends; returns its fencing token';

CREATE FUNCTION zk_xact_lock_shared(path text, timeout interval DEFAULT NULL,
	at_most interval DEFAULT NULL, at_least interval DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_xact_lock_shared'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_xact_lock_shared(text, interval, interval, interval) IS
'acquire a shared distributed lock until the transaction ends; returns its fencing token';

CREATE FUNCTION zk_try_lock(path text, timeout interval DEFAULT '0',
	at_most interval DEFAULT NULL, at_least interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_lock'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_try_lock(text, interval, interval, interval) IS
'try to acquire an exclusive distributed lock until it is unlocked or the session ends; returns whether it was acquired';

CREATE FUNCTION zk_try_lock_shared(path text, timeout interval DEFAULT '0',
	at_most interval DEFAULT NULL, at_least interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_lock_shared'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_try_lock_shared(text, interval, interval, interval) IS
'try to acquire a shared distributed lock until it is unlocked or the session ends; returns whether it was acquired';

CREATE FUNCTION zk_try_xact_lock(path text, timeout interval DEFAULT '0',
	at_most interval DEFAULT NULL, at_least interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_xact_lock'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_try_xact_lock(text, interval, interval, interval) IS
'try to acquire an exclusive distributed lock until the transaction ends; returns whether it was acquired';

CREATE FUNCTION zk_try_xact_lock_shared(path text, timeout interval DEFAULT '0',
	at_most interval DEFAULT NULL, at_least interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_xact_lock_shared'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_try_xact_lock_shared(text, interval, interval, interval) IS
'try to acquire a shared distributed lock until the transaction ends; returns whether it was acquired';

--
-- The same, as procedures: they wait without a snapshot.
--
CREATE PROCEDURE zk_await_lock(path text, timeout interval DEFAULT NULL,
	at_most interval DEFAULT NULL, at_least interval DEFAULT NULL)
AS 'MODULE_PATHNAME', 'zkl_sql_await_lock'
LANGUAGE C;
COMMENT ON PROCEDURE zk_await_lock(text, interval, interval, interval) IS
'acquire an exclusive distributed lock until it is unlocked or the session ends; the wait holds back no VACUUM';

CREATE PROCEDURE zk_await_lock_shared(path text, timeout interval DEFAULT NULL,
	at_most interval DEFAULT NULL, at_least interval DEFAULT NULL)
AS 'MODULE_PATHNAME', 'zkl_sql_await_lock_shared'
LANGUAGE C;
COMMENT ON PROCEDURE zk_await_lock_shared(text, interval, interval, interval) IS
'acquire a shared distributed lock until it is unlocked or the session ends; the wait holds back no VACUUM';

CREATE PROCEDURE zk_await_xact_lock(path text, timeout interval DEFAULT NULL,
	at_most interval DEFAULT NULL, at_least interval DEFAULT NULL)
AS 'MODULE_PATHNAME', 'zkl_sql_await_xact_lock'
LANGUAGE C;
COMMENT ON PROCEDURE zk_await_xact_lock(text, interval, interval, interval) IS
'acquire an exclusive distributed lock until the transaction ends; the wait holds back no VACUUM';

CREATE PROCEDURE zk_await_xact_lock_shared(path text, timeout interval DEFAULT NULL,
	at_most interval DEFAULT NULL, at_least interval DEFAULT NULL)
AS 'MODULE_PATHNAME', 'zkl_sql_await_xact_lock_shared'
LANGUAGE C;
COMMENT ON PROCEDURE zk_await_xact_lock_shared(text, interval, interval, interval) IS
'acquire a shared distributed lock until the transaction ends; the wait holds back no VACUUM';

CREATE FUNCTION zk_unlock(path text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_unlock'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_unlock(text) IS
'release an exclusive distributed lock that the session holds; returns whether it was held';

CREATE FUNCTION zk_unlock_shared(path text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_unlock_shared'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_unlock_shared(text) IS
'release a shared distributed lock that the session holds; returns whether it was held';

CREATE FUNCTION zk_unlock_all()
RETURNS void
AS 'MODULE_PATHNAME', 'zkl_sql_unlock_all'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_unlock_all() IS
'release everything that the session holds: locks, permits, leaderships and barriers';

CREATE FUNCTION zk_extend(path text, at_most interval)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_extend'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_extend(text, interval) IS
'set a new at_most, counted from now, for a distributed lock that is held; returns whether it is held';

CREATE FUNCTION zk_assert_lock(path text, token bigint DEFAULT NULL)
RETURNS interval
AS 'MODULE_PATHNAME', 'zkl_sql_assert_lock'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_assert_lock(text, bigint) IS
'for how long the session surely has the lock, leadership or permits of that name, or the reservation with that token; an error if it may have lost them';

CREATE FUNCTION zk_fencing_token(path text)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_fencing_token'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_fencing_token(text) IS
'fencing token of the lock, leadership or permits of that name that the session holds, or null';

--
-- Reservations: exclusive locks that belong to a token, not to a session
--
CREATE FUNCTION zk_reserve(path text, duration interval,
	timeout interval DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_reserve'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_reserve(text, interval, interval) IS
'acquire an exclusive distributed lock for a time that outlasts the session; returns its token';

CREATE FUNCTION zk_try_reserve(path text, duration interval,
	timeout interval DEFAULT '0')
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_try_reserve'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_try_reserve(text, interval, interval) IS
'try to acquire an exclusive distributed lock for a time that outlasts the session; returns its token, or null if it was not acquired';

CREATE PROCEDURE zk_await_reservation(path text, duration interval,
	timeout interval DEFAULT NULL, INOUT token bigint DEFAULT NULL)
AS 'MODULE_PATHNAME', 'zkl_sql_await_reservation'
LANGUAGE C;
COMMENT ON PROCEDURE zk_await_reservation(text, interval, interval, bigint) IS
'the same as zk_reserve(); the wait holds back no VACUUM';

CREATE FUNCTION zk_renew_reservation(path text, token bigint, duration interval)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_renew_reservation'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_renew_reservation(text, bigint, interval) IS
'set a new duration, counted from now, for a reservation; returns whether it still existed';

CREATE FUNCTION zk_cancel_reservation(path text, token bigint)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_cancel_reservation'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_cancel_reservation(text, bigint) IS
'end a reservation; returns whether it still existed';

-- Tickets: requests that wait without a session, and become reservations

CREATE FUNCTION zk_enqueue(path text, duration interval,
	claim_within interval DEFAULT '30 seconds')
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_enqueue'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_enqueue(text, interval, interval) IS
'request an exclusive lock without waiting for it; returns a ticket, which can be claimed within that time after its grant, as a reservation for that duration';

CREATE FUNCTION zk_enqueue_all(paths text[], duration interval,
	claim_within interval DEFAULT '30 seconds')
RETURNS bigint[]
AS 'MODULE_PATHNAME', 'zkl_sql_enqueue_all'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_enqueue_all(text[], interval, interval) IS
'the same for several locks, each with a ticket of its own; returns the tickets in the order of the names';

CREATE FUNCTION zk_claim_ticket(ticket bigint)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_claim_ticket'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_claim_ticket(bigint) IS
'make a granted ticket a reservation; returns its fencing token, or null if the ticket still waits';

CREATE FUNCTION zk_claim_next(timeout interval DEFAULT NULL, paths text[] DEFAULT NULL,
	OUT ticket bigint, OUT path text, OUT token bigint)
AS 'MODULE_PATHNAME', 'zkl_sql_claim_next'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_claim_next(interval, text[]) IS
'wait for the next ticket of this role that is granted on this server, and claim it; returns nulls if none is within the timeout';

CREATE PROCEDURE zk_await_ticket(timeout interval DEFAULT NULL,
	INOUT ticket bigint DEFAULT NULL, INOUT path text DEFAULT NULL,
	INOUT token bigint DEFAULT NULL)
AS 'MODULE_PATHNAME', 'zkl_sql_await_ticket'
LANGUAGE C;
COMMENT ON PROCEDURE zk_await_ticket(interval, bigint, text, bigint) IS
'the same as zk_claim_next(); the wait holds back no VACUUM';

CREATE FUNCTION zk_withdraw(ticket bigint)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_withdraw'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_withdraw(bigint) IS
'end a ticket that was not claimed, or, with null, all of this role; returns whether there was one';

--
-- Several exclusive locks at once: all or none.  The tokens are in the order of the
-- paths.
--
CREATE FUNCTION zk_multilock(paths text[], timeout interval DEFAULT NULL)
RETURNS bigint[]
AS 'MODULE_PATHNAME', 'zkl_sql_multilock'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_multilock(text[], interval) IS
'acquire several exclusive distributed locks until they are unlocked or the session ends; returns their fencing tokens';

CREATE FUNCTION zk_xact_multilock(paths text[], timeout interval DEFAULT NULL)
RETURNS bigint[]
AS 'MODULE_PATHNAME', 'zkl_sql_xact_multilock'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_xact_multilock(text[], interval) IS
'acquire several exclusive distributed locks until the transaction ends; returns their fencing tokens';

CREATE FUNCTION zk_try_multilock(paths text[], timeout interval DEFAULT '0')
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_multilock'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_try_multilock(text[], interval) IS
'try to acquire several exclusive distributed locks until they are unlocked or the session ends; returns whether all were acquired';

CREATE FUNCTION zk_try_xact_multilock(paths text[],
	timeout interval DEFAULT '0')
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_xact_multilock'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_try_xact_multilock(text[], interval) IS
'try to acquire several exclusive distributed locks until the transaction ends; returns whether all were acquired';

CREATE FUNCTION zk_multiunlock(paths text[])
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_multiunlock'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_multiunlock(text[]) IS
'release several exclusive distributed locks that the session holds; returns whether all were held';

--
-- Semaphores.  Each call names the maximum: the second argument is the number of permits,
-- as that of zk_release_permits(), so the maximum has no place that is hard to tell from it.
--
CREATE FUNCTION zk_acquire_permits(path text, permits integer DEFAULT 1,
	max_permits integer DEFAULT NULL, timeout interval DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_acquire_permits'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_acquire_permits(text, integer, integer, interval) IS
'acquire permits of a semaphore until they are released or the session ends; returns the highest of their fencing tokens';

CREATE FUNCTION zk_xact_acquire_permits(path text, permits integer DEFAULT 1,
	max_permits integer DEFAULT NULL, timeout interval DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_xact_acquire_permits'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_xact_acquire_permits(text, integer, integer, interval) IS
'acquire permits of a semaphore until the transaction ends; returns the highest of their fencing tokens';

CREATE FUNCTION zk_try_acquire_permits(path text, permits integer DEFAULT 1,
	max_permits integer DEFAULT NULL, timeout interval DEFAULT '0')
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_acquire_permits'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_try_acquire_permits(text, integer, integer, interval) IS
'try to acquire permits of a semaphore until they are released or the session ends; returns whether all were acquired';

CREATE FUNCTION zk_try_xact_acquire_permits(path text, permits integer DEFAULT 1,
	max_permits integer DEFAULT NULL, timeout interval DEFAULT '0')
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_xact_acquire_permits'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_try_xact_acquire_permits(text, integer, integer, interval) IS
'try to acquire permits of a semaphore until the transaction ends; returns whether all were acquired';

CREATE FUNCTION zk_release_permits(path text, permits integer DEFAULT 1)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_release_permits'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_release_permits(text, integer) IS
'release permits of a semaphore that the session holds; returns whether so many were held';

--
-- Leaders
--
CREATE FUNCTION zk_lead(path text, id text DEFAULT NULL,
	timeout interval DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_lead'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_lead(text, text, interval) IS
'become the leader, until the session resigns or ends; returns the fencing token of the leadership';

CREATE FUNCTION zk_resign(path text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_resign'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_resign(text) IS
'stop being the leader; returns whether the session was the leader';

--
-- Barriers
--
CREATE FUNCTION zk_barrier_enter(path text, parties integer,
	timeout interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_barrier_enter'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_barrier_enter(text, integer, interval) IS
'enter a barrier and wait until the given number of sessions, on all servers, is in; returns false if the timeout ended first';

CREATE FUNCTION zk_barrier_leave(path text, timeout interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_barrier_leave'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_barrier_leave(text, interval) IS
'leave a barrier and wait until all its members leave; returns false if the timeout ended first';

CREATE FUNCTION zk_barrier(path text, parties integer,
	timeout interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_barrier'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_barrier(text, integer, interval) IS
'wait until the given number of sessions, on all servers, has arrived; returns false if the timeout ended first';

--
-- Once per period or run key, across all servers
--
CREATE FUNCTION zk_time()
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'zkl_sql_time'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_time() IS
'time by the clock of ZooKeeper, by which zk_once() counts periods';

CREATE FUNCTION zk_once(path text, period interval DEFAULT NULL, zone text DEFAULT 'UTC',
	guarantee text DEFAULT 'at_most_once', called_at timestamptz DEFAULT NULL,
	key text DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_once'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_once(text, interval, text, text, timestamptz, text) IS
'claim the run of a job for the current period or for a run key, across all servers; returns whether this transaction is the one to do it';

CREATE PROCEDURE zk_run_once(path text, period interval DEFAULT NULL, sql text DEFAULT NULL,
	zone text DEFAULT 'UTC', guarantee text DEFAULT 'at_most_once',
	timeout interval DEFAULT NULL, key text DEFAULT NULL,
	INOUT ran boolean DEFAULT NULL, INOUT message text DEFAULT NULL)
AS 'MODULE_PATHNAME', 'zkl_sql_run_once'
LANGUAGE C;
COMMENT ON PROCEDURE zk_run_once(text, interval, text, text, text, interval, text, boolean, text) IS
'run SQL once in each period, or once for each run key, across all servers';

CREATE PROCEDURE zk_run_exclusive(path text, sql text,
	timeout interval DEFAULT NULL,
	INOUT ran boolean DEFAULT NULL, INOUT message text DEFAULT NULL)
AS 'MODULE_PATHNAME', 'zkl_sql_run_exclusive'
LANGUAGE C;
COMMENT ON PROCEDURE zk_run_exclusive(text, text, interval, boolean, text) IS
'run SQL while no other session runs something under the same lock, across all servers';

CREATE FUNCTION zk_once_reset(path text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_once_reset'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_once_reset(text) IS
'forget the recorded runs of a job, so that it can run again; returns whether there were any';

CREATE FUNCTION zk_once_purge(unused interval)
RETURNS bigint
AS 'MODULE_PATHNAME', 'zkl_sql_once_purge'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_once_purge(interval) IS
'remove the records of jobs that have not run for that long, of other roles only as a superuser; returns how many';

--
-- Monitoring.  The functions return named row types, so that \df stays readable
-- and a later version can add a column without dropping anything.
--
CREATE TYPE zk_lock_row AS (
	path text,
	mode text,
	lifetime text,
	state text,
	pid integer,
	fencing_token bigint,
	holds integer,
	requested_at timestamptz,
	granted_at timestamptz,
	znode text,
	release_requested boolean,
	held_until timestamptz,
	promised_until timestamptz,
	datname text,
	usename text,
	application_name text);
COMMENT ON TYPE zk_lock_row IS
'row of the view zk_locks';

CREATE FUNCTION zk_get_locks()
RETURNS SETOF zk_lock_row
AS 'MODULE_PATHNAME', 'zkl_sql_locks'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_get_locks() IS
'rows of the view zk_locks: path, mode, lifetime, state, pid, fencing_token, holds, requested_at, granted_at, znode, release_requested, held_until, promised_until, datname, usename, application_name';

CREATE TYPE zk_status_row AS (
	state text,
	zookeeper_server text,
	session_id text,
	session_timeout interval,
	lease_remaining interval,
	connected_since timestamptz,
	locks_held bigint,
	waiting bigint,
	cached bigint,
	draining boolean,
	last_error text,
	last_error_at timestamptz,
	worker_pid integer,
	session_pid integer);
COMMENT ON TYPE zk_status_row IS
'row of the view zk_status';

CREATE FUNCTION zk_get_status()
RETURNS SETOF zk_status_row
AS 'MODULE_PATHNAME', 'zkl_sql_status'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
ROWS 1;
COMMENT ON FUNCTION zk_get_status() IS
'row of the view zk_status: state, zookeeper_server, session_id, session_timeout, lease_remaining, connected_since, locks_held, waiting, cached, draining, last_error, last_error_at, worker_pid, session_pid';

CREATE TYPE zk_ticket_row AS (
	ticket bigint,
	path text,
	state text,
	requested_at timestamptz,
	granted_at timestamptz,
	claim_until timestamptz,
	token bigint,
	reserved_until timestamptz);
COMMENT ON TYPE zk_ticket_row IS
'row of the view zk_tickets';

CREATE FUNCTION zk_get_tickets()
RETURNS SETOF zk_ticket_row
AS 'MODULE_PATHNAME', 'zkl_sql_tickets'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_get_tickets() IS
'rows of the view zk_tickets: ticket, path, state, requested_at, granted_at, claim_until, token, reserved_until';

CREATE TYPE zk_stat_server_row AS (
	connects bigint,
	sessions_lost bigint,
	locks_lost bigint,
	lapses bigint,
	lost_writes bigint,
	worker_starts bigint,
	connection_errors bigint,
	answer_errors bigint,
	process_errors bigint,
	settings_errors bigint,
	batches bigint,
	operations bigint,
	listings bigint,
	creates bigint,
	continuity double precision,
	watches bigint,
	deadlocks bigint,
	deadlock_checks bigint,
	given_up_checks bigint,
	unpublished_waits bigint,
	cache_takes bigint,
	recalls bigint,
	tls_version text,
	tls_cipher text,
	certificate_expires_at timestamptz,
	ca_expires_at timestamptz,
	zookeeper_certificate_expires_at timestamptz,
	stats_reset timestamptz,
	stats_evicted bigint,
	asks_sent bigint,
	words_sent bigint,
	messages_unsent bigint,
	words_taken bigint,
	words_late bigint,
	messages_refused bigint,
	messages_other_key bigint,
	tickets_enqueued bigint,
	tickets_claimed bigint,
	tickets_lapsed bigint);
COMMENT ON TYPE zk_stat_server_row IS
'row of the view zk_stat_server';

CREATE FUNCTION zk_get_stat_server()
RETURNS SETOF zk_stat_server_row
AS 'MODULE_PATHNAME', 'zkl_sql_stat_server'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
ROWS 1;
COMMENT ON FUNCTION zk_get_stat_server() IS
'row of the view zk_stat_server: connects, sessions_lost, locks_lost, lapses, lost_writes, worker_starts, connection_errors, answer_errors, process_errors, settings_errors, batches, operations, listings, creates, continuity, watches, deadlocks, deadlock_checks, given_up_checks, unpublished_waits, cache_takes, recalls, tls_version, tls_cipher, certificate_expires_at, ca_expires_at, zookeeper_certificate_expires_at, stats_reset, stats_evicted, asks_sent, words_sent, messages_unsent, words_taken, words_late, messages_refused, messages_other_key, tickets_enqueued, tickets_claimed, tickets_lapsed';

CREATE TYPE zk_stat_lock_row AS (
	path text,
	acquires bigint,
	waited bigint,
	total_wait_time double precision,
	mean_wait_time double precision,
	max_wait_time double precision,
	total_hold_time double precision,
	max_hold_time double precision,
	timeouts bigint,
	denials bigint,
	losses bigint,
	deadlocks bigint);
COMMENT ON TYPE zk_stat_lock_row IS
'row of the view zk_stat_locks';

CREATE FUNCTION zk_get_stat_locks()
RETURNS SETOF zk_stat_lock_row
AS 'MODULE_PATHNAME', 'zkl_sql_stat_locks'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_get_stat_locks() IS
'rows of the view zk_stat_locks: path, acquires, waited, total_wait_time, mean_wait_time, max_wait_time, total_hold_time, max_hold_time, timeouts, denials, losses, deadlocks';

CREATE FUNCTION zk_stat_reset()
RETURNS void
AS 'MODULE_PATHNAME', 'zkl_sql_stat_reset'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_stat_reset() IS
'empty zk_stat_locks, which counts from now on';

CREATE TYPE zk_queue_row AS (
	path text,
	"position" integer,
	granted boolean,
	mode text,
	server text,
	host text,
	pid integer,
	datname text,
	usename text,
	application_name text,
	client_addr inet,
	backend_start timestamptz,
	requested_at timestamptz,
	granted_at timestamptz,
	held_until timestamptz,
	dialect text,
	cached boolean,
	znode text,
	session_id text,
	error text);
COMMENT ON TYPE zk_queue_row IS
'row of zk_queue() and zk_fleet_locks()';
COMMENT ON COLUMN zk_queue_row.path IS
'name of the lock, or null if the role may not see it';
COMMENT ON COLUMN zk_queue_row."position" IS
'place in the order of the queue, from 1 on';
COMMENT ON COLUMN zk_queue_row.granted IS
'whether the entry holds the lock';
COMMENT ON COLUMN zk_queue_row.mode IS
'exclusive, shared, permit, leader or member; null for a directory that cannot be read';
COMMENT ON COLUMN zk_queue_row.server IS
'name of the PostgreSQL server, or what another client wrote into the znode, or null';
COMMENT ON COLUMN zk_queue_row.host IS
'host of the server, or null if it is not known or the role may not see it';
COMMENT ON COLUMN zk_queue_row.pid IS
'process ID of the session on its server, or null';
COMMENT ON COLUMN zk_queue_row.datname IS
'database of the session, or null';
COMMENT ON COLUMN zk_queue_row.usename IS
'user name of the session, or null';
COMMENT ON COLUMN zk_queue_row.application_name IS
'application name of the session at the time of the request, or null';
COMMENT ON COLUMN zk_queue_row.client_addr IS
'address of the client of the session, or null';
COMMENT ON COLUMN zk_queue_row.backend_start IS
'time at which the session began, or null';
COMMENT ON COLUMN zk_queue_row.requested_at IS
'time of the request, by the clock of its server; of another client, by that of ZooKeeper';
COMMENT ON COLUMN zk_queue_row.granted_at IS
'time of the grant, by the clock of the server that holds the lock, or null';
COMMENT ON COLUMN zk_queue_row.held_until IS
'time at which the session loses the lock, by at_most, or a reservation of this server ends, or null';
COMMENT ON COLUMN zk_queue_row.dialect IS
'curator_rw, curator_mutex or kazoo; curator for leaders, permits and members';
COMMENT ON COLUMN zk_queue_row.cached IS
'whether the server keeps the lock for its sessions, and none of them holds it; of another server: whether that may be so';
COMMENT ON COLUMN zk_queue_row.znode IS
'path of the znode in ZooKeeper, or null if the role may not see it';
COMMENT ON COLUMN zk_queue_row.session_id IS
'ID of the ZooKeeper session that owns the znode, or null';
COMMENT ON COLUMN zk_queue_row.error IS
'reason for which the znode, or the directory below the path, cannot be read, or null';

CREATE FUNCTION zk_queue(path text)
RETURNS SETOF zk_queue_row
AS 'MODULE_PATHNAME', 'zkl_sql_queue'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_queue(text) IS
'holders and waiters of a lock on all servers: path, position, granted, mode, server, host, pid, datname, usename, application_name, client_addr, backend_start, requested_at, granted_at, held_until, dialect, cached, znode, session_id, error';

CREATE FUNCTION zk_fleet_locks(prefix text DEFAULT '/')
RETURNS SETOF zk_queue_row
AS 'MODULE_PATHNAME', 'zkl_sql_fleet_locks'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_fleet_locks(text) IS
'holders and waiters of all locks below a path, of all servers and clients: path, position, granted, mode, server, host, pid, datname, usename, application_name, client_addr, backend_start, requested_at, granted_at, held_until, dialect, cached, znode, session_id, error';

CREATE TYPE zk_lock_wait_row AS (
	path text,
	mode text,
	waiting_pid integer,
	requested_at timestamptz,
	blocking_server text,
	blocking_pid integer,
	blocking_usename text,
	blocking_application_name text,
	blocking_znode text,
	blocking_granted boolean);
COMMENT ON TYPE zk_lock_wait_row IS
'row of the view zk_lock_waits';

CREATE FUNCTION zk_get_lock_waits()
RETURNS SETOF zk_lock_wait_row
AS 'MODULE_PATHNAME', 'zkl_sql_lock_waits'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_get_lock_waits() IS
'rows of the view zk_lock_waits: path, mode, waiting_pid, requested_at, blocking_server, blocking_pid, blocking_usename, blocking_application_name, blocking_znode, blocking_granted';

CREATE TYPE zk_job_row AS (
	path text,
	last_run_at timestamptz,
	server text,
	pid integer,
	last_key text,
	run_keys text[],
	last_period_at timestamptz,
	owner text,
	recorded_at timestamptz);
COMMENT ON TYPE zk_job_row IS
'row of the view zk_jobs';

CREATE FUNCTION zk_get_jobs()
RETURNS SETOF zk_job_row
AS 'MODULE_PATHNAME', 'zkl_sql_jobs'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_get_jobs() IS
'rows of the view zk_jobs: path, last_run_at, server, pid, last_key, run_keys, last_period_at, owner, recorded_at';

CREATE TYPE zk_leader_row AS (
	id text,
	znode text,
	session_id text,
	requested_at timestamptz);
COMMENT ON TYPE zk_leader_row IS
'row of zk_leader()';
COMMENT ON COLUMN zk_leader_row.id IS
'id that the leader gave to zk_lead(), or that another client wrote into the znode';
COMMENT ON COLUMN zk_leader_row.znode IS
'path of the znode in ZooKeeper';
COMMENT ON COLUMN zk_leader_row.session_id IS
'ID of the ZooKeeper session that owns the znode, or null';
COMMENT ON COLUMN zk_leader_row.requested_at IS
'time at which the leader became a candidate, by the clock of ZooKeeper, or null';

CREATE FUNCTION zk_leader(path text)
RETURNS SETOF zk_leader_row
AS 'MODULE_PATHNAME', 'zkl_sql_leader'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
ROWS 1;
COMMENT ON FUNCTION zk_leader(text) IS
'the leader, if there is one: id, znode, session_id, requested_at';

CREATE TYPE zk_server_row AS (
	server text,
	host text,
	port integer,
	in_recovery boolean,
	postgresql_version text,
	zklock_version text,
	protocol integer,
	requested_timeout interval,
	session_timeout interval,
	session_start timestamptz,
	system_identifier bigint,
	session_id text,
	peer_address text,
	asks_unanswered bigint);
COMMENT ON TYPE zk_server_row IS
'row of the view zk_servers';

CREATE FUNCTION zk_get_servers()
RETURNS SETOF zk_server_row
AS 'MODULE_PATHNAME', 'zkl_sql_servers'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
ROWS 10;
COMMENT ON FUNCTION zk_get_servers() IS
'rows of the view zk_servers: server, host, port, in_recovery, postgresql_version, zklock_version, protocol, requested_timeout, session_timeout, session_start, system_identifier, session_id, peer_address, asks_unanswered';

CREATE TYPE zk_version_row AS (
	library text,
	script text,
	session_process text,
	link_protocol integer,
	znode_protocol integer);
COMMENT ON TYPE zk_version_row IS
'row of zk_version()';
COMMENT ON COLUMN zk_version_row.library IS
'version of the library';
COMMENT ON COLUMN zk_version_row.script IS
'version of the extension in this database, or null';
COMMENT ON COLUMN zk_version_row.session_process IS
'version of the last zklock_session that was connected, or null';
COMMENT ON COLUMN zk_version_row.link_protocol IS
'number of the format of the messages between the two, or null';
COMMENT ON COLUMN zk_version_row.znode_protocol IS
'number of the format in which this server writes znodes';

CREATE FUNCTION zk_version()
RETURNS SETOF zk_version_row
AS 'MODULE_PATHNAME', 'zkl_sql_version'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
ROWS 1;
COMMENT ON FUNCTION zk_version() IS
'versions of zklock: library, script (of the extension in this database), session_process (the last one that was connected, or null), link_protocol (number of its messages'' format, or null), znode_protocol (number of the format in which this server writes znodes)';

CREATE TYPE zk_health_row AS (
	check_name text,
	ok boolean,
	detail text);
COMMENT ON TYPE zk_health_row IS
'row of zk_healthcheck()';
COMMENT ON COLUMN zk_health_row.check_name IS
'name of the check';
COMMENT ON COLUMN zk_health_row.ok IS
'whether it is as it should be, or null if that cannot be known now';
COMMENT ON COLUMN zk_health_row.detail IS
'the finding, in words';

CREATE FUNCTION zk_healthcheck()
RETURNS SETOF zk_health_row
AS 'MODULE_PATHNAME', 'zkl_sql_healthcheck'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
ROWS 20;
COMMENT ON FUNCTION zk_healthcheck() IS
'checks of this server, its connection and the fleet: check_name, ok (null: cannot be known now), detail';

CREATE VIEW zk_tickets AS SELECT * FROM zk_get_tickets();

COMMENT ON VIEW zk_tickets IS
'tickets of the role that logged in, on this server';
COMMENT ON COLUMN zk_tickets.ticket IS
'number of the ticket';
COMMENT ON COLUMN zk_tickets.path IS
'name of the lock';
COMMENT ON COLUMN zk_tickets.state IS
'waiting, granted (and to be claimed), claimed (a reservation), or how it ended, until that was told once: lapsed (not claimed in time), withdrawn (by the server), lost or failed';
COMMENT ON COLUMN zk_tickets.requested_at IS
'time of the request';
COMMENT ON COLUMN zk_tickets.granted_at IS
'time of the grant, or null';
COMMENT ON COLUMN zk_tickets.claim_until IS
'until when the ticket can be claimed, or null';
COMMENT ON COLUMN zk_tickets.token IS
'fencing token of the reservation, or null';
COMMENT ON COLUMN zk_tickets.reserved_until IS
'when the reservation ends, or null';

CREATE VIEW zk_locks AS SELECT * FROM zk_get_locks();

COMMENT ON VIEW zk_locks IS
'distributed locks that sessions of this server hold or wait for';
COMMENT ON COLUMN zk_locks.path IS
'name of the lock, or null if the role may not see it';
COMMENT ON COLUMN zk_locks.mode IS
'exclusive or shared; permit (of a semaphore), leader, or member (of a barrier)';
COMMENT ON COLUMN zk_locks.lifetime IS
'session, transaction, reservation or ticket';
COMMENT ON COLUMN zk_locks.state IS
'waiting, granted, unclaimed (a ticket that is granted), unconfirmed (the lease of this server has ended), lost, cached (held by no session), denied, failed, kept (by at_least or a promise) or releasing';
COMMENT ON COLUMN zk_locks.pid IS
'process ID of the session, or null if it has released the lock or the role may not see it';
COMMENT ON COLUMN zk_locks.fencing_token IS
'fencing token of the grant, or null';
COMMENT ON COLUMN zk_locks.holds IS
'number of times that the session has acquired the lock and not released it';
COMMENT ON COLUMN zk_locks.requested_at IS
'time of the request';
COMMENT ON COLUMN zk_locks.granted_at IS
'time of the grant, or null';
COMMENT ON COLUMN zk_locks.znode IS
'path of the znode in ZooKeeper, or null';
COMMENT ON COLUMN zk_locks.release_requested IS
'true if zk_request_release(), zk_drain() or another client has asked the holder to release the lock';
COMMENT ON COLUMN zk_locks.held_until IS
'when at_most, a reservation or the time for which the lock is kept ends, or null';
COMMENT ON COLUMN zk_locks.promised_until IS
'until when zk_assert_lock() has told that nobody else gets the lock, whatever ends; or null';
COMMENT ON COLUMN zk_locks.datname IS
'database of the session, or null where pid is null';
COMMENT ON COLUMN zk_locks.usename IS
'user name of the session, or null where pid is null';
COMMENT ON COLUMN zk_locks.application_name IS
'application name of the session at the time of the request, or null';

CREATE VIEW zk_status AS SELECT * FROM zk_get_status();

COMMENT ON VIEW zk_status IS
'connection of this server to ZooKeeper, and its locks';
COMMENT ON COLUMN zk_status.state IS
'connecting, connected, disconnected, expired, auth_failed, closing, disabled or stopped';
COMMENT ON COLUMN zk_status.zookeeper_server IS
'address of the ZooKeeper server, or null';
COMMENT ON COLUMN zk_status.session_id IS
'ID of the ZooKeeper session, or null';
COMMENT ON COLUMN zk_status.session_timeout IS
'timeout of the ZooKeeper session as ZooKeeper granted it, or null';
COMMENT ON COLUMN zk_status.lease_remaining IS
'time for which ZooKeeper certainly keeps the session if it hears nothing more from this server, or null';
COMMENT ON COLUMN zk_status.connected_since IS
'time at which ZooKeeper confirmed the connection in use, or null';
COMMENT ON COLUMN zk_status.locks_held IS
'number of locks that sessions of this server hold';
COMMENT ON COLUMN zk_status.waiting IS
'number of requests of this server that wait for a lock';
COMMENT ON COLUMN zk_status.cached IS
'number of locks that this server keeps for its sessions, and that none of them holds';
COMMENT ON COLUMN zk_status.draining IS
'true from zk_drain() to zk_undrain()';
COMMENT ON COLUMN zk_status.last_error IS
'text of the last error, also after recovery, or null';
COMMENT ON COLUMN zk_status.last_error_at IS
'time of the last error, or null';
COMMENT ON COLUMN zk_status.worker_pid IS
'process ID of the zklock worker, or null';
COMMENT ON COLUMN zk_status.session_pid IS
'process ID of zklock_session, or null';

CREATE VIEW zk_stat_server AS SELECT * FROM zk_get_stat_server();

COMMENT ON VIEW zk_stat_server IS
'counters of this server since it started, and TLS of its last connection to ZooKeeper';
COMMENT ON COLUMN zk_stat_server.connects IS
'number of connections made since the server started';
COMMENT ON COLUMN zk_stat_server.sessions_lost IS
'number of ZooKeeper sessions lost since the server started';
COMMENT ON COLUMN zk_stat_server.locks_lost IS
'number of locks that sessions lost since the server started';
COMMENT ON COLUMN zk_stat_server.lapses IS
'number of times that the lease ended while locks were held since the server started';
COMMENT ON COLUMN zk_stat_server.lost_writes IS
'number of times that this server found that ZooKeeper had lost writes, since the server started';
COMMENT ON COLUMN zk_stat_server.worker_starts IS
'number of times that the zklock worker was started since the server started';
COMMENT ON COLUMN zk_stat_server.connection_errors IS
'number of connections that failed or broke since the server started';
COMMENT ON COLUMN zk_stat_server.answer_errors IS
'number of answers of ZooKeeper that ended a connection since the server started';
COMMENT ON COLUMN zk_stat_server.process_errors IS
'number of times that zklock_session ended unexpectedly or did not start since the server started';
COMMENT ON COLUMN zk_stat_server.settings_errors IS
'number of attempts to connect that credentials or certificates prevented since the server started';
COMMENT ON COLUMN zk_stat_server.batches IS
'number of transactions sent to ZooKeeper since the server started';
COMMENT ON COLUMN zk_stat_server.operations IS
'number of requests of all kinds sent to ZooKeeper since the server started';
COMMENT ON COLUMN zk_stat_server.listings IS
'number of listings of directories since the server started';
COMMENT ON COLUMN zk_stat_server.creates IS
'number of znodes created for requests since the server started';
COMMENT ON COLUMN zk_stat_server.continuity IS
'share of these znodes, from 0 to 1, that needed no listing, or null';
COMMENT ON COLUMN zk_stat_server.watches IS
'number of watches that are set now';
COMMENT ON COLUMN zk_stat_server.deadlocks IS
'number of deadlocks across servers that ended with an error here, since the server started';
COMMENT ON COLUMN zk_stat_server.deadlock_checks IS
'number of times that this server looked for deadlocks in ZooKeeper, since the server started';
COMMENT ON COLUMN zk_stat_server.given_up_checks IS
'number of these that found too much to decide';
COMMENT ON COLUMN zk_stat_server.unpublished_waits IS
'number of waits that took no part in deadlocks, because their sessions hold too many locks, since the server started';
COMMENT ON COLUMN zk_stat_server.cache_takes IS
'number of times that a session took a cached lock since the server started';
COMMENT ON COLUMN zk_stat_server.recalls IS
'number of times that the caching of a lock ended since the server started';
COMMENT ON COLUMN zk_stat_server.tls_version IS
'version of TLS of the last connection to ZooKeeper, or null if it had none';
COMMENT ON COLUMN zk_stat_server.tls_cipher IS
'cipher of that connection, or null';
COMMENT ON COLUMN zk_stat_server.certificate_expires_at IS
'until when the certificate of this server that was used for that connection is valid, or null';
COMMENT ON COLUMN zk_stat_server.ca_expires_at IS
'until when the CA that vouched for the ZooKeeper server is valid, or null';
COMMENT ON COLUMN zk_stat_server.zookeeper_certificate_expires_at IS
'until when the certificate of the ZooKeeper server is valid, or null';
COMMENT ON COLUMN zk_stat_server.stats_reset IS
'time since which zk_stat_locks counts';
COMMENT ON COLUMN zk_stat_server.stats_evicted IS
'number of names that made room for others in zk_stat_locks since then';
COMMENT ON COLUMN zk_stat_server.asks_sent IS
'number of times that this server asked another one to tell when a lock is free since the server started';
COMMENT ON COLUMN zk_stat_server.words_sent IS
'number of times that this server told another one that a lock is free since the server started';
COMMENT ON COLUMN zk_stat_server.messages_unsent IS
'number of such messages that could not be sent since the server started';
COMMENT ON COLUMN zk_stat_server.words_taken IS
'number of words from other servers that a request here waited for since the server started';
COMMENT ON COLUMN zk_stat_server.words_late IS
'number of words from other servers that nobody here waited for any more since the server started';
COMMENT ON COLUMN zk_stat_server.messages_refused IS
'number of datagrams that were no message of a server of this fleet to this one since the server started';
COMMENT ON COLUMN zk_stat_server.messages_other_key IS
'number of messages with another key, or of another version of zklock, since the server started';

COMMENT ON COLUMN zk_stat_server.tickets_enqueued IS
'tickets made since the server started';
COMMENT ON COLUMN zk_stat_server.tickets_claimed IS
'tickets that became reservations';
COMMENT ON COLUMN zk_stat_server.tickets_lapsed IS
'tickets that nobody claimed in time after their grant';

CREATE VIEW zk_stat_locks AS SELECT * FROM zk_get_stat_locks();

COMMENT ON VIEW zk_stat_locks IS
'waits, holds and failures of each distributed lock on this server since zk_stat_server.stats_reset';
COMMENT ON COLUMN zk_stat_locks.path IS
'name of the lock or semaphore, or null if the role may not see it';
COMMENT ON COLUMN zk_stat_locks.acquires IS
'number of times that a session had the lock, and no longer has it';
COMMENT ON COLUMN zk_stat_locks.waited IS
'of these, how often the session had to wait for another holder';
COMMENT ON COLUMN zk_stat_locks.total_wait_time IS
'time from the requests to the grants of these acquires, in milliseconds';
COMMENT ON COLUMN zk_stat_locks.mean_wait_time IS
'mean of that time, in milliseconds';
COMMENT ON COLUMN zk_stat_locks.max_wait_time IS
'maximum of that time, in milliseconds';
COMMENT ON COLUMN zk_stat_locks.total_hold_time IS
'time for which sessions held the lock, in milliseconds';
COMMENT ON COLUMN zk_stat_locks.max_hold_time IS
'maximum of that time, in milliseconds';
COMMENT ON COLUMN zk_stat_locks.timeouts IS
'number of waits that ended with the error of a timeout';
COMMENT ON COLUMN zk_stat_locks.denials IS
'number of tries that did not get the lock';
COMMENT ON COLUMN zk_stat_locks.losses IS
'number of times that a session lost the lock';
COMMENT ON COLUMN zk_stat_locks.deadlocks IS
'number of waits that ended with the error of a deadlock across servers';

CREATE VIEW zk_lock_waits AS SELECT * FROM zk_get_lock_waits();

COMMENT ON VIEW zk_lock_waits IS
'sessions of this server that wait, and the sessions of any server that are in their way';
COMMENT ON COLUMN zk_lock_waits.path IS
'name of the lock or semaphore, or null if the role may not see it';
COMMENT ON COLUMN zk_lock_waits.mode IS
'exclusive, shared, permit or leader';
COMMENT ON COLUMN zk_lock_waits.waiting_pid IS
'process ID of the waiting session, or null if the role may not see it';
COMMENT ON COLUMN zk_lock_waits.requested_at IS
'time of its request';
COMMENT ON COLUMN zk_lock_waits.blocking_server IS
'name of the server of the session that is in its way; of another client or a leader, what it wrote into the znode, or null';
COMMENT ON COLUMN zk_lock_waits.blocking_pid IS
'process ID of that session, or null';
COMMENT ON COLUMN zk_lock_waits.blocking_usename IS
'user name of that session, or null';
COMMENT ON COLUMN zk_lock_waits.blocking_application_name IS
'application name of that session, or null';
COMMENT ON COLUMN zk_lock_waits.blocking_znode IS
'path of the znode that is in its way, or null if the role may not see it';
COMMENT ON COLUMN zk_lock_waits.blocking_granted IS
'true if that znode holds the lock; false if it is the nearest one ahead, and waits itself';

--
-- Who waits for whom, across all servers.  Each step is within one queue: from a
-- waiter to the nearest entry ahead that is in its way, and to the first such one that
-- holds the lock.  If that session waits for another lock, it goes on from there; where
-- a wait leads back to itself, it ends.  Shared entries are not in each other's way.
-- All entries are numbered, each queue in its order, as thousands may wait in one; the
-- planner learns from DISTINCT that no number occurs twice.
--
CREATE VIEW zk_fleet_waits AS
	WITH RECURSIVE entries AS MATERIALIZED (
		SELECT e, (e).path, (e).dialect, (e).granted, (e).mode = 'shared' AS shared,
			row_number() OVER (ORDER BY (e).path, (e).dialect, (e)."position") AS n
		FROM zk_fleet_locks('/') AS e
		WHERE (e).path IS NOT NULL AND (e).mode IS NOT NULL
	), places AS (
		SELECT e, granted,
			max(n) FILTER (WHERE NOT shared) OVER ahead AS exclusive,
			max(n) OVER ahead AS nearest,
			min(n) FILTER (WHERE granted AND NOT shared) OVER ahead AS exclusive_holder,
			min(n) FILTER (WHERE granted) OVER ahead AS holder,
			shared
		FROM entries
		WINDOW ahead AS (PARTITION BY path, dialect ORDER BY n
			ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
	), waiters AS MATERIALIZED (
		SELECT w.e AS waiter, a.e AS ahead, h.e AS holder
		FROM places w
		JOIN (SELECT DISTINCT ON (n) n, e FROM entries) AS a
			ON a.n = CASE WHEN w.shared THEN exclusive ELSE nearest END
		LEFT JOIN (SELECT DISTINCT ON (n) n, e FROM entries) AS h
			ON h.n = CASE WHEN w.shared THEN exclusive_holder ELSE w.holder END
		WHERE NOT w.granted
	), chains AS (
		SELECT (waiter).znode, holder AS root, ARRAY[(holder).znode] AS seen
		FROM waiters
		WHERE (holder).znode IS NOT NULL
		UNION ALL
		SELECT c.znode, w.holder, c.seen || (w.holder).znode
		FROM chains c
		JOIN waiters w ON (w.waiter).session_id = (c.root).session_id
			AND (w.waiter).server = (c.root).server AND (w.waiter).pid = (c.root).pid
		WHERE (w.holder).znode <> ALL (c.seen)
	), roots AS (
		SELECT DISTINCT ON (znode) znode, root
		FROM chains
		ORDER BY znode, cardinality(seen) DESC
	)
	SELECT (waiter).path, (waiter).mode, (waiter)."position",
		(waiter).server AS waiting_server, (waiter).host AS waiting_host,
		(waiter).pid AS waiting_pid, (waiter).datname AS waiting_datname,
		(waiter).usename AS waiting_usename,
		(waiter).application_name AS waiting_application_name,
		(waiter).client_addr AS waiting_client_addr, (waiter).requested_at,
		(ahead).server AS ahead_server, (ahead).pid AS ahead_pid,
		(ahead).usename AS ahead_usename,
		(ahead).application_name AS ahead_application_name,
		(ahead).granted AS ahead_granted,
		(root).path AS root_path, (root).server AS root_server, (root).host AS root_host,
		(root).pid AS root_pid, (root).datname AS root_datname,
		(root).usename AS root_usename, (root).application_name AS root_application_name,
		(root).client_addr AS root_client_addr, (root).backend_start AS root_backend_start,
		(root).granted_at AS root_granted_at, (root).held_until AS root_held_until,
		(root).cached AS root_cached, (root).znode AS root_znode
	FROM waiters LEFT JOIN roots ON roots.znode = (waiter).znode;

COMMENT ON VIEW zk_fleet_waits IS
'requests that wait, on all servers, with the nearest request in their way and the holder that all wait for; without those that the role may not see';
COMMENT ON COLUMN zk_fleet_waits.path IS
'name of the lock';
COMMENT ON COLUMN zk_fleet_waits.mode IS
'exclusive, shared, permit or leader';
COMMENT ON COLUMN zk_fleet_waits."position" IS
'place in the queue of the lock';
COMMENT ON COLUMN zk_fleet_waits.waiting_server IS
'name of the server of the session that waits, or what another client wrote into the znode, or null';
COMMENT ON COLUMN zk_fleet_waits.waiting_host IS
'host of that server, or null';
COMMENT ON COLUMN zk_fleet_waits.waiting_pid IS
'process ID of that session, or null';
COMMENT ON COLUMN zk_fleet_waits.waiting_datname IS
'its database, or null';
COMMENT ON COLUMN zk_fleet_waits.waiting_usename IS
'its user name, or null';
COMMENT ON COLUMN zk_fleet_waits.waiting_application_name IS
'its application name, or null';
COMMENT ON COLUMN zk_fleet_waits.waiting_client_addr IS
'address of its client, or null';
COMMENT ON COLUMN zk_fleet_waits.requested_at IS
'time of its request';
COMMENT ON COLUMN zk_fleet_waits.ahead_server IS
'server of the nearest request ahead that is in its way, or null';
COMMENT ON COLUMN zk_fleet_waits.ahead_pid IS
'process ID of its session, or null';
COMMENT ON COLUMN zk_fleet_waits.ahead_usename IS
'user name of its session, or null';
COMMENT ON COLUMN zk_fleet_waits.ahead_application_name IS
'application name of its session, or null';
COMMENT ON COLUMN zk_fleet_waits.ahead_granted IS
'whether that request holds the lock; else it waits itself';
COMMENT ON COLUMN zk_fleet_waits.root_path IS
'name of the lock that the root holds: the holder that waits for nothing, or null if no holder is known';
COMMENT ON COLUMN zk_fleet_waits.root_server IS
'name of the server of the root, or null';
COMMENT ON COLUMN zk_fleet_waits.root_host IS
'host of that server, or null';
COMMENT ON COLUMN zk_fleet_waits.root_pid IS
'process ID of the root, or null';
COMMENT ON COLUMN zk_fleet_waits.root_datname IS
'database of the root, or null';
COMMENT ON COLUMN zk_fleet_waits.root_usename IS
'user name of the root, or null';
COMMENT ON COLUMN zk_fleet_waits.root_application_name IS
'application name of the root, or null';
COMMENT ON COLUMN zk_fleet_waits.root_client_addr IS
'address of the client of the root, or null';
COMMENT ON COLUMN zk_fleet_waits.root_backend_start IS
'time at which the session of the root began, or null';
COMMENT ON COLUMN zk_fleet_waits.root_granted_at IS
'time since which the root holds that lock, or null';
COMMENT ON COLUMN zk_fleet_waits.root_held_until IS
'time at which it loses the lock, by at_most, or null';
COMMENT ON COLUMN zk_fleet_waits.root_cached IS
'whether the server of the root may keep the lock, and no session holds it';
COMMENT ON COLUMN zk_fleet_waits.root_znode IS
'path of the znode of the root';

CREATE VIEW zk_jobs AS SELECT * FROM zk_get_jobs();

COMMENT ON VIEW zk_jobs IS
'jobs of zk_once() and zk_run_once(), with their last runs on any server; without those that the role may not look at';
COMMENT ON COLUMN zk_jobs.path IS
'name of the job';
COMMENT ON COLUMN zk_jobs.last_run_at IS
'time of the call that had the last run, by the clock of ZooKeeper, or null';
COMMENT ON COLUMN zk_jobs.server IS
'name of the PostgreSQL server that did it, or null';
COMMENT ON COLUMN zk_jobs.pid IS
'process ID of the session that did it, or null';
COMMENT ON COLUMN zk_jobs.last_key IS
'run key of the last run, or null if that was by period';
COMMENT ON COLUMN zk_jobs.run_keys IS
'run keys that are used up, the last one first; null if the record cannot be read';
COMMENT ON COLUMN zk_jobs.last_period_at IS
'time of the call that had the last run by period, or null';
COMMENT ON COLUMN zk_jobs.owner IS
'role that ran the job first, and may remove its record, or null';
COMMENT ON COLUMN zk_jobs.recorded_at IS
'time at which the record was written, by the clock of ZooKeeper';

CREATE VIEW zk_servers AS SELECT * FROM zk_get_servers();

COMMENT ON VIEW zk_servers IS
'all PostgreSQL servers that have a ZooKeeper session below the same root';
COMMENT ON COLUMN zk_servers.server IS
'name of the server, or null if its znode cannot be read';
COMMENT ON COLUMN zk_servers.host IS
'host of the server, or null if the role may not see it';
COMMENT ON COLUMN zk_servers.port IS
'port of the server, or null';
COMMENT ON COLUMN zk_servers.in_recovery IS
'true if it is a standby, or still recovers';
COMMENT ON COLUMN zk_servers.postgresql_version IS
'version of PostgreSQL';
COMMENT ON COLUMN zk_servers.zklock_version IS
'version of zklock''s library';
COMMENT ON COLUMN zk_servers.protocol IS
'number of the format in which the server writes znodes';
COMMENT ON COLUMN zk_servers.requested_timeout IS
'session timeout that the server requested';
COMMENT ON COLUMN zk_servers.session_timeout IS
'session timeout that ZooKeeper granted';
COMMENT ON COLUMN zk_servers.session_start IS
'time at which the ZooKeeper session began, by the server''s clock';
COMMENT ON COLUMN zk_servers.system_identifier IS
'system identifier of the database cluster, the same for a primary and its standbys, or null';
COMMENT ON COLUMN zk_servers.session_id IS
'ID of the ZooKeeper session, as zk_status shows it on that server, or null';
COMMENT ON COLUMN zk_servers.peer_address IS
'address at which the server receives messages, or null if it receives none';
COMMENT ON COLUMN zk_servers.asks_unanswered IS
'number of seconds in which this server has asked that one, without any answer, since the last answer; or null if it was not asked lately';

--
-- For operators, and asking holders to release a lock
--
CREATE FUNCTION zk_request_release(path text)
RETURNS integer
AS 'MODULE_PATHNAME', 'zkl_sql_request_release'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_request_release(text) IS
'ask all holders of a distributed lock to release it; returns how many were asked';

CREATE FUNCTION zk_break_lock(path text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_break_lock'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_break_lock(text) IS
'remove the first entry from the queue of a distributed lock or semaphore; returns whether there was one';

CREATE FUNCTION zk_accept_lower_tokens()
RETURNS void
AS 'MODULE_PATHNAME', 'zkl_sql_accept_lower_tokens'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_accept_lower_tokens() IS
'accept an ensemble whose fencing tokens are lower than before';

CREATE TYPE zk_drain_row AS (
	path text,
	mode text,
	lifetime text,
	state text,
	pid integer,
	datname text,
	usename text,
	application_name text,
	granted_at timestamptz);
COMMENT ON TYPE zk_drain_row IS
'row of zk_drain()';
COMMENT ON COLUMN zk_drain_row.path IS
'name of the lock';
COMMENT ON COLUMN zk_drain_row.mode IS
'exclusive, shared, permit, leader or member';
COMMENT ON COLUMN zk_drain_row.lifetime IS
'session, transaction or reservation';
COMMENT ON COLUMN zk_drain_row.state IS
'state of the request, as zk_locks shows it';
COMMENT ON COLUMN zk_drain_row.pid IS
'process ID of the session, or null if it has released the lock';
COMMENT ON COLUMN zk_drain_row.datname IS
'database of the session, or null if it has released the lock';
COMMENT ON COLUMN zk_drain_row.usename IS
'user name of the session, or null if it has released the lock';
COMMENT ON COLUMN zk_drain_row.application_name IS
'application name of the session, or null';
COMMENT ON COLUMN zk_drain_row.granted_at IS
'time of the grant, or null';

CREATE FUNCTION zk_reconnect()
RETURNS void
AS 'MODULE_PATHNAME', 'zkl_sql_reconnect'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_reconnect() IS
'try the settings of the connection to ZooKeeper and the files that they name, then move this server''s session to a new connection; no lock is lost';

CREATE FUNCTION zk_drain(timeout interval DEFAULT NULL)
RETURNS SETOF zk_drain_row
AS 'MODULE_PATHNAME', 'zkl_sql_drain'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_drain(interval) IS
'refuse new requests for locks, ask holders to release theirs, and wait; returns the locks that are left when the timeout ends: path, mode, lifetime, state, pid, datname, usename, application_name, granted_at';

CREATE FUNCTION zk_undrain()
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_undrain'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_undrain() IS
'allow locks again after zk_drain(); returns whether the server was being drained';

CREATE FUNCTION zk_set_dialects(list text)
RETURNS void
AS 'MODULE_PATHNAME', 'zkl_sql_set_dialects'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_set_dialects(text) IS
'change the dialects of distributed locks for all servers';

CREATE TYPE zk_dump_row AS (
	path text,
	item text,
	pid integer,
	state text);
COMMENT ON TYPE zk_dump_row IS
'row of zk_dump()';
COMMENT ON COLUMN zk_dump_row.path IS
'name of the lock, or null for the server itself';
COMMENT ON COLUMN zk_dump_row.item IS
'subject of the line';
COMMENT ON COLUMN zk_dump_row.pid IS
'process ID of the session, or null';
COMMENT ON COLUMN zk_dump_row.state IS
'in words and key=value pairs';

CREATE FUNCTION zk_dump()
RETURNS SETOF zk_dump_row
AS 'MODULE_PATHNAME', 'zkl_sql_dump'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_dump() IS
'state of the zklock worker of this server, lock by lock: path (null: the server itself), item (subject of the line), pid (of the backend), state (in words and key=value pairs)';

--
-- Rights by prefix.  The rows are the user's: pg_dump dumps them.  Roles are
-- stored by name, so that the rows can be restored before the roles are there.
--
CREATE TABLE zk_rights (
	prefix text COLLATE "C" NOT NULL,
	role name NOT NULL,
	privilege text COLLATE "C" NOT NULL,
	PRIMARY KEY (prefix, role, privilege),
	CHECK (prefix = '/' OR prefix ~ '^(/[^/]+)+$'),
	CHECK (privilege IN ('lock', 'shared', 'once', 'lead', 'semaphore',
		'barrier', 'keep', 'request_release', 'look', 'fence')));
COMMENT ON TABLE zk_rights IS
'privileges that zk_grant() has granted, a row for each';
COMMENT ON COLUMN zk_rights.prefix IS
'first parts of names of locks, or / for all names';
COMMENT ON COLUMN zk_rights.role IS
'name of the role, or public';
COMMENT ON COLUMN zk_rights.privilege IS
'lock, shared, once, lead, semaphore, barrier, keep, request_release, look or fence';

SELECT pg_catalog.pg_extension_config_dump('zk_rights', '');

CREATE FUNCTION zk_rights_changed()
RETURNS trigger
AS 'MODULE_PATHNAME', 'zkl_sql_rights_changed'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_rights_changed() IS
'trigger of zk_rights: tells all sessions that rights have changed';

-- Logical replication fires only the triggers of rows, and those that are
-- enabled always.
CREATE TRIGGER rows_changed AFTER INSERT OR UPDATE OR DELETE ON zk_rights
	FOR EACH ROW EXECUTE FUNCTION zk_rights_changed();
CREATE TRIGGER truncated AFTER TRUNCATE ON zk_rights
	FOR EACH STATEMENT EXECUTE FUNCTION zk_rights_changed();
ALTER TABLE zk_rights ENABLE ALWAYS TRIGGER rows_changed;
ALTER TABLE zk_rights ENABLE ALWAYS TRIGGER truncated;

CREATE VIEW zk_grants AS
	SELECT prefix, role, string_agg(privilege, ', ' ORDER BY privilege) AS privileges
	FROM zk_rights
	GROUP BY prefix, role;

COMMENT ON VIEW zk_grants IS
'privileges of roles for the locks below a prefix';
COMMENT ON COLUMN zk_grants.prefix IS
'first parts of names of locks, or / for all names';
COMMENT ON COLUMN zk_grants.role IS
'name of the role, or public';
COMMENT ON COLUMN zk_grants.privileges IS
'privileges that zk_grant() has granted';

CREATE FUNCTION zk_grant(prefix text, role name,
	privileges text DEFAULT 'lock, shared, once, lead, semaphore, barrier')
RETURNS void
AS 'MODULE_PATHNAME', 'zkl_sql_grant'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_grant(text, name, text) IS
'grant privileges for the locks below a prefix, which other roles then do not have';

CREATE FUNCTION zk_revoke(prefix text, role name, privileges text DEFAULT 'all')
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_revoke'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_revoke(text, name, text) IS
'take back privileges that zk_grant() has granted; returns whether any of them was granted';

--
-- Fences: what refuses stale fencing tokens.  The rows are the user's, and can be read by
-- everybody, so that the owner of a database can dump it.
--
DO $$
DECLARE
	other regprocedure := (SELECT oid FROM pg_proc
		WHERE proname = 'zk_fence' AND proargtypes = '25 20' LIMIT 1);
BEGIN
	IF other IS NOT NULL THEN
		RAISE duplicate_function USING
			MESSAGE = format('there are fences in this database: function %s', other),
			HINT = 'Extension "zklock" has the same functions as "zklock_fence".  Save the rows of zk_fences, drop that extension, and create "zklock".';
	END IF;
END
$$;

CREATE TABLE zk_fences (
	name text COLLATE "C" PRIMARY KEY,
	token bigint NOT NULL,
	at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp());
COMMENT ON TABLE zk_fences IS
'the highest fencing tokens that have passed zk_fence()';
COMMENT ON COLUMN zk_fences.name IS
'name of the fence, such as that of the lock';
COMMENT ON COLUMN zk_fences.token IS
'highest token that has passed';
COMMENT ON COLUMN zk_fences.at IS
'time at which it passed first';

SELECT pg_catalog.pg_extension_config_dump('zk_fences', '');

CREATE FUNCTION zk_fence(name text, token bigint)
RETURNS void
AS 'MODULE_PATHNAME', 'zkl_sql_fence'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_fence(text, bigint) IS
'raise an error (ZK001) if a higher fencing token has passed; else let no lower one pass from now on';

CREATE FUNCTION zk_fence_reset(name text, token bigint)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_fence_reset'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_fence_reset(text, bigint) IS
'set the highest fencing token that counts as passed, also to a lower one; returns whether any had passed';

CREATE FUNCTION zk_fence_trigger()
RETURNS trigger
AS 'MODULE_PATHNAME', 'zkl_sql_fence_trigger'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_fence_trigger() IS
'trigger that calls zk_fence() for its argument with the token in zklock.fencing_token';

CREATE FUNCTION zk_fence_table(relation regclass, name text)
RETURNS integer
AS 'MODULE_PATHNAME', 'zkl_sql_fence_table'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION zk_fence_table(regclass, text) IS
'create such triggers on a table, its partitions and the tables that inherit from it; returns on how many tables';

--
-- Only superusers can call these functions, until they grant them to others, and
-- members of pg_monitor can look.  Everybody can call the functions that release or
-- show the caller's own locks, and those behind views, which check SELECT on their
-- view themselves.
--
REVOKE ALL ON ROUTINE
	zk_lock(text, interval, interval, interval),
	zk_lock_shared(text, interval, interval, interval),
	zk_xact_lock(text, interval, interval, interval),
	zk_xact_lock_shared(text, interval, interval, interval),
	zk_await_lock(text, interval, interval, interval),
	zk_await_lock_shared(text, interval, interval, interval),
	zk_await_xact_lock(text, interval, interval, interval),
	zk_await_xact_lock_shared(text, interval, interval, interval),
	zk_try_lock(text, interval, interval, interval),
	zk_try_lock_shared(text, interval, interval, interval),
	zk_try_xact_lock(text, interval, interval, interval),
	zk_try_xact_lock_shared(text, interval, interval, interval),
	zk_reserve(text, interval, interval),
	zk_try_reserve(text, interval, interval),
	zk_await_reservation(text, interval, interval, bigint),
	zk_enqueue(text, interval, interval),
	zk_enqueue_all(text[], interval, interval),
	zk_multilock(text[], interval),
	zk_xact_multilock(text[], interval),
	zk_try_multilock(text[], interval),
	zk_try_xact_multilock(text[], interval),
	zk_acquire_permits(text, integer, integer, interval),
	zk_xact_acquire_permits(text, integer, integer, interval),
	zk_try_acquire_permits(text, integer, integer, interval),
	zk_try_xact_acquire_permits(text, integer, integer, interval),
	zk_lead(text, text, interval),
	zk_barrier_enter(text, integer, interval),
	zk_barrier(text, integer, interval),
	zk_time(),
	zk_once(text, interval, text, text, timestamptz, text),
	zk_run_once(text, interval, text, text, text, interval, text, boolean, text),
	zk_run_exclusive(text, text, interval, boolean, text),
	zk_once_reset(text),
	zk_stat_reset(),
	zk_version(),
	zk_healthcheck(),
	zk_queue(text),
	zk_fleet_locks(text),
	zk_leader(text),
	zk_request_release(text),
	zk_break_lock(text),
	zk_accept_lower_tokens(),
	zk_reconnect(),
	zk_drain(interval),
	zk_undrain(),
	zk_set_dialects(text),
	zk_dump(),
	zk_rights_changed(),
	zk_grant(text, name, text),
	zk_revoke(text, name, text),
	zk_fence(text, bigint),
	zk_fence_reset(text, bigint),
	zk_fence_trigger(),
	zk_fence_table(regclass, text)
FROM PUBLIC;

REVOKE ALL ON zk_locks, zk_status, zk_servers, zk_stat_server, zk_stat_locks, zk_lock_waits,
	zk_fleet_waits, zk_jobs
FROM PUBLIC;

--
-- pg_dump reads the tables as the role that runs it, such as the owner of the
-- database.
--
REVOKE ALL ON zk_rights, zk_grants, zk_fences FROM PUBLIC;
GRANT SELECT ON zk_rights, zk_grants, zk_fences, zk_tickets TO PUBLIC;

GRANT EXECUTE ON FUNCTION
	zk_queue(text), zk_fleet_locks(text), zk_leader(text),
	zk_version(), zk_healthcheck()
TO pg_monitor;

GRANT SELECT ON zk_locks, zk_status, zk_servers, zk_stat_server, zk_stat_locks, zk_lock_waits,
	zk_fleet_waits, zk_jobs
TO pg_monitor;
