# A thousand clients of one server wait for one lock that another server
# holds.  They cost ZooKeeper one watch, and nothing is polled by anybody.
# Then they all get the lock, one after the other in the order of their znodes.

use strict;
use warnings;

use POSIX ();
use Test::More;
use Time::HiRes qw(usleep);

use PostgreSQL::Test::Utils;
use ZklockTest;

# As many as there may be open files, each being a connection
my $files = POSIX::sysconf(POSIX::_SC_OPEN_MAX());
my $waiters = $files > 1100 ? 1000 : $files - 100;

my $test = ZklockTest->new(
	max_requests => 1100,
	conf => "max_connections = 1100\n");
my ($one, $two) = $test->nodes;
my $lock = "SELECT zk_lock('/crowd')";

my $holder = $test->session($two);
my $last = $holder->query($lock);
my @crowd;
foreach (1 .. $waiters)
{
	push @crowd, $test->session($one);
	$crowd[-1]->send($lock);
}
$test->wait_waiting($one, '/crowd', $waiters);
ok($test->wait_queue('/crowd', $waiters + 1), "$waiters wait");

# Watches of the waiters' server on znodes of the queue; the holder's server
# may watch its own.
my $session = $test->session_hex($one);

sub znode_watches
{
	my $watches = $test->zk->watches;

	return scalar grep { $_ eq $session }
	  map { @{ $watches->{$_} } } grep { m{/crowd/.*\d{10}$} } keys %$watches;
}
cmp_ok(znode_watches(), '<=', 2,
	'for all of them one znode is watched, and that of the first of them');
is($test->look($one, "SELECT count(*) FROM zk_queue('/crowd')"),
	$waiters + 1, 'zk_queue shows them all');

# CPU time used so far, in clock ticks
sub cpu_ticks
{
	my $ticks = 0;

	foreach my $pid (@_)
	{
		my @fields = split / /, slurp_file("/proc/$pid/stat") =~ s/.*\) //sr;
		$ticks += $fields[11] + $fields[12];
	}
	return $ticks;
}

# There is no condition to poll for "nothing happens": look at three seconds.
my @pids = map { $_->pid } @crowd;
my @others = ($test->status($one, 'worker_pid'), $test->status($one, 'session_pid'));
my $ticks = cpu_ticks(@pids);
my $other_ticks = cpu_ticks(@others);
my $packets = $test->zk->packets_received;
usleep(3_000_000);
$packets = $test->zk->packets_received - $packets;
$ticks = cpu_ticks(@pids) - $ticks;
$other_ticks = cpu_ticks(@others) - $other_ticks;
cmp_ok($ticks, '<=', 5, "the waiting backends used $ticks ticks of CPU in 3 s");
cmp_ok($other_ticks, '<=', 30, "their worker used $other_ticks");
cmp_ok($packets, '<=', 40, "and ZooKeeper got $packets requests");

# Some of them give up.
my @gone = splice @crowd, int(@crowd / 2), 20;
$_->cancel foreach @gone;
is(scalar(grep { $_->sqlstate ne '57014' } @gone), 0, '20 give up');
ok($test->wait_queue('/crowd', @crowd + 1), 'their znodes go');
cmp_ok(znode_watches(), '<=', 2, 'still no more');

# They came at the same time: their order is that of their znodes.
my %session_of = map { $_->pid => $_ } @crowd;
@crowd = map { $session_of{$_} } split /\n/,
  $test->look($one, 'SELECT pid FROM zk_locks WHERE state = \'waiting\''
	  . ' ORDER BY right(znode, 10)');
$holder->query("SELECT zk_unlock('/crowd')");
my $in_order = 1;
foreach my $i (0 .. $#crowd)
{
	my $token = $crowd[$i]->value;
	$in_order &&= $token > $last;
	$in_order &&= $i == $#crowd || $crowd[ $i + 1 ]->busy;
	$last = $token;
	$crowd[$i]->query("SELECT zk_unlock('/crowd')");
}
ok($in_order, 'all get the lock, in their order, with growing tokens');
ok(wait_for(sub { znode_watches() == 0 }, 'their watches are gone'),
	'no watch is left');

$_->close foreach $holder, @crowd, @gone;
$test->look_until($one, 'SELECT count(*) FROM pg_stat_activity'
	  . ' WHERE application_name = \'zklock test\'', 0);
$test->finish;
