# The plots of a run, made by gnuplot.

package Plots;

use strict;
use warnings;

my %colours = (
	zklock => '#c0392b',
	uncached => '#e8a29a',
	curator => '#2c6fbb',
	kazoo => '#3a9a5b',
	raw => '#555555',
	advisory => '#b08a2e',
	sql => '#aaaaaa');

my $terminal = q{set terminal svg size 760,420 font 'sans-serif,13' background '#ffffff'
set key outside right top
set grid ytics lc rgb '#dddddd'
set border 3
set tics nomirror
};

# Draws what there are results for; returns [ file, title ] of each.
sub draw
{
	my ($results, $dir, $names, $titles) = @_;
	my @plots = (
		lines($results, $dir, 'distinct.svg', 'Pairs a second, a name each',
			'clients', 'distinct', [ 1, 8, 64, 256 ], 'rate', $names, $titles),
		lines($results, $dir, 'depth.svg', 'Bytes per hand-over', 'waiters',
			'depth', [ 10, 100, 1000, 5000 ], 'bytes', $names, $titles),
		bars($results, $dir, 'shared-names.svg',
			'Pairs a second, one name or shared',
			[ 'one-8', 'one-64', 'shared', 'try' ], 'rate', $names, $titles),
		bars($results, $dir, 'handover.svg', 'Hand-over between servers, p50 in ms',
			[ 'handover-2', 'handover-3', 'three-handover' ],
			'p50', $names, $titles));

	return @plots;
}

sub run_gnuplot
{
	my ($script) = @_;

	open my $gnuplot, '|-', 'gnuplot' or die "gnuplot: $!\n";
	print $gnuplot $script;
	close $gnuplot or die "gnuplot failed\n";
	return;
}

# One line per contestant over a logarithmic axis
sub lines
{
	my ($results, $dir, $file, $title, $axis, $scenario, $points, $column,
		$names, $titles) = @_;
	my ($data, @plots) = ('');

	foreach my $name (@$names)
	{
		my @rows = map { [ $_->[0], $_->[1] ] } grep { defined $_->[1] }
		  map { [ $_, $results->median("$scenario-$_", $name, $column) ] } @$points;
		next unless @rows > 1;
		$data .= "\$$name << EOD\n" . join('', map { "@$_\n" } @rows) . "EOD\n";
		push @plots, "\$$name with linespoints lw 2 pt 7 ps 0.6"
		  . " lc rgb '$colours{$name}' title '$titles->{$name}'";
	}
	return () unless @plots;
	run_gnuplot($terminal . $data
		  . "set output '$dir/$file'\nset title '$title'\nset logscale xy\n"
		  . "set format y '%.0f'\n"
		  . "set xlabel '$axis'\nset xtics (" . join(', ', @$points) . ")\n"
		  . 'plot ' . join(', ', @plots) . "\n");
	return [ $file, $title ];
}

# Groups of bars, one group per scenario
sub bars
{
	my ($results, $dir, $file, $title, $scenarios, $column, $names, $titles) = @_;
	my @shown = grep { $results->has($_) } @$scenarios;
	my @who = grep {
		my $name = $_;
		grep { defined $results->median($_, $name, $column) } @shown
	} @$names;

	return () unless @shown && @who;
	my $data = "\$data << EOD\n";
	foreach my $scenario (@shown)
	{
		$data .= join(' ', qq{"$scenario"},
			map { $results->median($scenario, $_, $column) // 0 } @who) . "\n";
	}
	my @plots = map {
		'$data using ' . ($_ + 2) . ($_ ? '' : ':xtic(1)')
		  . " lc rgb '$colours{ $who[$_] }' title '$titles->{ $who[$_] }'"
	} 0 .. $#who;
	run_gnuplot($terminal . $data . "EOD\n"
		  . "set output '$dir/$file'\nset title '$title'\n"
		  . ($column eq 'rate' ? "set logscale y\n" : "set yrange [0:*]\n")
		  . "set style data histograms\nset style fill solid\n"
		  . "set format y '%g'\nset boxwidth 0.9\n"
		  . 'plot ' . join(', ', @plots) . "\n");
	return [ $file, $title ];
}

1;
