-- A role for prometheus-postgres-exporter: it can look, and do nothing else.
-- Run this as a superuser in the database that has the extension zklock:
--
--	psql -d postgres -f role.sql
--
-- It has no password: on the server's own host, let pg_hba.conf map the exporter's
-- operating system user to it ("peer"), or give it a password.
CREATE ROLE zklock_monitor LOGIN CONNECTION LIMIT 5 IN ROLE pg_monitor;

-- While ZooKeeper is away, a scrape must not wait for it.
ALTER ROLE zklock_monitor SET zklock.answer_timeout = '2s';
ALTER ROLE zklock_monitor SET statement_timeout = '5s';
ALTER ROLE zklock_monitor SET default_transaction_read_only = on;
