# Several locks at once: all or nothing, in one batch when nobody is in the way,
# and without a deadlock when somebody is.

use strict;
use warnings;

use Test::More;

use CuratorClient;
use ZklockTest;

my $test = ZklockTest->new(
	conf => "zklock.dialects = '/multi=curator_mutex'\n"
	  . "zklock.max_requests_per_session = 200\n");
my ($one, $two) = $test->nodes;
my $s = $test->session($one);
my $other = $test->session($two);
my $third = $test->session($two);

sub held
{
	my ($session) = @_;

	return $session->query("SELECT coalesce(string_agg(path || ':' || mode ||"
		  . " ':' || holds, ' ' ORDER BY path, mode), '') FROM zk_locks"
		  . " WHERE state IN ('granted', 'unconfirmed') AND pid = pg_backend_pid()");
}

sub taken
{
	my ($path) = @_;
	my $got = $third->query("SELECT zk_try_lock('$path')");

	$third->query("SELECT zk_unlock('$path')") if $got eq 't';
	return $got eq 'f';
}

# An unlock returns before ZooKeeper knows of it.
sub becomes_free
{
	my ($path) = @_;
	my $got = $third->query("SELECT zk_try_lock('$path', '1min')");

	$third->query("SELECT zk_unlock('$path')") if $got eq 't';
	return $got eq 't';
}

# Tokens come in the order of the names, however they are taken.
$s->query("SELECT zk_multilock(ARRAY['/c', '/a', '/b'])");
is(held($s), '/a:exclusive:1 /b:exclusive:1 /c:exclusive:1', 'three are held');
$s->query('SELECT zk_unlock_all()');
is($s->query(
		"SELECT zk_multilock(ARRAY['/c', '/a', '/b']) = ARRAY[zk_fencing_token('/c'),"
		  . " zk_fencing_token('/a'), zk_fencing_token('/b')]"),
	't',
	'tokens in the order of the array');
ok(taken('/a') && taken('/b') && taken('/c'), 'all are taken elsewhere');
is($s->query("SELECT zk_multiunlock(ARRAY['/a', '/b', '/c'])"), 't', 'released');
ok(becomes_free('/a') && becomes_free('/c'), 'and free again');
is(held($s), '', 'none is held');

# In one batch
my $names = "SELECT array_agg('/n' || i) FROM generate_series(1, 100) i";
$s->query("SELECT zk_multilock(($names)); SELECT zk_unlock_all()");
$test->look_until($one, 'SELECT count(*) FROM zk_locks', '0');
my $before = $s->query('SELECT batches FROM zk_stat_server');
$s->query("SELECT zk_multilock(($names))");
my $after = $s->query('SELECT batches FROM zk_stat_server');
cmp_ok($after - $before, '<=', 3, '100 locks take a batch, not 100');
$s->query('SELECT zk_unlock_all()');

# All or nothing
$other->query("SELECT zk_lock('/b')");
is($s->query("SELECT zk_try_multilock(ARRAY['/a', '/b', '/c'])"),
	'f', 'one is taken: false');
is(held($s), '', 'and none is held');
is($s->query("SELECT zk_try_multilock(ARRAY['/a', '/b', '/c'], '200ms')"),
	'f', 'false after a time');
is(held($s), '', 'and none is held');
$test->times_out($s, "zk_multilock(ARRAY['/a', '/b', '/c'], '0')",
	qr{could not acquire all of 3 distributed locks within 0 ms.*Other clients are ahead}s);
$test->times_out($s, "zk_multilock(ARRAY['/a', '/b', '/c'], '200ms')",
	qr{could not acquire distributed lock "/b" within 200 ms.*Distributed lock "/b" is held by}s);
is($s->query("SELECT zk_try_xact_multilock(ARRAY['/a', '/b'])"),
	'f', 'false for a transaction');
$s->query("SET lock_timeout = '200ms'");
is($s->error("SELECT zk_multilock(ARRAY['/a', '/b', '/c'])"),
	'55P03', 'lock_timeout');
$s->query('RESET lock_timeout');
is(held($s), '', 'and none is held');
ok(becomes_free('/a') && becomes_free('/c'), 'others can have them');

# While one is waited for, nobody stands in the queues of those behind it.
$s->send("SELECT zk_multilock(ARRAY['/a', '/b', '/c'])");
$test->wait_queue('/b', 2);
$test->wait_queue('/c', 0);
is($third->query("SELECT zk_try_lock('/c', '10s')"),
	't', 'the one behind it is free for others');
is(scalar($test->queue('/a')), 1, 'the one before it is held');
$other->query("SELECT zk_unlock('/b')");
$test->wait_queue('/c', 2);
is(held($third), '/c:exclusive:1', 'now the last one is waited for');
$third->query("SELECT zk_unlock('/c')");
like($s->value, qr/^\{\d+,\d+,\d+\}$/, 'then all are there');
is(held($s), '/a:exclusive:1 /b:exclusive:1 /c:exclusive:1', 'held');
$s->query('SELECT zk_unlock_all()');

# Who holds one of the later names and asks for an earlier one is not locked
# out by somebody who only waits.
$other->query("SELECT zk_lock('/x/1')");
$s->send("SELECT zk_multilock(ARRAY['/x/1', '/x/2'])");
$test->wait_queue('/x/1', 2);
$test->wait_queue('/x/2', 0);
is($other->query("SELECT zk_try_lock('/x/2', '10s')"),
	't', 'the holder of the first gets the second');
$other->query('SELECT zk_unlock_all()');
ok($s->value, 'then the waiting one gets both');
$s->query('SELECT zk_unlock_all()');

# A cancelled wait leaves nothing.
$other->query("SELECT zk_lock('/b')");
$s->send("SELECT zk_multilock(ARRAY['/a', '/b', '/c'])");
$test->wait_queue('/b', 2);
$s->cancel;
is($s->sqlstate, '57014', 'cancelled');
$test->wait_queue('/b', 1);
$test->wait_queue('/a', 0);
is(held($s), '', 'and none is held');
$other->query("SELECT zk_unlock('/b')");

# What is held already is counted, and only if all are got.
$s->query("SELECT zk_lock('/a')");
$other->query("SELECT zk_lock('/b')");
is($s->query("SELECT zk_try_multilock(ARRAY['/a', '/b'])"), 'f', 'one is taken');
is(held($s), '/a:exclusive:1', 'the held one is not counted');
$other->query("SELECT zk_unlock('/b')");
is($s->query("SELECT zk_try_multilock(ARRAY['/a', '/b'], '1min')"), 't', 'both');
is(held($s), '/a:exclusive:2 /b:exclusive:1', 'the held one is counted');
$s->query("SELECT zk_multiunlock(ARRAY['/a', '/b'])");
is(held($s), '/a:exclusive:1', 'once less');
is($s->query("SELECT zk_multiunlock(ARRAY['/a', '/b'])"),
	'f', 'one of them is not held');
is(held($s), '', 'the other is released all the same');

# Non-re-entrant
$s->query("SELECT zk_lock('/a'); SET zklock.reentrant = off");
is($s->error("SELECT zk_multilock(ARRAY['/a', '/b'])"), '55006', 'not again');
is(held($s), '/a:exclusive:1', 'nothing changed');
$s->query('RESET zklock.reentrant; SELECT zk_unlock_all()');

# Transactions and savepoints
$s->query("BEGIN; SELECT zk_xact_multilock(ARRAY['/a', '/b']); SAVEPOINT p;"
	  . " SELECT zk_xact_multilock(ARRAY['/b', '/c'])");
is(held($s), '/a:exclusive:1 /b:exclusive:2 /c:exclusive:1', 'in a savepoint');
$s->query('ROLLBACK TO p');
is(held($s), '/a:exclusive:1 /b:exclusive:1', 'after ROLLBACK TO');
$s->query('COMMIT');
is(held($s), '', 'after COMMIT');
$s->query("BEGIN; SELECT zk_try_xact_multilock(ARRAY['/b', '/a'], '1s')");
is(held($s), '/a:exclusive:1 /b:exclusive:1', 'a try with a timeout');
$s->query('ROLLBACK');
is(held($s), '', 'after ROLLBACK');

# A killed backend gives all back.
$s->query("SELECT zk_multilock(ARRAY['/a', '/b'])");
$test->look($one, 'SELECT pg_terminate_backend(' . $s->pid . ')');
$test->wait_queue('/a', 0);
$test->wait_queue('/b', 0);
$s->abandon;
$s = $test->session($one);

# The table of slots is full in the middle.
my $most = $test->session($one);
$most->query("SELECT zk_lock('/o/' || i) FROM generate_series(1, 150) i");
is($s->error("SELECT zk_multilock(($names))"), '53400', 'too many');
like($s->messages, qr/All 200 slots/, 'with those of others');
$most->close;
$test->look_until($one, 'SELECT count(*) FROM zk_locks', '0');

# Many at once, each with some of the names in any order, and Curator's
# InterProcessMultiLock among them: all come through, and nobody meets another.
my $round = <<'SQL';
DO $$
DECLARE
	names text[];
BEGIN
	FOR i IN 1..60 LOOP
		SELECT array_agg('/multi/' || n) INTO names
		  FROM (SELECT n FROM generate_series(1, 6) n ORDER BY random()
				LIMIT 1 + floor(random() * 4)) s;
		PERFORM zk_multilock(names);
		PERFORM zk_multiunlock(names);
	END LOOP;
END $$
SQL
my @sessions = map { $test->session($_) } ($one, $two) x 4;
my $curator = CuratorClient->new($test->zk->connect_string);
$curator->command('multi', 'run', 'm', 60,
	map { "/zklock/multi/$_" } 2, 4, 5);
$_->send($round) foreach @sessions;
is($_->value, '', 'a session is through') foreach @sessions;
ZklockTest::wait_for(sub { $curator->command('multi', 'rounds', 'm') == 60 },
	'Curator is through');
$curator->command('multi', 'lock', 'm', '/zklock/multi/1', '/zklock/multi/3');
ZklockTest::wait_for(sub { $curator->command('multi', 'held', 'm') },
	'Curator has two');
is($s->query("SELECT zk_try_multilock(ARRAY['/multi/3', '/multi/2'])"),
	'f', 'Curator has one of them');
$curator->command('multi', 'unlock', 'm');
is($s->query("SELECT zk_try_multilock(ARRAY['/multi/3', '/multi/2'], '10s')"),
	't', 'and gave it back');
ok(!$curator->command('multi', 'try', '/zklock/multi/1',
		'/zklock/multi/3'), 'Curator finds one of ours taken');
$s->query('SELECT zk_unlock_all()');
$curator->quit;
$_->close foreach @sessions, $s, $other, $third;

$test->finish;
