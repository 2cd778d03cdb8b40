# One name that one server after the other takes, with no queue: how long from the
# moment that a client begins to take it until it has it?  "alternate": two servers
# in turn.  "recall": a server that has not had it, after another one has taken it
# so often that it keeps it cached.

package ScenarioRecall;

use strict;
use warnings;

use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC usleep);

use ScenarioHandover;

my $path = '/recalled';

# As often as a lock can have to be taken until it is cached
my $most_takes = 1000;

# Takes the name on a server; returns how long that took, in ms.
sub take
{
	my ($contestant, $server) = @_;
	my $begun = clock_gettime(CLOCK_MONOTONIC);

	$contestant->acquire($server, "client$server", $path);
	my $time = ($contestant->held("client$server") - $begun) * 1000;
	$contestant->release("client$server");
	return $time;
}

sub is_cached { return $_[0]->status(0, 'cached') > 0; }

sub measure_alternate
{
	my ($scenario, $contestant, $cluster, $seconds, $warmup) = @_;
	my $start = clock_gettime(CLOCK_MONOTONIC);
	my ($turn, @times) = (0);

	take($contestant, $_) foreach 0, 1;
	my $before = $cluster->meter(0);
	while ((my $now = clock_gettime(CLOCK_MONOTONIC)) < $start + $warmup + $seconds)
	{
		my $time = take($contestant, $turn++ % 2);

		push @times, $time if $now > $start + $warmup;
	}
	my $used = $cluster->used($before);
	$contestant->forget;
	return {
		rate => @times / $seconds,
		p50 => ScenarioHandover::quantile(0.5, @times),
		p99 => ScenarioHandover::quantile(0.99, @times),
		requests => $used->{packets} / $turn,
	};
}

sub measure_recall
{
	my ($scenario, $contestant, $cluster, $seconds, $warmup) = @_;
	my $start = clock_gettime(CLOCK_MONOTONIC);
	my @times;

	while (clock_gettime(CLOCK_MONOTONIC) < $start + $warmup + $seconds)
	{
		my $takes = 0;

		while (!is_cached($cluster))
		{
			die "the lock is not cached after $takes takes\n" if $takes++ > $most_takes;
			take($contestant, 0);
		}
		my $time = take($contestant, 1);
		push @times, $time if clock_gettime(CLOCK_MONOTONIC) > $start + $warmup;
	}
	$contestant->forget;
	return {
		rate => @times / $seconds,
		p50 => ScenarioHandover::quantile(0.5, @times),
		p99 => ScenarioHandover::quantile(0.99, @times),
	};
}

1;
