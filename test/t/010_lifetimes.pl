# How long a lock lasts: session locks until unlock or the session's end,
# whatever transactions do; transaction locks until commit or abort; both
# counted; and what DISCARD ALL, zk_unlock_all and PREPARE TRANSACTION do.  A
# client of another server tells whether the lock is really free.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new;
my ($one, $two) = $test->nodes;
my $other = $test->session($two);

sub taken_ok
{
	my ($path, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($other->query("SELECT zk_try_lock('$path')"),
		'f', "$case: it is taken");
}

# A release does not wait for ZooKeeper, so the try has a little time.
sub free_ok
{
	my ($path, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $got = $other->query("SELECT zk_try_lock('$path', '1min')");
	$other->query("SELECT zk_unlock('$path')") if $got eq 't';
	return is($got, 't', "$case: it is free");
}

my $s = $test->session($one);

# Session lifetime
$s->query('BEGIN');
$s->query("SELECT zk_lock('/s')");
$s->query('ROLLBACK');
taken_ok('/s', 'session lock after rollback');
$s->query("BEGIN; SELECT zk_lock('/s'); COMMIT");
is($s->query("SELECT holds FROM zk_locks WHERE path = '/s'"),
	2, 'session lock taken twice counts 2');
is($s->query("SELECT zk_unlock('/s')"), 't', 'unlocked once');
taken_ok('/s', 'session lock unlocked once of twice');
$s->query("SELECT zk_unlock('/s')");
free_ok('/s', 'session lock unlocked twice');
is($s->query("SELECT zk_unlock('/s')"), 'f', 'a third unlock says no');
like($s->messages, qr/^WARNING/, 'and warns');
is($s->query("SELECT zk_unlock('/s')"), 'f', 'so does one more');

$s->query("SELECT zk_lock('/s')");
$s->close;
free_ok('/s', 'session lock after the end of the session');

# Transaction lifetime
$s = $test->session($one);
foreach my $end ('COMMIT', 'ROLLBACK')
{
	$s->query('BEGIN');
	cmp_ok($s->query("SELECT zk_xact_lock('/t')"), '>', 0, 'granted');
	$s->query("SELECT zk_xact_lock('/t')");
	taken_ok('/t', "transaction lock before $end");
	is($s->query("SELECT zk_unlock('/t')"),
		'f', 'zk_unlock does not release a transaction lock');
	$s->query('SELECT zk_unlock_all()');
	taken_ok('/t', 'zk_unlock_all does not either');
	$s->query($end);
	free_ok('/t', "transaction lock after $end");
}
$s->query("SELECT zk_xact_lock('/t')");
free_ok('/t', 'transaction lock of a statement by itself');
$s->query('BEGIN');
is($s->query("SELECT zk_try_xact_lock('/t', '1min')"), 't', 'try, transaction');
is($s->error('SELECT 1/0'), '22012', 'an error');
$s->query('ROLLBACK');
free_ok('/t', 'transaction lock after a failed transaction');
$s->query("BEGIN; SELECT zk_xact_lock_shared('/t')");
is($other->query("SELECT zk_try_lock_shared('/t')"),
	't', 'shared transaction lock lets readers in');
$other->query("SELECT zk_unlock_shared('/t')");
taken_ok('/t', 'shared transaction lock against a writer');
is($s->query("SELECT zk_try_xact_lock_shared('/t')"), 't', 're-entered');
$s->query('COMMIT');
free_ok('/t', 'shared transaction lock after COMMIT');

# A session lock on top of a transaction lock, whose znode stays for it
$s->query('BEGIN');
$s->query("SELECT zk_xact_lock('/u')");
$s->query("SELECT zk_lock('/u')");
$s->query('COMMIT');
taken_ok('/u', 'session lock over a COMMIT');
wait_for(
	sub {
		$s->query("SELECT concat_ws(' ', state, znode = (SELECT znode FROM zk_queue('/u')))"
			  . " FROM zk_locks WHERE path = '/u'") eq 'granted t';
	},
	'its one row shows the znode');
is($s->query("SELECT granted FROM zk_queue('/u')"), 't', 'it is the holder');
$s->query("SELECT zk_unlock('/u')");
free_ok('/u', 'session lock on top of a transaction lock');

# Many at once
$s->query('SET zklock.max_requests_per_session = 100');
$s->query("SELECT zk_lock('/many/' || n) FROM generate_series(1, 30) n");
$s->query("SELECT zk_lock_shared('/many/' || n) FROM generate_series(20, 40) n");
is($s->query('SELECT count(DISTINCT path) FROM zk_locks'), 40, '40 locks held');
$s->query('SELECT zk_unlock_all()');
free_ok("/many/$_", 'after zk_unlock_all') foreach 1, 25, 40;

# What a pooler sends between clients
$s->query("SELECT zk_lock('/pool'), zk_lock_shared('/pool2')");
taken_ok('/pool', 'before DISCARD ALL');
$s->query('DISCARD ALL');
free_ok($_, 'after DISCARD ALL') foreach '/pool', '/pool2';
$s->query("SELECT zk_lock('/pool')");
$s->query('DISCARD PLANS');
taken_ok('/pool', 'after DISCARD PLANS');
is($s->query("SELECT zk_unlock('/pool')"), 't', 'and still ours');

# Two-phase commit cannot carry a transaction lock, but leaves session locks.
$s->query("BEGIN; SELECT zk_xact_lock('/p')");
is($s->error("PREPARE TRANSACTION 'p'"),
	'0A000', 'PREPARE TRANSACTION is refused with a transaction lock');
$s->query('ROLLBACK');
free_ok('/p', 'after the refused PREPARE TRANSACTION');
$s->query("SELECT zk_lock('/p')");
$s->query("BEGIN; SELECT 1; PREPARE TRANSACTION 'p'");
taken_ok('/p', 'session lock through PREPARE TRANSACTION');
$s->query("COMMIT PREPARED 'p'");
taken_ok('/p', 'session lock through COMMIT PREPARED');
$s->query("SELECT zk_unlock('/p')");
free_ok('/p', 'session lock released after that');

# Tokens
is($s->query("SELECT zk_fencing_token('/f') IS NULL"),
	't', 'no token without the lock');
my $token = $s->query("SELECT zk_lock('/f')");
is($s->query("SELECT zk_fencing_token('/f')"), $token, 'the token again');
is($s->query("SELECT zk_lock('/f')"), $token, 're-entry keeps the token');
is($other->query("SELECT zk_fencing_token('/f') IS NULL"),
	't', 'another session has none');
$s->query("SELECT zk_unlock('/f'), zk_unlock('/f')");
is($s->query("SELECT zk_fencing_token('/f') IS NULL"),
	't', 'no token after the release');

# A long transaction under a lock
my $memory = "SELECT used_bytes FROM pg_backend_memory_contexts WHERE name = 'TopMemoryContext'";
$s->query("SELECT zk_lock('/long')");
$s->query('BEGIN');
$s->query($memory);
my $used = $s->query($memory);
$s->query('DO $$ BEGIN FOR i IN 1 .. 10000 LOOP PERFORM FROM pg_am; END LOOP; END $$');
cmp_ok($s->query($memory) - $used, '<', 100_000,
	'ten thousand statements leave nothing in memory until its end');
$s->query('COMMIT');

# And the same in one query, and in a procedure that could commit
$s->query(<<'EOS');
CREATE FUNCTION used() RETURNS bigint LANGUAGE sql AS $$
	SELECT used_bytes FROM pg_backend_memory_contexts WHERE name = 'TopMemoryContext' $$;
CREATE PROCEDURE grows(INOUT bytes bigint) LANGUAGE plpgsql AS $$
BEGIN
	bytes := used();
	FOR i IN 1 .. 10000 LOOP PERFORM FROM pg_am; END LOOP;
	bytes := used() - bytes;
END $$;
CREATE FUNCTION grows() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	bytes bigint;
BEGIN
	bytes := used();
	FOR i IN 1 .. 10000 LOOP PERFORM FROM pg_am; END LOOP;
	RETURN used() - bytes;
END $$;
CREATE PROCEDURE grows_below(INOUT bytes bigint) LANGUAGE plpgsql AS $$
BEGIN
	SELECT grows() INTO bytes;
END $$;
CREATE FUNCTION lists() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	PERFORM FROM pg_am;
	RETURN 1;
END $$;
CREATE FUNCTION lists_below() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	r record;
BEGIN
	PERFORM lists();
	FOR r IN SELECT lists() LOOP
		PERFORM FROM pg_am;
	END LOOP;
	RETURN lists();
END $$;
CREATE PROCEDURE assigns(INOUT bytes bigint) LANGUAGE plpgsql AS $$
DECLARE
	n int;
BEGIN
	bytes := used();
	FOR i IN 1 .. 10000 LOOP n := lists(); END LOOP;
	bytes := used() - bytes;
END $$;
CREATE PROCEDURE assigns_below(INOUT bytes bigint) LANGUAGE plpgsql AS $$
DECLARE
	n int;
BEGIN
	bytes := used();
	FOR i IN 1 .. 3000 LOOP n := lists_below(); END LOOP;
	COMMIT;
	FOR i IN 1 .. 3000 LOOP n := lists_below(); END LOOP;
	bytes := used() - bytes;
END $$;
CREATE FUNCTION checks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM FROM pg_am;
	IF NEW.i IN (1, 10000) THEN
		RAISE NOTICE '%', used();
	END IF;
	RETURN NULL;
END $$;
CREATE TABLE rows (i int);
CREATE CONSTRAINT TRIGGER checks AFTER INSERT ON rows DEFERRABLE
	FOR EACH ROW EXECUTE FUNCTION checks();
EOS
foreach my $call (
	'SELECT grows()',
	'CALL grows(NULL)',
	'CALL grows_below(NULL)',
	'CALL assigns(NULL)',
	'CALL assigns_below(NULL)')
{
	$s->query($call);
	cmp_ok($s->query($call), '<', 100_000, "nor do those of $call");
}
my $insert = 'INSERT INTO rows SELECT generate_series(1, 10000)';
foreach my $end ('', '; SET CONSTRAINTS ALL IMMEDIATE; COMMIT', '; COMMIT')
{
	my $begin = $end ne '' ? 'BEGIN; SET CONSTRAINTS ALL DEFERRED; ' : '';

	$s->query('SELECT 1');
	my @used = map { /^(\d+)$/m } map { $_->{message} }
	  @{ $s->send("$begin$insert$end")->result->{notices} };
	is(scalar(@used), 2, "$begin...$end: the triggers run");
	cmp_ok($used[1] - $used[0], '<', 200_000, 'and leave nothing either');
}
$s->query('DROP TABLE rows');
$s->query('DROP PROCEDURE grows, grows_below, assigns, assigns_below;'
	  . ' DROP FUNCTION grows, used, lists, lists_below, checks');
$s->query("SELECT zk_unlock('/long')");

# Locks held at a fast shutdown are released at once, not by a timeout.
$s->query("SELECT zk_lock('/down')");
taken_ok('/down', 'before the shutdown');
$test->stop_looking($one);
$one->stop('fast');
is(scalar($test->queue('/down')), 0, 'a shut-down server leaves no znode');
free_ok('/down', 'after the shutdown');
$one->start;
$other->close;

$test->finish;
