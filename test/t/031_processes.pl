# The session process or the worker dies while locks are held and waited for.
# Each is replaced, the ZooKeeper session is the same, and so are the locks
# and the queue.  At last they die again and again under load.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw(time);

use Workload;
use ZklockTest;

my $test = ZklockTest->new(session_timeout => '10s');
my ($one, $two) = $test->nodes;
my $lock = "SELECT zk_lock('/c')";

# Ends the process on a server that a column of zk_status names, and waits for
# its successor.
sub replace
{
	my ($node, $column, $signal) = @_;
	my $old = $test->status($node, $column);

	cmp_ok($old, '>', 1, "$column is shown");
	kill $signal, $old;
	$test->look_until($node,
		"SELECT $column <> $old AND $column <> 0 AND state = 'connected'"
		  . ' FROM zk_status',
		't', "$signal of $column $old: replaced");
	ok($test->wait_gone($old), "$signal of $column: the old one is gone");
	return;
}

my @ways = (
	[ 'session_pid', 'KILL' ],
	[ 'session_pid', 'STOP' ],
	[ 'session_pid', 'ABRT' ]);

foreach my $way (@ways)
{
	my $case = "$way->[1] of $way->[0]";
	my $holder = $test->session($one);
	my $reader = $test->session($one);
	my $waiter = $test->session($two);
	my $second = $test->session($one);
	my $token = $holder->query($lock);
	$holder->query("BEGIN; SELECT zk_xact_lock('/c2')");
	$reader->query("SELECT zk_lock_shared('/c3')");
	$test->enqueue($waiter, $lock, '/c');
	$test->enqueue($second, $lock, '/c');
	my @queue = $test->queue('/c');
	my @ids = map { $test->status($_, 'session_id') } $one, $two;

	replace($_, @$way) foreach $one, $two;
	is_deeply([ map { $test->status($_, 'session_id') } $one, $two ],
		\@ids, "$case: the same sessions");
	is_deeply([ $test->queue('/c') ], \@queue, "$case: the same queue");
	is($test->status($_, 'sessions_lost'), 0, "$case: no session lost")
	  foreach $one, $two;
	ok($test->still_waits($waiter), "$case: the waiter waits");
	ok($test->still_waits($second), "$case: and the one behind it");
	is($holder->query("SELECT zk_fencing_token('/c')"),
		$token, "$case: the holder holds, with its token");
	is($holder->query('COMMIT'), '', "$case: and commits");
	$holder->query("SELECT zk_unlock('/c')");
	my $next = $waiter->value;
	cmp_ok($next, '>', $token, "$case: the next one is granted");
	ok($test->still_waits($second), "$case: the last one waits");
	$waiter->query("SELECT zk_unlock('/c')");
	cmp_ok($second->value, '>', $next, "$case: and is granted");
	is($reader->query("SELECT zk_unlock_shared('/c3')"),
		't', "$case: the reader releases");
	$_->close foreach $holder, $reader, $waiter, $second;
	$test->wait_queue($_, 0) foreach '/c', '/c2', '/c3';
}

# A release and a cancel while the session process is stopped are not lost.
my $holder = $test->session($one);
my $waiter = $test->session($one);
$holder->query($lock);
$test->enqueue($waiter, $lock, '/c');
my $pid = $test->status($one, 'session_pid');
kill 'STOP', $pid;
$waiter->cancel;
is($waiter->sqlstate, '57014', 'cancelled while the session process hangs');
is($holder->query("SELECT zk_unlock('/c')"), 't', 'released meanwhile');
$test->look_until($one, "SELECT session_pid <> $pid FROM zk_status",
	't', 'replaced');
ok($test->wait_queue('/c', 0), 'both znodes are gone afterwards');
$_->close foreach $holder, $waiter;

# A restarted worker gives no znode the id of an earlier one: its first znode is told
# from all of the last worker by the part of the id in front of the count.
sub maker_of_id
{
	my ($name) = @_;
	my $s = $test->session($one);

	$s->query("SELECT zk_lock('$name')");
	my ($maker) = ($test->queue($name))[0] =~ /^_c_([-0-9a-f]{26})[-0-9a-f]{10}-/;
	$s->query("SELECT zk_unlock('$name')");
	$s->close;
	return $maker;
}
my $id = $test->status($one, 'session_id');
my $maker = maker_of_id('/id1');
is(maker_of_id('/id2'), $maker, 'the ids of one worker have a part in common');
$pid = $test->status($one, 'worker_pid');
kill 'TERM', $pid;
$test->look_until($one, "SELECT worker_pid <> $pid AND state = 'connected' FROM zk_status",
	't', 'another worker');
isnt(maker_of_id('/id3'), $maker, 'those of the next one have another');
isnt($test->status($one, 'session_id'), $id, 'in another session');

# Under load
my %lost = map { $_->name => $test->status($_, 'sessions_lost') } $one, $two;
foreach my $way ($ways[0], [ 'worker_pid', 'TERM' ])
{
	my ($column, $signal) = @$way;
	my ($killed, $next) = (0, 0);
	my $seen = Workload::run(
		$test,
		sessions => 12,
		names => 4,
		rounds => 6000,
		tick => sub {
			my ($rounds) = @_;
			return if $rounds < $next || $killed >= 10;
			$next = $rounds + 500;
			my $node = ($one, $two)[ $killed++ % 2 ];
			my $pid = $test->status($node, $column);
			kill $signal, $pid if $pid > 1;
		},
		lock => "SELECT zk_lock('%s')",
		unlock => "SELECT zk_unlock('%s')");
	is($killed, 10, "$column killed $killed times under load");
	is($seen->{overlaps}, 0, "$column: no two holders");
	if ($column eq 'worker_pid')
	{
		delete $seen->{errors}{40001};
		is_deeply($seen->{errors}, {}, "$column: no error but that a lock was lost");
		next;
	}
	is_deeply($seen->{errors}, {}, "$column: no error");
	is($test->status($_, 'sessions_lost'), $lost{ $_->name }, "$column: no session lost")
	  foreach $one, $two;
}

$test->finish;
