-- What the locks protect in a chaos run: a database that knows nothing of them.
-- Each cell is a counter that every section reads at its beginning and sets to
-- the next value at its end.  The fenced counter refuses tokens that are lower
-- than one it has seen; the unfenced one takes what it gets.  What was written
-- less what is there are the updates that were lost.

CREATE TABLE cells (
	name text PRIMARY KEY,
	visits bigint NOT NULL DEFAULT 0,	-- puts all visits in an order
	highest_writer bigint NOT NULL DEFAULT 0,	-- tokens seen
	highest bigint NOT NULL DEFAULT 0,
	fenced bigint NOT NULL DEFAULT 0,
	fenced_writes bigint NOT NULL DEFAULT 0,
	refused bigint NOT NULL DEFAULT 0,
	unfenced bigint NOT NULL DEFAULT 0,
	unfenced_writes bigint NOT NULL DEFAULT 0);

-- Readers that hold a lock together have different tokens in any order: each
-- gives way to a higher writer only.
CREATE FUNCTION enter(cell text, token bigint, shared boolean,
	OUT visit bigint, OUT fenced bigint, OUT unfenced bigint)
LANGUAGE plpgsql AS $$
DECLARE
	c cells;
BEGIN
	UPDATE cells SET visits = visits + 1 WHERE name = cell RETURNING * INTO c;
	visit := c.visits;
	unfenced := c.unfenced;
	IF token < c.highest_writer OR (NOT shared AND token < c.highest) THEN
		UPDATE cells SET refused = cells.refused + 1 WHERE name = cell;
		RETURN;
	END IF;
	fenced := c.fenced;
	UPDATE cells SET highest = greatest(highest, token),
		highest_writer = CASE WHEN shared THEN highest_writer ELSE token END
		WHERE name = cell;
END $$;

-- changed: another one wrote meanwhile what this section had read.
CREATE FUNCTION leave(cell text, token bigint, shared boolean,
	fenced_read bigint, unfenced_read bigint,
	OUT visit bigint, OUT fenced_changed boolean, OUT unfenced_changed boolean)
LANGUAGE plpgsql AS $$
DECLARE
	c cells;
BEGIN
	UPDATE cells SET visits = visits + 1 WHERE name = cell RETURNING * INTO c;
	visit := c.visits;
	unfenced_changed := c.unfenced <> unfenced_read;
	IF NOT shared THEN
		UPDATE cells SET unfenced = unfenced_read + 1,
			unfenced_writes = unfenced_writes + 1 WHERE name = cell;
	END IF;
	IF fenced_read IS NULL THEN
		RETURN;
	ELSIF token < c.highest_writer OR (NOT shared AND token < c.highest) THEN
		UPDATE cells SET refused = cells.refused + 1 WHERE name = cell;
		RETURN;
	END IF;
	fenced_changed := c.fenced <> fenced_read;
	IF NOT shared THEN
		UPDATE cells SET fenced = fenced_read + 1,
			fenced_writes = fenced_writes + 1 WHERE name = cell;
	END IF;
END $$;
