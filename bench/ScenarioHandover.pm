# A name that goes round among servers, one client on each: how long from the
# moment one begins to release it until the next one has it?  Nobody releases
# before all others are in the queue.  With messages between servers, the next one
# may have it while the znode of the former holder still is there.
#
# If a scenario says how long they have to be "waited" for there, ten names go
# round, so that there are enough hand-overs: one at a time.  etcd tells a client
# that has just begun to wait only up to 100 ms later.

package ScenarioHandover;

use strict;
use warnings;

use List::Util qw(max);
use Time::HiRes qw(sleep time);

sub quantile
{
	my ($q, @values) = @_;

	@values = sort { $a <=> $b } @values;
	return $values[ $#values * $q ];
}

sub client { return "client$_[0]-$_[1]"; }
sub path { return "/turns$_[0]"; }

# Each client in the queue of a name, one behind the other
sub line_up
{
	my ($servers, $contestant, $name) = @_;

	foreach my $server (0 .. $servers - 1)
	{
		my $client = client($server, $name);

		$contestant->prepare($server, $client);
		$contestant->acquire($server, $client, path($name));
		$contestant->{cluster}->wait_length($contestant->root . path($name),
			$server + 1);
	}
	$contestant->held(client(0, $name));
	return;
}

sub measure
{
	my ($scenario, $contestant, undef, $seconds, $warmup) = @_;
	my $cluster = $contestant->{cluster};
	my $servers = $scenario->{servers};
	my $waited = $scenario->{waited} // 0;
	my $names = $waited ? 10 : 1;
	my ($turn, $looks, @times) = (0, 0);

	line_up($servers, $contestant, $_) foreach 0 .. $names - 1;
	my $start = time;
	my @queued = ($start) x $names;
	my $before = $cluster->meter(0);
	while (time < $start + $warmup + $seconds)
	{
		my $name = $turn % $names;
		my $round = int($turn / $names);
		my $server = $round % $servers;
		my $client = client($server, $name);
		my $next = client(($round + 1) % $servers, $name);

		sleep(max(0, $queued[$name] + $waited - time));
		my $released = $contestant->release($client);
		my $held = $contestant->held($next);

		push @times, ($held - $released) * 1000 if time > $start + $warmup;
		$looks += $cluster->wait_length($contestant->root . path($name), $servers - 1);
		$contestant->acquire($server, $client, path($name));
		$looks += $cluster->wait_length($contestant->root . path($name), $servers);
		$queued[$name] = time;
		$turn++;
	}
	my $used = $cluster->used($before);
	$contestant->forget;
	return {
		rate => @times / $seconds,
		p50 => quantile(0.5, @times),
		p99 => quantile(0.99, @times),
		requests => ($used->{packets} - $looks) / $turn,
		zookeeper_us => $used->{zookeeper} * 1e6 / $turn,
		$contestant->{name} =~ /^(?:zklock|words|uncached)$/
		? (map { $_ => $used->{$_} / $turn } qw(batches listings)) : (),
	};
}

1;
