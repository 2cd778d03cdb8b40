# Where the time of a hand-over goes: the workers of two servers write traces, and
# their lines divide the time from the call that releases a lock until the waiting
# call returns.  Whoever waits has done so for a while: all that it asks for is
# answered.  The traces themselves take some of the time.

package ScenarioSteps;

use strict;
use warnings;

use POSIX qw(fmod);
use Time::HiRes qw(clock_gettime usleep CLOCK_MONOTONIC CLOCK_REALTIME);

use PostgreSQL::Test::Utils;
use ScenarioHandover;

# The columns of the results: medians in µs, of what ends with these lines
our @columns = qw(call_us release_us way_us grant_us return_us);
my $release = qr/ in release /;
my $sent = qr/ out (?:word|operation delete) /;
my $heard = qr/ in (?:word|deleted) /;
my $grant = qr/ out grant /;

# Times of lines have a zone, but any zone has the same quarters of an hour.
my $quarter = 900;

# From one time to another one soon before or after it
sub between { return fmod($_[1] - $_[0] + 1.5 * $quarter, $quarter) - $quarter / 2; }

sub trace_files { return map { $_[0]->data_dir . "/zklock.trace$_" } '.old', ''; }

sub trace
{
	my ($cluster, $on) = @_;

	$cluster->test->set($cluster->node($_), trace => $on ? 'on' : 'off') foreach 0, 1;
	return;
}

# [ time, line ] of each that matters
sub read_trace
{
	my ($node) = @_;
	my @lines = map { split /\n/, slurp_file($_) } grep { -e } trace_files($node);

	return map { /:(\d\d):(\d\d\.\d+) / ? [ ($1 * 60 + $2) % $quarter + $2 - int $2, $_ ] : () }
	  grep { /$release|$sent|$heard|$grant/ } @lines;
}

# Takes lines off until one matches that is between two times; returns its time.
sub find_line
{
	my ($lines, $begin, $end, $pattern) = @_;

	while (@$lines && between($lines->[0][0], $end) > 0)
	{
		my ($time, $line) = @{ shift @$lines };

		return $time if $line =~ $pattern && between($begin, $time) > -1e-6;
	}
	return undef;
}

# The times at which a hand-over passed each of its points; empty: not all are known
sub points
{
	my ($begin, $end, $from, $to) = @_;
	my @points = ($begin);

	foreach my $step ([ $from, $release ], [ $from, $sent ], [ $to, $heard ], [ $to, $grant ])
	{
		push @points, find_line($step->[0], $points[-1], $end, $step->[1]) // return;
	}
	return (@points, $end);
}

sub measure
{
	my ($scenario, $contestant, $cluster, $seconds, $warmup) = @_;
	my $shift = clock_gettime(CLOCK_REALTIME) - clock_gettime(CLOCK_MONOTONIC);
	my ($turn, @turns, %steps) = (0);

	unlink map { trace_files($cluster->node($_)) } 0, 1;
	trace($cluster, 1);
	ScenarioHandover::line_up(2, $contestant, 'steps');
	my $start = clock_gettime(CLOCK_MONOTONIC);
	while (clock_gettime(CLOCK_MONOTONIC) < $start + $warmup + $seconds)
	{
		my ($from, $to) = map { ScenarioHandover::client($_, 'steps') } $turn % 2, ($turn + 1) % 2;

		usleep(50_000);
		my $released = $contestant->release($from);
		push @turns, map { fmod($_ + $shift, $quarter) } $released, $contestant->held($to);
		$cluster->wait_length($contestant->root . ScenarioHandover::path('steps'), 1);
		$contestant->acquire($turn % 2, $from, ScenarioHandover::path('steps'));
		$cluster->wait_length($contestant->root . ScenarioHandover::path('steps'), 2);
		$turn++;
	}
	$contestant->forget;
	trace($cluster, 0);

	my @traces = map { [ read_trace($cluster->node($_)) ] } 0, 1;
	foreach my $number (0 .. $turn - 1)
	{
		my @points =
		  points(@turns[ 2 * $number, 2 * $number + 1 ], @traces[ $number % 2, ($number + 1) % 2 ]);

		push @{ $steps{ $columns[$_] } }, between(@points[ $_, $_ + 1 ]) * 1e6
		  foreach @points ? 0 .. $#columns : ();
	}
	die "the traces tell of no hand-over\n" unless %steps;
	return { rate => $turn / ($warmup + $seconds),
		map { $_ => ScenarioHandover::quantile(0.5, @{ $steps{$_} }) } @columns };
}

1;
