# Deadlocks across servers that go through PostgreSQL's own locks, on one server and on
# two.  A session that waits for a distributed lock is the victim, never one that
# waits for a row.  What is no cycle goes on waiting.

use strict;
use warnings;

use Test::More;

use DeadlockTest;
use ZklockTest;

my $test = ZklockTest->new(conf => $deadlock_conf);
my ($one, $two) = $test->nodes;
foreach my $node ($one, $two)
{
	$node->safe_psql('postgres',
		'CREATE TABLE t (i int PRIMARY KEY, n int); INSERT INTO t SELECT i, 0 FROM generate_series(1, 9) i');
}
my ($h, $w, $x) = map { $test->session($one) } 1 .. 3;
my ($other, $w2, $h2) = map { $test->session($two) } 1 .. 3;

# A session changes a row, or waits for the one who has.
sub update
{
	my ($row) = @_;

	return "UPDATE t SET n = n + 1 WHERE i = $row";
}

sub wait_for_row
{
	my ($session, $row) = @_;

	$session->send(update($row));
	return $test->look_until(
		$session->{node},
		"SELECT wait_event_type FROM pg_stat_activity WHERE pid = " . $session->pid,
		'Lock', 'a session waits for a row');
}

# W waits for a lock of H's, which waits for a row of W's; who begins first?
foreach my $first ('row', 'distributed lock')
{
	my $name = "two sessions, $first first";
	$h->query("BEGIN; SELECT zk_xact_lock('/m/1')");
	$w->query('BEGIN; ' . update(1));
	wait_for_row($h, 1) if $first eq 'row';
	$test->enqueue($w, "SELECT zk_xact_lock('/m/1')", '/m/1');
	if ($first ne 'row')
	{
		ok(still($test, 3, $w), "$name: it waits for a while");
		wait_for_row($h, 1);
	}
	my $victim = one_victim($test, [ $h, $w ], $name);
	is($victim->{session}, $w, "$name: the one that waits for a distributed lock");
	like($victim->{messages},
		qr{Process \d+ of server "server1" waits for a PostgreSQL lock; blocked by process \d+ of server "server1"},
		"$name: the error tells of the row lock");
}

# Over a second server: O waits for H's lock, H for W's row, W for O's lock.
foreach my $way (ways(0 .. 2))
{
	my $name = 'a row lock on one of two servers, ' . join ' ', @$way;
	$other->query("BEGIN; SELECT zk_xact_lock('/m/o')");
	$h->query("BEGIN; SELECT zk_xact_lock('/m/h')");
	$w->query('BEGIN; ' . update(2));
	my @begin = (
		sub { wait_for_row($h, 2) },
		sub { $test->enqueue($w, "SELECT zk_xact_lock('/m/o')", '/m/o') },
		sub { $test->enqueue($other, "SELECT zk_xact_lock('/m/h')", '/m/h') });
	$begin[$_]->() foreach @$way;
	is(one_victim($test, [ $h, $w, $other ], $name)->{session}, $w, "$name: the one with the row");
}

# Through a session that has nothing to do with distributed locks
$other->query("BEGIN; SELECT zk_xact_lock('/m/o')");
$h->query("BEGIN; SELECT zk_xact_lock('/m/h')");
$w->query('BEGIN; ' . update(3));
$x->query('BEGIN; ' . update(4));
wait_for_row($x, 3);
wait_for_row($h, 4);
$test->enqueue($w, "SELECT zk_xact_lock('/m/o')", '/m/o');
$test->enqueue($other, "SELECT zk_xact_lock('/m/h')", '/m/h');
is(one_victim($test, [ $h, $w, $x, $other ], 'through a third session')->{session}, $w,
	'the one with the row');

# Advisory locks and locks on tables
$h->query("BEGIN; SELECT zk_xact_lock('/m/a')");
$w->query('BEGIN; SELECT pg_advisory_xact_lock(1); LOCK TABLE t IN SHARE MODE');
$test->enqueue($w, "SELECT zk_xact_lock('/m/a')", '/m/a');
$h->send('SELECT pg_advisory_xact_lock(1)');
one_victim($test, [ $h, $w ], 'an advisory lock');
$h->query("BEGIN; SELECT zk_xact_lock('/m/a')");
$w->query('BEGIN; LOCK TABLE t IN SHARE MODE');
$test->enqueue($w, "SELECT zk_xact_lock('/m/a')", '/m/a');
wait_for_row($h, 1);
one_victim($test, [ $h, $w ], 'a lock on a table');

# A call that waits has a snapshot, which VACUUM and CREATE INDEX CONCURRENTLY respect.
my $has_snapshot = 'SELECT backend_xmin IS NOT NULL FROM pg_stat_activity WHERE pid = ' . $w->pid;
my $index = 'CREATE INDEX CONCURRENTLY i ON t (n)';
$h->query("SELECT zk_lock('/m/i')");
is($test->look($one, $has_snapshot), 'f', 'before the call');
$test->enqueue($w, "SELECT zk_lock('/m/i')", '/m/i');
is($test->look($one, $has_snapshot), 't', 'in the call');
$h->send($index);
is(one_victim($test, [ $h, $w ], 'an index')->{session}, $w, 'the session that waits for the lock');
$test->enqueue($w, "SELECT zk_try_lock('/m/i', '2s')", '/m/i');
is($h->query("DROP INDEX i; SELECT 1"), 1, 'once more');
$h->query($index);
is($w->value, 'f', 'a try ends');
is($test->look($one, "SELECT indisvalid FROM pg_index WHERE indexrelid = 'i'::regclass"),
	't', 'and so the index is built');
$h->query("SELECT zk_unlock('/m/i')");

# Row locks on both servers: W waits for H2's lock, H2 for W2's row, W2 for H's lock, H
# for W's row.
foreach my $way ([ 0, 1, 2, 3 ], [ 3, 2, 1, 0 ], [ 0, 2, 1, 3 ], [ 1, 3, 0, 2 ])
{
	my $name = 'row locks on two servers, ' . join ' ', @$way;
	$h->query("BEGIN; SELECT zk_xact_lock('/m/1')");
	$h2->query("BEGIN; SELECT zk_xact_lock('/m/2')");
	$w->query('BEGIN; ' . update(5));
	$w2->query('BEGIN; ' . update(5));
	my @begin = (
		sub { wait_for_row($h, 5) },
		sub { $test->enqueue($w, "SELECT zk_xact_lock('/m/2')", '/m/2') },
		sub { wait_for_row($h2, 5) },
		sub { $test->enqueue($w2, "SELECT zk_xact_lock('/m/1')", '/m/1') });
	$begin[$_]->() foreach @$way;
	my $victim = one_victim($test, [ $h, $h2, $w, $w2 ], $name);
	ok((grep { $_ == $victim->{session} } $w, $w2), "$name: one with a row");
}

# A savepoint: the victim gives back the row that it has changed since.
$h->query("BEGIN; SELECT zk_xact_lock('/m/1')");
$w->query('BEGIN; SAVEPOINT p; ' . update(6));
wait_for_row($h, 6);
is($w->error("SELECT zk_xact_lock('/m/1')"), '40P01', 'behind a savepoint');
$w->query('ROLLBACK TO p');
$h->value;
$h->query('COMMIT');
$w->query("SELECT zk_xact_lock('/m/1'); COMMIT");

# ---- what is no cycle ----

# W waits for a lock whose holder waits for nothing.
$other->query("SELECT zk_lock('/m/o')");
$h->query("BEGIN; SELECT zk_xact_lock('/m/h')");
$w->query('BEGIN; ' . update(7));
wait_for_row($h, 7);
$test->enqueue($w, "SELECT zk_xact_lock('/m/o')", '/m/o');
$test->enqueue($w2, "BEGIN; SELECT zk_xact_lock('/m/h')", '/m/h');
ok(still($test, 15, $h, $w, $w2), 'a chain through a row lock is no cycle');
cmp_ok($test->status($one, 'deadlock_checks'), '>', 0, 'although the server looks');

# The row is released, and the wait that was published for it ends.
$w->cancel;
is($w->sqlstate, '57014', 'W gives up');
$w->query('ROLLBACK');
$h->value;
ok(still($test, 3, $w2), 'the other server goes on waiting');
$h->query('COMMIT');
$w2->value;
$w2->query('COMMIT');
$other->query('SELECT zk_unlock_all()');

# Somebody else's row: H waits for a prepared transaction, which waits for nothing.
$x->query('BEGIN; ' . update(8) . "; PREPARE TRANSACTION 'p'");
$h->query("BEGIN; SELECT zk_xact_lock('/m/h')");
wait_for_row($h, 8);
$test->enqueue($w, "BEGIN; SELECT zk_xact_lock('/m/h')", '/m/h');
ok(still($test, 10, $h, $w), 'a prepared transaction is in no cycle');
$x->query("COMMIT PREPARED 'p'");
$h->value;
$h->query('COMMIT');
$w->value;
$w->query('COMMIT');

# PostgreSQL's own deadlocks are its own.
$h->query("BEGIN; SELECT zk_xact_lock('/m/h'); " . update(1));
$w->query("BEGIN; SELECT zk_xact_lock('/m/w'); " . update(2));
wait_for_row($h, 2);
$w->send(update(1));
my $victim = one_victim($test, [ $h, $w ], 'rows only');
unlike($victim->{messages}, qr/of server/, 'which PostgreSQL finds itself');

$_->close foreach $h, $w, $x, $other, $w2, $h2;
$test->finish;
