# Large numbers: a queue of five thousand, of which a thousand are ours (row
# 24); four thousand locks with long names, each watched (row 38); and 256 at
# once whose directories were all reaped (row 39).  The work stays bounded,
# and after a reset of the connection everything is back at the first try.

use strict;
use warnings;

use POSIX ();
use Test::More;

use PostgreSQL::Test::Utils;
use TcpProxy;
use ZklockTest;

# As many as there may be open files, each being a connection
my $files = POSIX::sysconf(POSIX::_SC_OPEN_MAX());
my $ours = $files > 1100 ? 1000 : $files - 100;
my $foreign_count = 5000 - $ours;

my $net = TcpProxy->new;
my $test = ZklockTest->new(
	net => $net,
	servers => 1,
	session_timeout => '10s',
	max_requests => 4100,
	zk => { container_check_ms => 500 },
	conf => "max_connections = 1100\nmax_locks_per_transaction = 10\n");
my ($one) = $test->nodes;
my $two = $test->new_node('server2', max_requests => 50);
$two->start;
$two->safe_psql('postgres', 'CREATE EXTENSION zklock');
my $line = 'server1-zk';

sub counters
{
	return split /\|/,
	  $test->status($one, 'connects, batches, operations, listings');
}

# Resets the connection, and waits until the server is at work again.
sub reset_ok
{
	my ($case) = @_;
	my ($connects) = counters();

	$net->reset($line);
	$test->look_until($one,
		"SELECT connects > $connects AND state = 'connected' FROM zk_status, zk_stat_server",
		't', "$case: connected again");
	return $connects;
}

# ---- five thousand in one queue, of two servers and of others
my $holder = $test->session($two);
my $foreign = $test->zk->new_client;
my $token = $holder->query("SELECT zk_lock('/crowd')");
my @crowd = map { $test->session($one) } 1 .. $ours;

# In between: one of ours to so many of theirs
my $share = int($foreign_count / $ours);
my $theirs = 0;
foreach my $i (0 .. $#crowd)
{
	$crowd[$i]->send("SELECT zk_lock('/crowd')");
	next if $i % 20;
	$foreign->create_many('/zklock/crowd/_c_f-__READ__', 20 * $share);
	$theirs += 20 * $share;
}
$foreign->create_many('/zklock/crowd/_c_f-__READ__', $foreign_count - $theirs)
  if $foreign_count > $theirs;
$test->wait_waiting($one, '/crowd', $ours);
my $all = 1 + $ours + ($theirs > $foreign_count ? $theirs : $foreign_count);
ok($test->wait_queue('/crowd', $all), "$all in the queue");
is($test->look($one, "SELECT count(*) FROM zk_queue('/crowd')"),
	$all, 'zk_queue shows them all');

my @queue = $test->queue('/crowd');
my ($before, undef, $operations, $listings) = counters();
my $connects = reset_ok('a long queue');
ok($test->still_waits($crowd[0]), 'a long queue: nobody is granted');
is($test->status($one, 'connects'),
	$connects + 1, 'a long queue: back at the first try');
is_deeply([ $test->queue('/crowd') ], \@queue, 'a long queue: unchanged');
my (undef, undef, $operations_now, $listings_now) = counters();
cmp_ok($operations_now - $operations,
	'<=', 30, 'a long queue: few requests after a reset');
cmp_ok($listings_now - $listings, '<=', 3, 'a long queue: few listings');

# Cancelled by the hundred; their znodes go in batches.
my @gone = splice @crowd, $ours / 4, $ours / 2;
$_->cancel foreach @gone;
is(scalar(grep { $_->sqlstate ne '57014' } @gone), 0, 'half of ours give up');
ok($test->wait_queue('/crowd', $all - @gone), 'and their znodes go');

# The foreign ones go all at once, and ours come in their order.
$holder->query("SELECT zk_unlock('/crowd')");
$foreign->quit;
my %session_of = map { $_->pid => $_ } @crowd;
my $in_order = 1;
foreach my $pid (
	split /\n/,
	$test->look($one,
		"SELECT pid FROM zk_locks WHERE path = '/crowd' ORDER BY right(znode, 10)"))
{
	my $session = $session_of{$pid};
	my $next = $session->value;

	$in_order &&= $next > $token;
	$token = $next;
	$session->query("SELECT zk_unlock('/crowd')");
}
ok($in_order, 'the others are granted in their order');
$_->close foreach $holder, @crowd, @gone;
$test->wait_queue('/crowd', 0);

# ---- four thousand watches of 300 bytes
my $many = $test->session($one);
$many->query('SET zklock.max_requests_per_session = 4100');
my $long = "'/watched/' || repeat('x', 230) || n";
is($many->query("SELECT count(zk_lock($long)) FROM generate_series(1, 4000) n"),
	4000, 'four thousand locks');

# A hold that is older than T/6 watches its own znode.
sub watched
{
	my $watches = $test->zk->watches;

	return scalar grep { m{/watched/x.*\d{10}$} } keys %$watches;
}
ok(wait_for(sub { watched() == 4000 }, 'all are watched'), 'all are watched');
$connects = reset_ok('four thousand watches');
ok(wait_for(sub { watched() == 4000 }, 'all are watched again'),
	'four thousand watches: all are there again');
is($test->status($one, 'connects, sessions_lost'),
	$connects + 1 . '|0', 'four thousand watches: back at the first try');
is($many->query("SELECT count(*) FROM zk_locks WHERE state = 'granted'"),
	4000, 'four thousand watches: all are held');
$many->query('SELECT zk_unlock_all()');
$test->look_until($one, 'SELECT count(*) FROM zk_locks', 0);

# ---- 256 names whose directories are gone
my @wide = map { $test->session($one) } 1 .. 256;
foreach my $n (0 .. $#wide)
{
	$wide[$n]->query("SELECT zk_lock('/wide/$n/x'), zk_unlock('/wide/$n/x')");
}
ok(wait_for(
		sub { !$test->zk->client->stat('/zklock/wide') },
		'the directories are reaped'),
	'256 directories are reaped');
my $worker = $test->status($one, 'worker_pid');
kill 'STOP', $worker;
$wide[$_]->send("SELECT zk_lock('/wide/$_/x')") foreach 0 .. $#wide;
$test->look_until($one,
	"SELECT count(*) FROM zk_locks WHERE path LIKE '/wide/%' AND state = 'waiting'",
	256, 'all ask at once');
my (undef, $batches, $sent) = counters();
kill 'CONT', $worker;
is(scalar(grep { $_->value > $token } @wide), 256, 'all are granted');
my (undef, $batches_now, $sent_now) = counters();
note $batches_now - $batches, ' batches, ', $sent_now - $sent, ' requests';
cmp_ok($batches_now - $batches, '<=', 12, 'all reaped: few batches');

# Six, and the first look at the own znode, if this takes long.
cmp_ok($sent_now - $sent, '<=', 256 * 7,
	'all reaped: not more than seven requests each');
$_->close foreach $many, @wide;

$test->finish;
