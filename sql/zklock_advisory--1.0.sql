/* sql/zklock_advisory--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION zklock_advisory" to load this file. \quit

-- The functions of PostgreSQL's advisory locks, by their names, with zklock's locks.
-- A session calls these, if zk_advisory is before pg_catalog in its search_path.
-- NULL arguments give NULL, as there.

CREATE FUNCTION pg_advisory_lock(bigint)
RETURNS void
AS 'MODULE_PATHNAME', 'zkl_sql_advisory_lock'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION pg_advisory_lock(bigint) IS
'obtain lock on all servers';

CREATE FUNCTION pg_advisory_lock(integer, integer)
RETURNS void
AS 'MODULE_PATHNAME', 'zkl_sql_advisory_lock'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION pg_advisory_lock(integer, integer) IS
'obtain lock on all servers';

CREATE FUNCTION pg_advisory_lock_shared(bigint)
RETURNS void
AS 'MODULE_PATHNAME', 'zkl_sql_advisory_lock_shared'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION pg_advisory_lock_shared(bigint) IS
'obtain shared lock on all servers';

CREATE FUNCTION pg_advisory_lock_shared(integer, integer)
RETURNS void
AS 'MODULE_PATHNAME', 'zkl_sql_advisory_lock_shared'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION pg_advisory_lock_shared(integer, integer) IS
'obtain shared lock on all servers';

CREATE FUNCTION pg_try_advisory_lock(bigint)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_advisory_lock'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION pg_try_advisory_lock(bigint) IS
'obtain lock on all servers if available';

CREATE FUNCTION pg_try_advisory_lock(integer, integer)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_advisory_lock'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION pg_try_advisory_lock(integer, integer) IS
'obtain lock on all servers if available';

CREATE FUNCTION pg_try_advisory_lock_shared(bigint)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_advisory_lock_shared'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION pg_try_advisory_lock_shared(bigint) IS
'obtain shared lock on all servers if available';

CREATE FUNCTION pg_try_advisory_lock_shared(integer, integer)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_advisory_lock_shared'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION pg_try_advisory_lock_shared(integer, integer) IS
'obtain shared lock on all servers if available';

CREATE FUNCTION pg_advisory_xact_lock(bigint)
RETURNS void
AS 'MODULE_PATHNAME', 'zkl_sql_advisory_xact_lock'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION pg_advisory_xact_lock(bigint) IS
'obtain lock on all servers until the transaction ends';

CREATE FUNCTION pg_advisory_xact_lock(integer, integer)
RETURNS void
AS 'MODULE_PATHNAME', 'zkl_sql_advisory_xact_lock'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION pg_advisory_xact_lock(integer, integer) IS
'obtain lock on all servers until the transaction ends';

CREATE FUNCTION pg_advisory_xact_lock_shared(bigint)
RETURNS void
AS 'MODULE_PATHNAME', 'zkl_sql_advisory_xact_lock_shared'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION pg_advisory_xact_lock_shared(bigint) IS
'obtain shared lock on all servers until the transaction ends';

CREATE FUNCTION pg_advisory_xact_lock_shared(integer, integer)
RETURNS void
AS 'MODULE_PATHNAME', 'zkl_sql_advisory_xact_lock_shared'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION pg_advisory_xact_lock_shared(integer, integer) IS
'obtain shared lock on all servers until the transaction ends';

CREATE FUNCTION pg_try_advisory_xact_lock(bigint)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_advisory_xact_lock'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION pg_try_advisory_xact_lock(bigint) IS
'obtain lock on all servers until the transaction ends if available';

CREATE FUNCTION pg_try_advisory_xact_lock(integer, integer)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_advisory_xact_lock'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION pg_try_advisory_xact_lock(integer, integer) IS
'obtain lock on all servers until the transaction ends if available';

CREATE FUNCTION pg_try_advisory_xact_lock_shared(bigint)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_advisory_xact_lock_shared'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION pg_try_advisory_xact_lock_shared(bigint) IS
'obtain shared lock on all servers until the transaction ends if available';

CREATE FUNCTION pg_try_advisory_xact_lock_shared(integer, integer)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_try_advisory_xact_lock_shared'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION pg_try_advisory_xact_lock_shared(integer, integer) IS
'obtain shared lock on all servers until the transaction ends if available';

CREATE FUNCTION pg_advisory_unlock(bigint)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_advisory_unlock'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION pg_advisory_unlock(bigint) IS
'release lock';

CREATE FUNCTION pg_advisory_unlock(integer, integer)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_advisory_unlock'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION pg_advisory_unlock(integer, integer) IS
'release lock';

CREATE FUNCTION pg_advisory_unlock_shared(bigint)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_advisory_unlock_shared'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION pg_advisory_unlock_shared(bigint) IS
'release shared lock';

CREATE FUNCTION pg_advisory_unlock_shared(integer, integer)
RETURNS boolean
AS 'MODULE_PATHNAME', 'zkl_sql_advisory_unlock_shared'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION pg_advisory_unlock_shared(integer, integer) IS
'release shared lock';

CREATE FUNCTION pg_advisory_unlock_all()
RETURNS void
AS 'MODULE_PATHNAME', 'zkl_sql_advisory_unlock_all'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION pg_advisory_unlock_all() IS
'release all locks that these functions obtained for the session';

-- Names everything with its schema: the caller's search_path is what it looks at.
CREATE FUNCTION "check"()
RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
DECLARE
	called pg_catalog.text;
BEGIN
	SELECT pg_catalog.format('%s.%s(%s)', found.pronamespace::pg_catalog.regnamespace,
			found.proname, pg_catalog.pg_get_function_identity_arguments(found.oid))
		INTO called
		FROM pg_catalog.pg_proc ours
		JOIN pg_catalog.pg_proc found
			ON found.proname OPERATOR(pg_catalog.=) ours.proname
			AND found.proargtypes OPERATOR(pg_catalog.=) ours.proargtypes
			AND pg_catalog.pg_function_is_visible(found.oid)
		WHERE ours.pronamespace OPERATOR(pg_catalog.=) '@extschema@'::pg_catalog.regnamespace
			AND ours.proname OPERATOR(pg_catalog.~~) 'pg%'
			AND found.oid OPERATOR(pg_catalog.<>) ours.oid
		ORDER BY ours.proname LIMIT 1;
	IF FOUND THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = pg_catalog.format('role "%s" calls %s, which locks on this server only',
				current_user, called),
			HINT = 'Set "search_path" to "$user", public, @extschema@, pg_catalog.';
	END IF;
END
$$;
COMMENT ON FUNCTION "check"() IS
'raise an error unless search_path leads to these functions';

-- A role without EXECUTE gets an error.  Without USAGE of the schema it would get
-- PostgreSQL's own functions, which lock on one server only.
GRANT USAGE ON SCHEMA @extschema@ TO PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA @extschema@ FROM PUBLIC;
GRANT EXECUTE ON FUNCTION "check"() TO PUBLIC;
