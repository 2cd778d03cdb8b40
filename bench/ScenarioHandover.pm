# One name that goes round among servers, one client on each: how long from the
# moment one begins to release it until the next one has it?
#
# Each holds it for some milliseconds, so that all others are in the queue.

package ScenarioHandover;

use strict;
use warnings;

use Time::HiRes qw(time usleep);

my $hold_us = 5_000;

sub quantile
{
	my ($q, @values) = @_;

	@values = sort { $a <=> $b } @values;
	return $values[ $#values * $q ];
}

sub measure
{
	my ($scenario, $contestant, $cluster, $seconds, $warmup) = @_;
	my $servers = $scenario->{servers};
	my @times;

	foreach my $server (0 .. $servers - 1)
	{
		$contestant->prepare($server, "client$server");
		$contestant->acquire($server, "client$server", '/turns');
		$contestant->held("client$server") unless $server;
		usleep(50_000);
	}
	my $used;
	my $turn = 0;
	my $start = time;
	my $before = $cluster->meter;
	while (time < $start + $warmup + $seconds || $turn % $servers)
	{
		my ($server, $next) = ($turn % $servers, ($turn + 1) % $servers);

		usleep($hold_us);
		my $released = $contestant->release("client$server");
		my $held = $contestant->held("client$next");
		push @times, ($held - $released) * 1000 if time > $start + $warmup;
		$contestant->acquire($server, "client$server", '/turns');
		$turn++;
	}
	$used = $cluster->used($before);
	$contestant->forget;
	return {
		rate => @times / $seconds,
		p50 => quantile(0.5, @times),
		p99 => quantile(0.99, @times),
		requests => $used->{packets} / $turn,
		zookeeper_us => $used->{zookeeper} * 1e6 / $turn,
	};
}

1;
