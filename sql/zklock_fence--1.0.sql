/* sql/zklock_fence--1.0.sql */

--
-- The fence of extension zklock, for databases without that extension: what refuses stale
-- fencing tokens, in SQL and PL/pgSQL alone.  Where no extension can be installed, paste
-- this file: what it creates goes into the first schema of search_path.
--
-- zklock's own functions are in C, as rights by prefix are the caller's, and the table's
-- rows its owner's.  Here EXECUTE is the only right.
--

DO $$
DECLARE
	other regprocedure := (SELECT oid FROM pg_proc
		WHERE proname = 'zk_fence' AND proargtypes = '25 20' LIMIT 1);
BEGIN
	IF other IS NOT NULL THEN
		RAISE duplicate_function USING
			MESSAGE = format('there are fences in this database: function %s', other),
			HINT = 'Extension "zklock" has the same functions: with it, "zklock_fence" is not needed.';
	END IF;
END
$$;

-- The rows are the user's, and can be read by everybody, so that the owner of a database
-- can dump it.
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
REVOKE ALL ON zk_fences FROM PUBLIC;
GRANT SELECT ON zk_fences TO PUBLIC;

-- Outside of CREATE EXTENSION there is no configuration table.
DO $$
BEGIN
	PERFORM pg_catalog.pg_extension_config_dump('zk_fences', '');
EXCEPTION WHEN feature_not_supported THEN
	NULL;
END
$$;

-- Helpers, which everybody may call: they do nothing that the caller could not do

CREATE FUNCTION zk_fence_check_name(name text)
RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF name IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'name of a fence must not be null';
	ELSIF name !~ '^(/[^/]+)+$' OR name ~ '/[.]' OR name ~ '[\u0001-\u001f\u007f]'
			OR octet_length(name) > 255 THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('invalid lock name: "%s"', name),
			DETAIL = 'A lock name is a path: "/", then segments without control characters that do not start with ".", with "/" between them; at most 255 bytes.';
	END IF;
END
$$;
COMMENT ON FUNCTION zk_fence_check_name(text) IS
'raise an error unless this is the name of a lock';

CREATE FUNCTION zk_fence_check_token(token bigint, lowest bigint)
RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF token IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'fencing token must not be null';
	ELSIF token < lowest THEN
		RAISE invalid_parameter_value USING MESSAGE = 'fencing token must be positive';
	END IF;
END
$$;
COMMENT ON FUNCTION zk_fence_check_token(bigint, bigint) IS
'raise an error unless this is a fencing token';

CREATE FUNCTION zk_fence_compare(name text, token bigint, passed bigint, at timestamptz)
RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF token < passed THEN
		RAISE SQLSTATE 'ZK001' USING
			MESSAGE = 'stale fencing token',
			DETAIL = format('Token %s for "%s" is lower than token %s, which passed at %s.',
				token, name, passed, at),
			HINT = 'Another session has got the lock since.  Do not repeat the work.';
	END IF;
END
$$;
COMMENT ON FUNCTION zk_fence_compare(text, bigint, bigint, timestamptz) IS
'raise an error (ZK001) if a higher fencing token has passed';

--
-- The body is bound to the table, whatever schema that is in.  A function in SQL has one
-- snapshot, but both statements on the row see its newest version, and lock it.  A row
-- that was inserted since the snapshot is found by the second one only.
--
CREATE FUNCTION zk_fence(name text, token bigint)
RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
BEGIN ATOMIC
	SELECT zk_fence_check_name(zk_fence.name);
	SELECT zk_fence_check_token(zk_fence.token, 1);
	SELECT set_config('zklock_fence.passed', '', true);
	WITH passed AS (
		SELECT f.token, f.at FROM zk_fences f WHERE f.name = zk_fence.name FOR NO KEY UPDATE
	), set AS (
		INSERT INTO zk_fences AS f (name, token)
			SELECT zk_fence.name, zk_fence.token
			WHERE NOT EXISTS (SELECT FROM passed p WHERE p.token >= zk_fence.token)
		ON CONFLICT (name) DO UPDATE SET
			at = CASE WHEN f.token < excluded.token THEN excluded.at ELSE f.at END,
			token = greatest(f.token, excluded.token)
		RETURNING f.token, f.at
	)
	SELECT zk_fence_compare(zk_fence.name, zk_fence.token, r.token, r.at)
		FROM (SELECT p.token, p.at FROM passed p UNION ALL SELECT s.token, s.at FROM set s) r;
END;
COMMENT ON FUNCTION zk_fence(text, bigint) IS
'raise an error (ZK001) if a higher fencing token has passed; else let no lower one pass from now on';

CREATE FUNCTION zk_fence_reset(name text, token bigint)
RETURNS boolean
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
BEGIN ATOMIC
	SELECT zk_fence_check_name(zk_fence_reset.name);
	SELECT zk_fence_check_token(zk_fence_reset.token, 0);
	SELECT set_config('zklock_fence.passed', '', true);
	INSERT INTO zk_fences AS f (name, token) VALUES (zk_fence_reset.name, zk_fence_reset.token)
		ON CONFLICT (name) DO UPDATE SET token = excluded.token, at = excluded.at
		RETURNING f.xmax <> '0';
END;
COMMENT ON FUNCTION zk_fence_reset(text, bigint) IS
'set the highest fencing token that counts as passed, also to a lower one; returns whether any had passed';

--
-- A trigger of rows fires for each of many, so the token that has passed is noted: until
-- the transaction ends, or the savepoint, or another one passes.  A session could write
-- there what it likes, but so it could into zklock.fencing_token.
--
CREATE FUNCTION zk_fence_trigger()
RETURNS trigger
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	token text := current_setting('zklock.fencing_token', true);
	passed text;
	schema text;
BEGIN
	IF TG_NARGS <> 1 THEN
		RAISE trigger_protocol_violated USING
			MESSAGE = 'zk_fence_trigger() needs one argument, the name of a fence';
	ELSIF token IS NULL OR token = '' THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = '"zklock.fencing_token" is not set',
			HINT = 'Set it to the fencing token of the lock, with SET LOCAL.';
	END IF;
	passed := format('%s %s', token, TG_ARGV[0]);
	IF current_setting('zklock_fence.passed', true) IS DISTINCT FROM passed THEN
		SELECT p.pronamespace::regnamespace INTO schema
			FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
			WHERE t.tgrelid = TG_RELID AND t.tgname = TG_NAME;
		EXECUTE format('SELECT %s.zk_fence($1, $2)', schema) USING TG_ARGV[0], token::bigint;
		PERFORM set_config('zklock_fence.passed', passed, true);
	END IF;
	IF TG_OP = 'DELETE' THEN
		RETURN OLD;
	END IF;
	RETURN NEW;
END
$$;
COMMENT ON FUNCTION zk_fence_trigger() IS
'trigger that calls zk_fence() for its argument with the token in zklock.fencing_token';

--
-- A table's own triggers come first: with them it is locked, and no further table becomes
-- a partition of it, or inherits from it.  The caller's rights count, as in CREATE TRIGGER.
--
CREATE FUNCTION zk_fence_tree(relation regclass, name text, function regproc)
RETURNS integer
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	tables oid[] := ARRAY[relation::oid];
	kind "char";
	n integer := 0;
BEGIN
	IF relation IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'table must not be null';
	END IF;
	WHILE n < cardinality(tables) LOOP
		n := n + 1;
		SELECT relkind INTO kind FROM pg_class WHERE oid = tables[n];
		EXECUTE format('CREATE OR REPLACE TRIGGER zk_fence BEFORE INSERT OR UPDATE OR DELETE %s ON %s FOR EACH STATEMENT EXECUTE FUNCTION %s(%L)',
			CASE WHEN kind <> 'f' OR current_setting('server_version_num')::integer >= 160000
				THEN 'OR TRUNCATE' END,
			tables[n]::regclass, function, name);
		IF n = 1 AND kind = 'p' THEN
			EXECUTE format('CREATE OR REPLACE TRIGGER zk_fence_rows BEFORE INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW EXECUTE FUNCTION %s(%L)',
				tables[n]::regclass, function, name);
		END IF;
		tables := tables || ARRAY(SELECT inhrelid FROM pg_inherits
			WHERE inhparent = tables[n] AND inhrelid <> ALL (tables) ORDER BY inhrelid);
	END LOOP;
	RETURN n;
END
$$;
COMMENT ON FUNCTION zk_fence_tree(regclass, text, regproc) IS
'for zk_fence_table(): create the triggers that call this function';

CREATE FUNCTION zk_fence_table(relation regclass, name text)
RETURNS integer
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT zk_fence_check_name(zk_fence_table.name);
	SELECT zk_fence_tree(zk_fence_table.relation, zk_fence_table.name, 'zk_fence_trigger'::regproc);
END;
COMMENT ON FUNCTION zk_fence_table(regclass, text) IS
'create such triggers on a table, its partitions and the tables that inherit from it; returns on how many tables';

REVOKE ALL ON FUNCTION
	zk_fence(text, bigint),
	zk_fence_reset(text, bigint),
	zk_fence_trigger(),
	zk_fence_table(regclass, text)
FROM PUBLIC;
