-- On each server of a chaos run, beside zklock itself.

-- The sections that committed: what a client was told may be lost on its way.
CREATE TABLE committed (section text PRIMARY KEY);

-- For each lock a counter that only the lock protects: a section reads it when it
-- begins, and sets it to the next number in the transaction that ends it.
CREATE TABLE own (name text PRIMARY KEY, n bigint NOT NULL DEFAULT 0);

-- What a holder can know of its lock.  The lease is read first: if it was that
-- of a later session, the token read after it would be gone.
CREATE FUNCTION holding(lock text,
	OUT lease double precision, OUT token bigint, OUT znode text)
LANGUAGE plpgsql AS $$
BEGIN
	SELECT extract(epoch FROM lease_remaining) INTO lease FROM zk_status;
	token := zk_fencing_token(lock);
	SELECT l.znode INTO znode FROM zk_locks l
		WHERE l.pid = pg_backend_pid() AND l.path = lock AND l.state IN ('granted', 'unconfirmed')
			AND l.fencing_token = token
		LIMIT 1;
END $$;
