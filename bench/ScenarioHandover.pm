# One name that goes round among servers, one client on each: how long from the
# moment one begins to release it until the next one has it?  Nobody releases
# before all others are in the queue.

package ScenarioHandover;

use strict;
use warnings;

use Time::HiRes qw(time);

my $path = '/turns';

sub quantile
{
	my ($q, @values) = @_;

	@values = sort { $a <=> $b } @values;
	return $values[ $#values * $q ];
}

# Each client in the queue, one behind the other
sub line_up
{
	my ($servers, $contestant, $cluster) = @_;

	foreach my $server (0 .. $servers - 1)
	{
		$contestant->prepare($server, "client$server");
		$contestant->acquire($server, "client$server", $path);
		$cluster->wait_length($contestant->root . $path, $server + 1);
	}
	$contestant->held('client0');
	return;
}

sub measure
{
	my ($scenario, $contestant, $cluster, $seconds, $warmup) = @_;
	my $servers = $scenario->{servers};
	my ($turn, $looks, @times) = (0, 0);

	line_up($servers, $contestant, $cluster);
	my $start = time;
	my $before = $cluster->meter(0);
	while (time < $start + $warmup + $seconds)
	{
		my ($server, $next) = ($turn % $servers, ($turn + 1) % $servers);
		my $released = $contestant->release("client$server");
		my $held = $contestant->held("client$next");

		push @times, ($held - $released) * 1000 if time > $start + $warmup;
		$contestant->acquire($server, "client$server", $path);
		$looks += $cluster->wait_length($contestant->root . $path, $servers);
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
		$contestant->{name} =~ /^(?:zklock|uncached)$/
		? (map { $_ => $used->{$_} / $turn } qw(batches listings)) : (),
	};
}

1;
