# A server that holds locks finds something else on ZooKeeper's port for a
# while (row 20).  Garbage costs it nothing but a connection.  An impostor that
# says that the session is over is believed, as the protocol has no way to
# tell: then the locks are lost at once, and their holders told (row 17), and
# the znodes of that session, which are still there, are somebody else's (row
# 18), even though they are our own.

use strict;
use warnings;

use Test::More;

use FakeZooKeeper;
use PostgreSQL::Test::Cluster;
use TcpProxy;
use ZklockTest;

my $net = TcpProxy->new;
my $test = ZklockTest->new(net => $net, session_timeout => '10s');
my ($one, $two) = $test->nodes;
my $port = PostgreSQL::Test::Cluster::get_free_port();
my $fake = FakeZooKeeper->new($port);
my $line = 'server1-zk';
my $lock = "SELECT zk_lock('/i')";

my $holder = $test->session($one);
my $waiter = $test->session($one);
my $rival = $test->session($two);
my $id = $test->status($one, 'session_id');

# Lets the server meet the impostor, and then the real one again.
sub meet
{
	my ($mode) = @_;
	my $before = $test->status($one, 'connects');

	$fake->mode($mode);
	$net->retarget($line, $port);
	$net->reset($line);
	wait_for(sub { $fake->stats->{accepted} }, "$mode: met");
	$net->retarget($line, $test->zk->port);

	# The impostor leaves, unless it has been left.
	wait_for(
		sub {
			$fake->mode($mode);
			$test->status($one,
				"connects > $before AND state = 'connected'") eq 't';
		},
		"$mode: connected to the real one");
	return;
}

my $token = $holder->query($lock);
$holder->query("BEGIN; SELECT zk_xact_lock('/i2')");
$test->enqueue($rival, $lock, '/i');
$test->enqueue($waiter, $lock, '/i');
my @queue = $test->queue('/i');
foreach my $mode ('ssh', 'noise', 'length -1', 'connect: closed',
	'connect: timeout -1', 'connect: timeout 24 days',
	'connect: no password', 'connect: another password',
	'connect: then length -1', 'connect: then an event of length -5',
	'request: noise', 'request: zeros as body', 'request: expired',
	'request: node exists', 'request: two replies')
{
	meet($mode);
	is($test->status($one, 'session_id, sessions_lost'),
		"$id|0", "$mode: the same session");
}
is_deeply([ $test->queue('/i') ], \@queue, 'the same queue');
is(scalar(grep { $test->still_waits($_) } $rival, $waiter), 2, 'both wait');
is($holder->query('COMMIT'), '', 'the holder commits');
is($holder->query("SELECT zk_unlock('/i')"), 't', 'and unlocks');
cmp_ok($rival->value, '>', $token, 'the next one is granted');
$token = $rival->query("SELECT zk_fencing_token('/i')");

# Told that the session is over: what it held is lost, what it waited for is
# asked for again; the old znodes are there until the session really ends.
my $lost = 0;
foreach my $mode ('connect: expired', 'connect: another session')
{
	my $other = $test->session($one);

	is($other->query("SELECT zk_try_lock('/i3')"), 't', "$mode: one is held");
	$other->query("BEGIN; SELECT zk_xact_lock('/i2')");
	my ($old) = $test->queue('/i3');
	@queue = $test->queue('/i');
	$net->retarget($line, $port);
	$fake->mode($mode);
	$net->reset($line);
	$test->look_until($one, "SELECT sessions_lost > $lost FROM zk_stat_server",
		't', 'the impostor is believed');
	is($other->error('COMMIT'), '40001', "$mode: its holder cannot commit");
	$net->retarget($line, $test->zk->port);
	wait_for(
		sub {
			$fake->mode($mode);
			$test->status($one, 'state') eq 'connected';
		},
		"$mode: connected to the real one");
	$lost = $test->status($one, 'sessions_lost');
	$other->error("SELECT zk_unlock('/i3')");

	is_deeply([ grep { $_ eq $old } $test->queue('/i3') ],
		[$old], "$mode: the old znode is still there");
	is($other->query("SELECT zk_try_lock('/i3')"),
		'f', "$mode: and is not taken for our own");
	ok($waiter->busy, "$mode: the waiter waits");
	is($other->query("SELECT zk_try_lock('/i3', '1min')"),
		't', "$mode: free when the old session has ended");
	isnt(($test->queue('/i3'))[0], $old, "$mode: with a znode of its own");

	# The next one looks at once, which may be before a session's end releases it.
	$other->query("SELECT zk_unlock('/i3')");
	$other->close;
}
$test->wait_queue('/i', 2);
$rival->query("SELECT zk_unlock('/i')");
cmp_ok($waiter->value, '>', $token, 'the waiter gets its turn');
$waiter->query("SELECT zk_unlock('/i')");

$_->close foreach $holder, $waiter, $rival;
$fake->quit;
$test->finish;
