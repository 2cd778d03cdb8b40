# Deadlocks across servers while other things go wrong: a session process is killed, a
# worker ends, ZooKeeper is away, the victim gives up by itself.  And what is
# no deadlock: a long chain, or any at all while the detection is off.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw(sleep);

use DeadlockTest;
use ZklockTest;

my $test = ZklockTest->new(conf => $deadlock_conf, session_timeout => '10s');
my ($one, $two) = $test->nodes;
my @s = map { $test->session($_ % 2 ? $two : $one) } 0 .. 8;

# A chain of eight, which is no cycle: nothing happens, and it ends in its order.
foreach my $i (0 .. 7)
{
	$s[$i]->query("BEGIN; SELECT zk_xact_lock('/chain/$i')");
}
foreach my $i (reverse 1 .. 7)
{
	$test->enqueue($s[$i], "SELECT zk_xact_lock('/chain/" . ($i - 1) . "')", '/chain/' . ($i - 1));
}
ok(still($test, 20, @s[ 1 .. 7 ]), 'a chain of eight is no cycle');
cmp_ok($test->status($_, 'deadlock_checks'), '>', 0, $_->name . ' has looked') foreach $one, $two;
is($test->status($one, 'deadlocks') + $test->status($two, 'deadlocks'), 0, 'and found nothing');

# It becomes a cycle.
$test->enqueue($s[0], "SELECT zk_xact_lock('/chain/7')", '/chain/7');
one_victim($test, [ @s[ 0 .. 7 ] ], 'a cycle of eight');

# Another client at the end of a chain counts as able to go on.
my $foreign = $test->zk->new_client;
$foreign->lock('w', 'write', '/zklock/foreign', 'somebody');
wait_for(sub { $foreign->held('w') }, 'another client');
$s[0]->query("BEGIN; SELECT zk_xact_lock('/chain/f')");
$test->enqueue($s[0], "SELECT zk_xact_lock('/foreign')", '/foreign');
$test->enqueue($s[1], "BEGIN; SELECT zk_xact_lock('/chain/f')", '/chain/f');
ok(still($test, 10, @s[ 0, 1 ]), 'another client is waited for');
$foreign->unlock('w');
is(scalar(settle($test, @s[ 0, 1 ])), 0, 'and all goes on when it is done');
$foreign->quit;

# The victim gives up by itself, before it is one.
foreach my $who (0, 1)
{
	$_->query("SET deadlock_timeout = '1s'") foreach @s[ 0, 1 ];
	cycle($test, "/cancel/$who", [ @s[ 0, 1 ] ]);
	$s[$who]->cancel;
	is($s[$who]->sqlstate, '57014', "session $who is cancelled");
	$s[$who]->query('ROLLBACK');
	is($s[ 1 - $who ]->sqlstate, '', 'and the other one gets its lock');
	$s[ 1 - $who ]->query('COMMIT');
	$_->query('RESET deadlock_timeout') foreach @s[ 0, 1 ];
}

# lock_timeout comes first.
$s[0]->query("SET lock_timeout = '100ms'");
$s[$_]->query("BEGIN; SELECT zk_xact_lock('/first/$_')") foreach 0, 1;
$test->enqueue($s[1], "SELECT zk_xact_lock('/first/0')", '/first/0');
is($s[0]->error("SELECT zk_xact_lock('/first/1')"), '55P03', 'a timeout comes first');
$s[0]->query('ROLLBACK; RESET lock_timeout');
is(scalar(settle($test, $s[1])), 0, 'the other one gets its lock');

# A try is no victim: it ends by itself.
$s[$_]->query("BEGIN; SELECT zk_xact_lock('/try/$_')") foreach 0, 1;
$test->enqueue($s[1], "SELECT zk_xact_lock('/try/0')", '/try/0');
is($s[0]->query("SELECT zk_try_xact_lock('/try/1', '2s')"), 'f', 'a try in a cycle returns false');
$s[0]->query('ROLLBACK');
is(scalar(settle($test, $s[1])), 0, 'and the other one gets its lock');

# Two sessions of one server publish their waits in one batch, again and again.
my $together = 0;
foreach my $round (1 .. 10)
{
	my @pair = @s[ 0, 2 ];

	$pair[$_]->query("BEGIN; SELECT zk_xact_lock('/batch/$_')") foreach 0, 1;
	$pair[$_]->send("SELECT zk_xact_lock('/batch/" . (1 - $_) . "')") foreach 0, 1;
	$together += scalar(settle($test, @pair));
}
is($together, 10, 'two sessions of one server, ten times: one victim each');

# The same on two servers at the same moment
$together = 0;
foreach my $round (1 .. 10)
{
	$s[$_]->query("BEGIN; SELECT zk_xact_lock('/moment/$_')") foreach 0, 1;
	$s[$_]->send("SELECT zk_xact_lock('/moment/" . (1 - $_) . "')") foreach 0, 1;
	$together += scalar(settle($test, @s[ 0, 1 ]));
}
is($together, 10, 'sessions of two servers, ten times: one victim each');

# ---- processes that end ----

sub kill_session_process
{
	my ($node) = @_;

	kill 'KILL', $test->status($node, 'session_pid');
	return;
}

foreach my $delay (0, 0.5, 1, 1.3)
{
	cycle($test, '/kill', [ @s[ 0, 1 ] ]);
	sleep $delay * $deadlock_ms / 1000;
	kill_session_process($one);
	one_victim($test, [ @s[ 0, 1 ] ], "a session process ends after $delay deadlock_timeouts");
	$test->wait_connected($one);
}

# A worker ends, and with it what its sessions held: no deadlock is left.
cycle($test, '/worker', [ @s[ 0, 1 ] ]);
$test->restart_worker($one);
is($s[0]->sqlstate, '40001', 'a worker ends: its session has lost its lock');
is($s[1]->sqlstate, '', 'a worker ends: the other one gets it');
$_->query('ROLLBACK') foreach @s[ 0, 1 ];

# A session that is in the way ends, so there is no deadlock any more.
my $mortal = $test->session($one);
$mortal->query("SET deadlock_timeout = '1min'");
$s[1]->query("SET deadlock_timeout = '1min'");
cycle($test, '/mortal', [ $mortal, $s[1] ]);
$test->look($one, 'SELECT pg_terminate_backend(' . $mortal->pid . ')');
$mortal->result;
is(scalar(settle($test, $s[1])), 0, 'a session ends: the other one gets its lock');
$s[1]->query('RESET deadlock_timeout');

# ---- ZooKeeper is away ----

# Neither within the lease nor past it does any session fail.
foreach my $times (5, 50)
{
	$_->query("SET deadlock_timeout = '500ms'") foreach @s[ 0, 1 ];
	cycle($test, '/away', [ @s[ 0, 1 ] ]);
	$test->zk->pause;
	ok(still($test, $times, @s[ 0, 1 ]), "no victim while ZooKeeper is away for $times deadlock_timeouts");
	$test->zk->resume;
	my @victims = settle($test, @s[ 0, 1 ]) if $times == 5;
	if ($times == 5)
	{
		is(scalar(@victims), 1, 'one afterwards');
	}
	else
	{
		# The session has expired, so the locks are lost; the waits go on.
		$test->wait_connected($_) foreach $one, $two;
		$_->cancel(running => 1) foreach @s[ 0, 1 ];
		$_->result foreach @s[ 0, 1 ];
		$_->query('ROLLBACK; RESET deadlock_timeout') foreach @s[ 0, 1 ];
	}
}

# ---- the setting ----

foreach my $node ($one, $two)
{
	$node->append_conf('postgresql.conf', 'zklock.deadlock_detection = off');
	$node->reload;
}
foreach my $node ($one, $two)
{
	$test->look_until($node, 'SHOW zklock.deadlock_detection', 'off');
}
$test->look($_, "SELECT count(*) FROM zk_queue('/x')") foreach $one, $two;
my @before = map { $test->status($_, 'deadlock_checks') } $one, $two;
cycle($test, '/off', [ @s[ 0, 1 ] ]);
ok(still($test, 10, @s[ 0, 1 ]), 'deadlock_detection off: both wait');
is(join(' ', map { $test->status($_, 'deadlock_checks') } $one, $two), "@before", 'and no server looks');
$s[0]->cancel;
$s[0]->result;
$s[0]->query('ROLLBACK');
is(scalar(settle($test, $s[1])), 0, 'until one gives up');

$_->close foreach @s;
ok(wait_for(sub { !$test->zk->client->ls('/zklock/.waits') }, 'no wait is published any more'),
	'no publication is left');
$test->finish;
