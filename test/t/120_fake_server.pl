# Whatever answers on ZooKeeper's port (row 20): another service, garbage,
# frames that are cut short or of impossible lengths, at each stage of a
# connection.  PostgreSQL stays up and its worker with it, zk_status says that
# it is not connected and why, and nothing spins: the session process may
# crash or hang, and its replacements come ever slower.  When a real server
# takes the port over, locks work.

use strict;
use warnings;

use Test::More;
use POSIX ();
use Time::HiRes qw(time);

use FakeZooKeeper;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TcpProxy;
use ZklockTest;

my $port = PostgreSQL::Test::Cluster::get_free_port();
my $fake = FakeZooKeeper->new($port);
my $test = ZklockTest->new(
	start_zookeeper => 0,
	servers => 1,
	session_timeout => '1s',
	zk => { port => $port, tick_time => 250 });
my ($node) = $test->nodes;
my $started = $test->look($node, 'SELECT pg_postmaster_start_time()');
my $worker = $test->status($node, 'worker_pid');
my $waiter = $test->session($node);
my $tryer = $test->session($node);
$waiter->send("SELECT zk_lock('/q')");
$tryer->query("SET zklock.answer_timeout = '1ms'");

# CPU seconds that the worker has used, with all session processes of before
sub cpu_seconds
{
	my @fields =
	  split / /, slurp_file("/proc/$worker/stat") =~ s/.*\) //sr;
	my $ticks = 0;

	$ticks += $_ foreach @fields[ 11 .. 14 ];
	return $ticks / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

# Each mode until two connections have met it.
my $cpu = cpu_seconds();
my $begin = time;
foreach my $mode ($fake->modes)
{
	$fake->mode($mode);
	ok(wait_for(sub { $fake->stats->{accepted} >= 2 }, "$mode: tried twice"),
		"$mode: tried twice");
	isnt($test->status($node, 'state'), 'connected', "$mode: not connected");
	is($tryer->error("SELECT zk_try_lock('/q2')"),
		'08006', "$mode: a try is an error");
	is($test->status($node, 'worker_pid'), $worker, "$mode: the same worker");
	note $test->status($node, 'state, last_error');
}
is($test->look($node, 'SELECT pg_postmaster_start_time()'),
	$started, 'PostgreSQL was not restarted');
ok($waiter->busy, 'who waits for a lock still does');
is($test->status($node, 'last_error IS NOT NULL'), 't', 'zk_status says why');
cmp_ok((cpu_seconds() - $cpu) / (time - $begin),
	'<', 0.6, 'worker and session processes together did not spin');

# The pauses between two rounds of attempts at the one host grow to T/6 once the session
# timeout has passed, whatever answers.
# A server that closes the connection without a word is connected to once more
# each time, to see whether it wants TLS.
foreach my $mode ('close', 'ssh', 'connect: 4 bytes', 'request: closed')
{
	my $attempts = 3 * ($mode eq 'close' ? 2 : 1) + 1;

	$fake->mode($mode);
	$begin = time;
	wait_for(sub { $fake->stats->{accepted} >= $attempts }, "$mode: tried");
	my $seconds = time - $begin;
	cmp_ok($seconds, '>=', 3 * 0.16, "$mode: three pauses of T/6 before the "
		  . 'fourth attempt');
}

# A real server on that port
$fake->stop;
$test->zk->start;
cmp_ok($waiter->value, '>', 0, 'granted once a real server has the port');
$test->wait_connected($node);
is($test->status($node, 'worker_pid'), $worker, 'still the same worker');
$waiter->query("SELECT zk_unlock('/q')");
$_->close foreach $waiter, $tryer;

$test->finish;
