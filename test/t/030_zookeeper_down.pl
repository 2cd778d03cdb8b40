# ZooKeeper comes and goes.  A server that starts without it waits for it; one
# that loses it keeps its session, its locks and its waiting clients over a
# restart of ZooKeeper.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new(start_zookeeper => 0, session_timeout => '10s');
my ($one, $two) = $test->nodes;
my $lock = "SELECT zk_lock('/z')";

# Absent at the start
my $first = $test->session($one);
my $second = $test->session($two);
like($test->status($one, 'state'),
	qr/^(connecting|disconnected)$/, 'no ZooKeeper: zk_status says so');
ok(wait_for(
		sub { $test->status($one, 'last_error IS NOT NULL') eq 't' },
		'last_error'),
	'and why');
$first->send($lock);
$second->query("SET zklock.answer_timeout = '200ms'");
is($second->error("SELECT zk_try_lock('/z')"),
	'08006', 'a try is an error, not a no');
is($second->error("SELECT zk_try_xact_lock_shared('/z', '100ms')"),
	'08006', 'a try with a time limit too');
is($second->error("SELECT count(*) FROM zk_queue('/z')"),
	'08006', 'and so is zk_queue');
$second->query("SET lock_timeout = '200ms'");
is($second->error($lock), '08006', 'lock_timeout is honoured');
$second->query("SET lock_timeout = 0; SET statement_timeout = '200ms'");
is($second->error($lock), '57014', 'statement_timeout is honoured');
$second->query('SET statement_timeout = 0');
$second->send($lock);
$second->cancel;
is($second->sqlstate, '57014', 'and a cancel');
$test->look_until($two, 'SELECT count(*) FROM zk_locks',
	0, 'requests that were never sent leave no slot');
ok($first->busy, 'zk_lock waits');

$test->zk->start;
cmp_ok($first->value, '>', 0, 'and is granted once ZooKeeper is there');
$test->wait_connected($two);
$second->query('RESET zklock.answer_timeout');
is($second->query("SELECT zk_try_lock('/z')"), 'f', 'a try now says no');

# Restarted while one holds and one waits
foreach my $way ('restart', 'kill9')
{
	$test->enqueue($second, $lock, '/z');
	my @ids = map { $test->status($_, 'session_id') } $one, $two;
	my @connects = map { $test->status($_, 'connects') } $one, $two;
	my @queue = $test->queue('/z');

	if ($way eq 'restart') { $test->zk->restart; }
	else { $test->zk->kill9; $test->zk->start; }
	foreach my $i (0, 1)
	{
		my $node = ($one, $two)[$i];
		$test->look_until($node,
			"SELECT connects > $connects[$i] AND state = 'connected'"
			  . ' FROM zk_status, zk_stat_server',
			't', $node->name . ' connects again');
	}
	is_deeply([ map { $test->status($_, 'session_id') } $one, $two ],
		\@ids, "$way: both keep their sessions");
	is_deeply([ $test->queue('/z') ], \@queue, "$way: and their znodes");
	ok($test->still_waits($second), "$way: the one waits");
	is($first->query("SELECT state IN ('granted', 'unconfirmed') FROM zk_locks"
			  . ' WHERE pid = pg_backend_pid()'),
		't', "$way: the other holds");
	is($first->query("SELECT zk_unlock('/z')"), 't', "$way: releases");
	cmp_ok($second->value, '>', 0, "$way: and the first is granted");
	is($test->status($one, 'sessions_lost'), 0, "$way: no session lost");
	($first, $second) = ($second, $first);
	($one, $two) = ($two, $one);
	$test->wait_queue('/z', 1);
}

# Released, asked for and given up while ZooKeeper is away
my $third = $test->session($two);
$test->enqueue($second, $lock, '/z');
$test->zk->kill9;
is($first->query("SELECT zk_unlock('/z')"),
	't', 'a release does not wait for ZooKeeper');
$first->query('SELECT 1');
$third->send("SELECT zk_lock('/z3')");
my $fourth = $test->session($two);
$fourth->send($lock);
$test->wait_waiting($two, '/z', 2);
$fourth->cancel;
is($fourth->sqlstate, '57014', 'a cancel does not either');
is($first->error("SELECT zk_lock('/z4', '200ms')"),
	'08006', 'a timeout ends a wait for ZooKeeper, too');
like($first->messages, qr/"\/z4" within 200 ms.*The wait was for ZooKeeper/s,
	'and the error says so');
$test->zk->start;
cmp_ok($second->value, '>', 0, 'the waiting one is granted afterwards');
cmp_ok($third->value, '>', 0, 'and a new one');
$test->wait_queue('/z', 1);

# Paused for less than the session timeout: nothing notices but the clients.
$test->zk->pause;
$fourth->send($lock);
$second->query("SELECT zk_unlock('/z')");
$test->zk->resume;
cmp_ok($fourth->value, '>', 0, 'goes on after a pause of ZooKeeper');
is($test->status($_, 'sessions_lost'), 0, 'no session lost on ' . $_->name)
  foreach $one, $two;

$_->close foreach $first, $second, $third, $fourth;
$test->finish;
