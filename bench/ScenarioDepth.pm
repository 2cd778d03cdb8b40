# A long queue for one name: what does a hand-over cost when so many wait?
#
# The first twenty in the queue are clients of two servers in turn (or all of
# one server), and pass the lock on at once; behind them wait, for zklock, as
# many sessions of both servers as a machine carries, and for all the rest the
# znodes of a foreign client.  Counted is from the first release until all of
# the twenty have had it.

package ScenarioDepth;

use strict;
use warnings;

use List::Util qw(max min sum0);
use Time::HiRes qw(usleep);

use PostgreSQL::Test::Utils;
use ScenarioHandover;

my $takers = 20;
my $most_sessions = 480;    # that wait behind the takers, on both servers

# How the znodes of a foreign client are called that this contestant queues
# behind
my %foreign = (
	zklock => '_c_0b7c1c3c-5d4e-4f4a-9a55-7f3a0e1b2c3d-__WRIT__',
	curator => '_c_0b7c1c3c-5d4e-4f4a-9a55-7f3a0e1b2c3d-lock-',
	kazoo => '0b7c1c3c5d4e4f4a9a557f3a0e1b2c3d__lock__');

# Puts all in the queue; returns how many wait behind the takers.
sub fill
{
	my ($scenario, $contestant, $cluster, $path) = @_;
	my $directory = $contestant->root . $path;
	my $behind = max(0, $scenario->{depth} - $takers);
	my $sessions = $contestant->{name} ne 'zklock' ? 0
	  : $scenario->{local} ? $behind : min($behind, $most_sessions);

	foreach my $i (0 .. count($scenario))
	{
		$contestant->acquire(server($scenario, $i), "taker$i", $path);
		$cluster->wait_length($directory, $i + 1);
	}
	$contestant->held('taker0');
	foreach my $i (1 .. $sessions)
	{
		$contestant->acquire(server($scenario, $i), "waiter$i", $path);
	}
	$cluster->wait_length($directory, 1 + count($scenario) + $sessions);
	if ($behind > $sessions)
	{
		$cluster->zk->client->create_many(
			"$directory/$foreign{ $contestant->{name} }", $behind - $sessions);
	}
	return $behind;
}

sub count { return min($takers, $_[0]{depth}); }
sub server { return $_[0]{local} ? 0 : $_[1] % 2; }

# Returns when nobody does more than keep its session: the znodes of those who
# have begun to wait get a watch each, a while later.
sub settle
{
	my ($cluster) = @_;
	my ($quiet, $before) = (0, $cluster->packets);

	foreach (1 .. 20)
	{
		sleep 1;
		my $now = $cluster->packets;
		$quiet = $now - $before < 12 ? $quiet + 1 : 0;
		return if $quiet == 2;
		$before = $now;
	}
	die "ZooKeeper does not come to rest\n";
}

# Nanoseconds on a processor of a process with one thread
sub cpu_ns { return (split ' ', slurp_file("/proc/$_[0]/schedstat"))[0]; }

sub measure
{
	my ($scenario, $contestant, $cluster) = @_;
	my $handovers = count($scenario);
	my $path = "/queue/$scenario->{name}";
	my @workers = map { $cluster->worker_pid($_) } 0, 1;
	my @times;

	# Connections that are not counted, and the Java compiler, come before.
	foreach my $i (0 .. $handovers)
	{
		$contestant->prepare(server($scenario, $i), "taker$i");
	}
	my $behind = fill($scenario, $contestant, $cluster, $path);
	settle($cluster);
	my $listings = $cluster->counted('listings');
	my ($packets, $bytes) = ($cluster->packets, $cluster->bytes);
	my $cpu = sum0(map { cpu_ns($_) } @workers);
	foreach my $i (1 .. $handovers)
	{
		my $released = $contestant->release('taker' . ($i - 1));
		push @times, ($contestant->held("taker$i") - $released) * 1000;
	}
	# The delete of the last release is still under way.
	usleep(200_000);
	$bytes = $cluster->bytes - $bytes;
	$packets = $cluster->packets - $packets - $cluster->zk_count;
	$cpu = sum0(map { cpu_ns($_) } @workers) - $cpu;
	$listings = $cluster->counted('listings') - $listings;
	my $memory = max(map { BenchCluster::private_kb($_) } @workers);

	empty($contestant, $cluster, $contestant->root . $path);
	return {
		p50 => ScenarioHandover::quantile(0.5, @times),
		p99 => ScenarioHandover::quantile(0.99, @times),
		requests => $packets / $handovers,
		bytes => $bytes / $handovers,
		$contestant->{name} eq 'zklock'
		? (
			listings => $listings / $handovers,
			worker_us => $cpu / 1000 / $handovers,
			worker_kb => $memory)
		: (),
	};
}

# Ends all waiting, and takes the foreign znodes away.
sub empty
{
	my ($contestant, $cluster, $directory) = @_;

	$contestant->forget;
	$cluster->zk->client->try_delete_tree($directory);
	foreach my $server (0, 1)
	{
		$cluster->test->look_until($cluster->node($server),
			'SELECT count(*) FROM zk_locks', 0, 'all locks released');
	}
	return;
}

1;
