# The pictures of a run, made by gnuplot: bars that have their names and values
# beside them, and lines.  Each can be read without the page that shows it.

package Plots;

use strict;
use warnings;

use Page;

my %colours = (
	zklock => '#c0392b',
	words => '#e67e22',
	uncached => '#e8a29a',
	curator => '#2c6fbb',
	kazoo => '#3a9a5b',
	raw => '#555555',
	advisory => '#b08a2e',
	sql => '#aaaaaa');
my %titles = (
	zklock => 'zklock',
	words => 'zklock, messages between servers',
	uncached => 'zklock, nothing cached',
	curator => 'Curator (Java)',
	kazoo => 'kazoo (Python)',
	raw => 'ZooKeeper client in C',
	advisory => 'pg_advisory_lock (one server)',
	sql => 'no lock: two empty statements');
my @names = qw(zklock uncached curator kazoo raw advisory sql);
my @between_servers = qw(zklock words uncached curator kazoo);
my $width = 760;

# Draws what there are results for; returns [ file, title ] of each.
sub draw
{
	my ($results, $dir) = @_;

	return (
		pair_bars($results, $dir, 'one-session.svg', 'one session', [ 'distinct-1' => '' ]),
		(map {
				pair_bars($results, $dir, "$_-sessions.svg", "$_ sessions, a lock each",
					[ "distinct-$_" => '' ])
		} 8, 64),
		bars($dir, 'hand-over.svg', 'A lock that passes from one server to the next',
			'ms from the release until the waiting session has it, median (shorter is better)',
			\&milliseconds,
			contestants($results, 'p50', \@between_servers,
				[ 'handover-2' => '2 PostgreSQL servers, one ZooKeeper server' ],
				[ 'handover-3' => '3 PostgreSQL servers, one ZooKeeper server' ],
				[ 'three-handover' => '2 PostgreSQL servers, three ZooKeeper servers' ])),
		bars($dir, 'recall.svg', 'How long it takes to get a lock with zklock',
			'ms, median (shorter is better); a cached lock stays on a server between its uses',
			\&milliseconds, waits($results)),
		pair_bars($results, $dir, 'one-lock.svg', 'one lock for all sessions',
			[ 'one-8' => '8 sessions' ],
			[ 'one-64' => '64 sessions' ],
			[ shared => '10 sessions, nine shared locks for each exclusive lock' ]),
		lines($results, $dir, 'sessions.svg', 'Locks taken and released per second',
			'sessions, a lock each', 'distinct', [ 1, 8, 64, 256 ], 'rate'),
		lines($results, $dir, 'queue.svg',
			'Bytes between ZooKeeper and its clients per hand-over',
			'waiting sessions', 'depth', [ 10, 100, 1000, 5000 ], 'bytes'));
}

sub milliseconds { return sprintf '%.2f', $_[0]; }

sub pair_bars
{
	my ($results, $dir, $file, $title, @scenarios) = @_;

	return bars($dir, $file, ucfirst $title,
		'locks taken and released per second (longer is better);'
		  . ' a cached lock stays on a server between its uses',
		\&Page::thousands, contestants($results, 'rate', \@names, @scenarios));
}

# A group of bars, of these names, for each scenario, which is [ name, title ]:
# [ title, bars ], and each bar is [ title, colour, value, why there is none ].
sub contestants
{
	my ($results, $column, $names, @scenarios) = @_;
	my @groups = grep { $results->has($_->[0]) } @scenarios;
	my @who = grep {
		my $name = $_;
		grep { defined $results->median($_->[0], $name, $column) } @groups
	} @$names;

	return map {
		my ($scenario, $title) = @$_;

		[ $title, map { [
					$titles{$_}, $colours{$_}, scalar $results->median($scenario, $_, $column),
					$results->error($scenario, $_) ? 'failed' : 'not measured' ] } @who ]
	} @groups;
}

# What a session of zklock waits for a lock, by where the lock is
sub waits
{
	my ($results) = @_;
	my @bars = grep { defined $_->[2] }
	  map { [ $_->[0], $colours{ $_->[2] }, $results->median(@$_[ 1, 2 ], 'p50') ] } (
		[ 'take and release, cached on its server', 'distinct-1', 'zklock' ],
		[ 'take and release, nothing cached', 'distinct-1', 'uncached' ],
		[ 'take, just released by another server', 'handover-2', 'zklock' ],
		[ 'the same, messages between servers', 'handover-2', 'words' ],
		[ 'take, cached on another server', 'recall', 'zklock' ],
		[ 'the same, messages between servers', 'recall', 'words' ]);

	return $results->has('recall') ? [ '', @bars ] : ();
}

sub run_gnuplot
{
	my ($file, $height, $title, $subtitle, $script) = @_;

	open my $gnuplot, '|-', 'gnuplot' or die "gnuplot: $!\n";
	print $gnuplot <<"EOS";
set terminal svg size $width,$height noenhanced font 'sans-serif,13' background '#ffffff'
set output '$file'
set label 1 "$title" at screen 0.02, screen 1 offset 0,-1 font 'sans-serif,16'
set label 2 "$subtitle" at screen 0.02, screen 1 offset 0,-2.4
set tmargin 4
set tics nomirror
$script
EOS
	close $gnuplot or die "gnuplot failed\n";
	return;
}

# Horizontal bars, from the top down, in groups
sub bars
{
	my ($dir, $file, $title, $subtitle, $format, @groups) = @_;
	my ($y, $most) = (0, 0);
	my (@bars, @values, @marks, @heads);

	foreach my $group (@groups)
	{
		my ($head, @of_group) = @$group;

		$y++ if $y && $head;
		push @heads, qq{set label "$head" at graph 0, first -$y offset character 0.5,0}
		  if $head;
		$y++ if $head;
		foreach my $bar (@of_group)
		{
			my ($name, $colour, $value, $none) = @$bar;
			my ($top, $bottom) = (-$y + 0.4, -$y - 0.4);

			push @marks, qq{"$name" -$y};
			push @bars, sprintf '0 %s %s %s %s', $value, $bottom, $top, hex substr $colour, 1
			  if defined $value;
			push @values, sprintf '%s %s "%s"', $value // 0, -$y,
			  defined $value ? $format->($value) : $none;
			$most = $value if defined $value && $value > $most;
			$y++;
		}
	}
	return () unless @bars;
	run_gnuplot("$dir/$file", 24 * $y + 90, $title, $subtitle, join "\n",
		'$bars << EOD', @bars, 'EOD', '$values << EOD', @values, 'EOD', @heads,
		"set yrange [" . (0.5 - $y) . ':0.5]', "set xrange [0:" . 1.12 * $most . ']',
		'set border 2', 'unset xtics', 'unset key', 'set style fill solid noborder',
		'set ytics scale 0 (' . join(', ', @marks) . ')',
		'plot $bars using (0):(0):1:2:3:4:5 with boxxyerror lc rgb variable,'
		  . ' $values using 1:2:3 with labels left offset character 0.5,0');
	return [ $file, $title ];
}

# One line per contestant, both axes logarithmic
sub lines
{
	my ($results, $dir, $file, $title, $axis, $scenario, $points, $column) = @_;
	my ($data, @plots) = ('');

	foreach my $name (@names)
	{
		my @rows = grep { defined $_->[1] }
		  map { [ $_, $results->median("$scenario-$_", $name, $column) ] } @$points;
		next unless @rows > 1;
		$data .= "\$$name << EOD\n" . join('', map { "@$_\n" } @rows) . "EOD\n";
		push @plots, "\$$name with linespoints lw 2 pt 7 ps 0.6"
		  . " lc rgb '$colours{$name}' title '$titles{$name}'";
	}
	return () unless @plots;
	run_gnuplot("$dir/$file", 420, $title, "by the number of $axis; both scales are logarithmic", join "\n",
		$data, 'set logscale xy', 'set key outside right top Left reverse',
		"set grid ytics lc rgb '#dddddd'", 'set border 3', "set xlabel '$axis'",
		"set xrange [$points->[0] * 0.9:$points->[-1] * 1.2]", 'set yrange [300:*]',
		'set xtics (' . marks(@$points) . ')',
		'set ytics (' . marks(map { 10**$_ } 2 .. 5) . ')',
		'plot ' . join(', ', @plots));
	return [ $file, $title ];
}

sub marks { return join ', ', map { '"' . Page::thousands($_) . qq{" $_} } @_; }

1;
