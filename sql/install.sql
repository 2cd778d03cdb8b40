--
-- What CREATE EXTENSION makes: names, properties, privileges and comments.  It
-- can be moved to another schema and dropped without a trace.
--
CREATE EXTENSION zklock;

SELECT p.oid::regprocedure AS function, p.provolatile, p.proisstrict,
       p.proparallel, p.prosecdef, p.proretset,
       has_function_privilege('pg_monitor', p.oid, 'EXECUTE') AS monitor
  FROM pg_proc p
  JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
   AND d.deptype = 'e'
  JOIN pg_extension e ON d.refobjid = e.oid AND e.extname = 'zklock'
 ORDER BY p.oid::regprocedure::text COLLATE "C";

-- what PUBLIC may do: look at its own, and let go
SELECT p.oid::regprocedure
  FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
 WHERE p.proname LIKE 'zk\_%' AND a.grantee = 0 ORDER BY p.oid::regprocedure::text COLLATE "C";
SELECT c.relname
  FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
 WHERE c.relname LIKE 'zk\_%' AND a.grantee = 0 ORDER BY c.relname;

\d zk_locks
\d zk_status
\d zk_servers
\d zk_stat_server
\d zk_stat_locks
\d zk_lock_waits
\d zk_fleet_waits
\d zk_jobs
\d zk_grants
\d zk_rights
\d zk_fences

-- every function, view and column says what it is for
SELECT p.oid::regprocedure
  FROM pg_proc p
 WHERE p.proname LIKE 'zk\_%' AND obj_description(p.oid, 'pg_proc') IS NULL;
SELECT c.relname
  FROM pg_class c
 WHERE c.relname LIKE 'zk\_%' AND c.relkind = 'v'
   AND obj_description(c.oid, 'pg_class') IS NULL;
SELECT c.relname, a.attname
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
 WHERE c.relname IN ('zk_locks', 'zk_status', 'zk_servers', 'zk_stat_server', 'zk_stat_locks', 'zk_lock_waits', 'zk_fleet_waits', 'zk_jobs', 'zk_grants', 'zk_rights', 'zk_fences',
                     'zk_queue_row', 'zk_leader_row', 'zk_drain_row', 'zk_version_row', 'zk_health_row', 'zk_dump_row')
   AND col_description(c.oid, a.attnum) IS NULL;

-- a function that returns rows names their columns
SELECT p.oid::regprocedure, name
  FROM pg_proc p,
       LATERAL (SELECT a.attname
                  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
                 WHERE c.reltype = p.prorettype AND a.attnum > 0) AS returned (name)
 WHERE p.proname LIKE 'zk\_%'
   AND obj_description(p.oid, 'pg_proc') !~ ('\m' || name || '\M');

-- no name has two functions, so that GRANT and psql need no arguments
SELECT proname FROM pg_proc WHERE proname LIKE 'zk\_%' GROUP BY proname HAVING count(*) > 1;
\sf zk_lock

-- the names of all arguments, and what \df shows is never too long: a result is
-- the name of a type
SELECT DISTINCT name
  FROM pg_proc p, unnest(p.proargnames) AS name
 WHERE p.proname LIKE 'zk\_%' ORDER BY 1;
SELECT p.oid::regprocedure
  FROM pg_proc p
 WHERE p.proname LIKE 'zk\_%'
   AND length(replace(pg_get_function_arguments(p.oid), 'IN ', '')) > 320;
SELECT p.oid::regprocedure, pg_get_function_result(p.oid)
  FROM pg_proc p
 WHERE p.proname LIKE 'zk\_%'
   AND pg_get_function_result(p.oid) !~ '^(SETOF )?[a-z_]+( precision| with time zone|\[\])?$';

CREATE SCHEMA elsewhere;
ALTER EXTENSION zklock SET SCHEMA elsewhere;
SELECT count(*) >= 0 AS seen FROM elsewhere.zk_locks;
SELECT count(*) FROM elsewhere.zk_status;
DROP EXTENSION zklock;
SELECT count(*) FROM pg_proc WHERE proname LIKE 'zk\_%';
DROP SCHEMA elsewhere;

CREATE EXTENSION zklock;

-- for the tests that follow: waits until the worker has cleared all slots
CREATE FUNCTION all_quiet() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..500 LOOP
		IF NOT EXISTS (SELECT FROM zk_locks) THEN
			RETURN true;
		END IF;
		PERFORM pg_sleep(0.01);
	END LOOP;
	RETURN false;
END $$;
