# The session process (row 6): replaced a hundred times under load by kill -9,
# and by one that is stopped, spins, says nothing, garbage, or lies.  The
# worker ends it and starts another; the ZooKeeper session, the locks and the
# queue stay; and when each one fails, they come slower and slower.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw(time);

use FakeSession;
use PostgreSQL::Test::Utils;
use Workload;
use ZklockTest;

my $fake = FakeSession->new;
my $test =
  ZklockTest->new(servers => 1, session_timeout => '6s', max_requests => 60);
my ($two) = $test->nodes;
my $one = $test->new_node('faked', session_timeout => '6s',
	conf => $fake->conf);
$one->start;
$fake->create_extension($one);
$test->wait_connected($one);

my $worker = $test->status($one, 'worker_pid');
my $id = $test->status($one, 'session_id');
my $lock = "SELECT zk_lock('/p')";

# Replaces the present session process; how it ends is up to its successor.
sub next_process
{
	my ($case) = @_;
	my $old = $test->status($one, 'session_pid');
	my $connects = $test->status($one, 'connects');

	kill 'KILL', $old;
	return $test->look_until($one,
		"SELECT session_pid <> $old AND connects > $connects"
		  . " AND state = 'connected' FROM zk_status, zk_stat_server",
		't', "$case: replaced");
}

# ---- kill -9, a hundred times, each once the one before serves and twenty
# more locks are asked for
my ($killed, $last, $next) = (0, 0, 0);
my $seen = Workload::run(
	$test,
	sessions => 8,
	names => 3,
	rounds => 1_000_000,
	until => sub { $killed >= 100 },
	tick => sub {
		return if $killed >= 100 || $_[0] < $next;
		my ($pid, $state) = split /\|/, $test->status($one, 'session_pid, state');
		return if $state ne 'connected' || $pid == $last;
		kill 'KILL', $last = $pid;
		$killed++;
		$next = $_[0] + 20;
	},
	lock => "SELECT zk_lock('%s')",
	unlock => "SELECT zk_unlock('%s')");
is($killed, 100, 'killed a hundred times under load');
cmp_ok($seen->{grants}, '>=', 1000, "while $seen->{grants} locks were granted");
is_deeply($seen->{errors}, {}, 'no client saw an error');
is($seen->{overlaps}, 0, 'no two holders');
$test->wait_connected($one);
is($test->status($one, 'session_id, sessions_lost, worker_pid'),
	"$id|0|$worker", 'the same session and the same worker');
$test->check_no_leaks;

# ---- fakes, each met once
my $holder = $test->session($one);
my $behind = $test->session($one);
my $rival = $test->session($two);
my $token = $holder->query($lock);
$test->enqueue($rival, $lock, '/p');
$test->enqueue($behind, $lock, '/p');
my @queue = $test->queue('/p');
my $late = 'could not connect to ZooKeeper server "[^"]*": the time was over before';
my $ended = 'the session process ended unexpectedly, before';
my %told = (
	'exit' => "$ended zklock_session had started",
	'mute' => "$late zklock_session had started",
	'started, then silence' => "$late the name was resolved",
	'resolved, then silence' => "$late the connection was accepted",
	'accepted, then silence' => "$late the server answered",
	'accepted, then exit' => "$ended the server answered");
foreach my $mode (grep { !/^lies/ } $fake->modes)
{
	my $starts = $fake->starts;
	my $offset = -s $one->logfile;

	$fake->once($mode);
	next_process($mode);
	like(slurp_file($one->logfile, $offset), qr/ zklock: $told{$mode}$/m,
		"$mode: the log says how far it came")
	  if $told{$mode};
	is($fake->starts, $starts + 1, "$mode: met once");
	is($test->status($one, 'session_id, sessions_lost, worker_pid'),
		"$id|0|$worker", "$mode: nothing is lost");
}
is_deeply([ $test->queue('/p') ], \@queue, 'the same queue');
is(scalar(grep { $test->still_waits($_) } $rival, $behind), 2, 'both wait');
is($holder->query("SELECT zk_unlock('/p')"), 't', 'the holder unlocks');
cmp_ok($rival->value, '>', $token, 'the next one is granted');
$rival->query("SELECT zk_unlock('/p')");
cmp_ok($behind->value, '>', $token, 'and the last');

# Lies about the session are believed: the lock is lost, and nothing worse.
foreach my $mode (grep { /^lies/ } $fake->modes)
{
	$fake->once($mode);
	next_process($mode);
	is($test->status($one, 'worker_pid'), $worker, "$mode: the same worker");
	$behind->error('SELECT zk_unlock_all()');
	is($behind->query("SELECT zk_try_lock('/p', '1min')"),
		't', "$mode: locks go on");
}
is($rival->query("SELECT zk_try_lock('/p')"), 'f', 'and exclude each other');

# ---- fakes for good: the pauses grow from 0.1 s to T/30, while the session may live
foreach my $mode ('exit', 'abort', 'noise', 'empty goodbye')
{
	my $starts = $fake->starts;

	$test->wait_connected($one);
	$fake->always($mode);
	my $begin = time;
	kill 'KILL', $test->status($one, 'session_pid');
	wait_for(sub { $fake->starts >= $starts + 5 }, "$mode: five starts");
	cmp_ok(time - $begin, '>=', 0.1 + 3 * 6 / 30,
		"$mode: there are pauses between them");
	isnt($test->status($one, 'state'), 'connected', "$mode: not connected");
	$fake->never;
	$test->wait_connected($one);
}
is($test->status($one, 'worker_pid'), $worker, 'still the same worker');

$_->close foreach $holder, $behind, $rival;
$test->finish;
