# Writes the tables of what many servers ask of ZooKeeper.
#
#	perl scale-report.pl DIR	reads DIR/scale.csv and DIR/capacity.csv; writes
#								DIR/scale.md, and prints the tables

use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Page;

my ($out) = @ARGV;

my $timeout = 10;    # s, of the sessions in both
my $remembered = 4096;    # directories per server at most, by default
my $names = 10_000;    # that are drawn from

my %runs = map { $_->{run} => $_ } read_csv("$out/scale.csv");
my @costs = read_csv("$out/capacity.csv");
my $text = '';

sub read_csv
{
	my ($file) = @_;
	my @rows;

	open my $csv, '<', $file or die "$file: $!\n";
	chomp(my $head = readline $csv);
	my @columns = split /,/, $head;
	while (my $line = readline $csv)
	{
		chomp $line;
		my %row;
		@row{@columns} = split /,/, $line, -1;
		push @rows, \%row;
	}
	close $csv;
	return @rows;
}

# What was measured with so many sessions, or with the next number above that
sub cost
{
	my ($what, $sessions, $column) = @_;
	my ($row) = sort { $a->{sessions} <=> $b->{sessions} }
	  grep { $_->{what} eq $what && $_->{sessions} >= $sessions } @costs;

	return $row->{$column};
}

# ---- formats ----

# Three digits that mean something
sub number
{
	my ($value) = @_;

	return thousands($value) if $value >= 100;
	return sprintf '%.1f', $value if $value >= 10;
	return sprintf '%.2f', $value;
}

sub thousands { return Page::thousands($_[0]); }
sub percent { return sprintf '%.*f %%', $_[0] < 0.1 ? 1 : 0, 100 * $_[0]; }
sub mb { return number($_[0] / 1e6); }

sub table { $text .= Page::table(@_); return; }
sub per_acquire { return 1e6 * $_[0]{busy} / $_[0]{rate}; }

# ---- the tables ----

sub costs
{
	$text .= "## What ZooKeeper needs, as measured\n\n"
	  . "A batch is a set, a delete and a create. Processor time is in µs.\n\n";
	table(
		[ 'sessions', 'batches/s', 'µs each', 'with 4 listings behind each: µs',
			"one batch per session every 1.67 s: batches/s", 'µs each' ],
		map {
			my $n = $_;
			[
				thousands($n),
				(map { thousands(cost('batch', $n, $_)) } 'rate', 'us'),
				thousands(cost('batch and 4 listings', $n, 'us')),
				map { thousands(cost('paced batch', $n, $_)) } 'rate', 'us'
			]
		} 10, 100, 1000);
	table([ 'on the heap', 'bytes' ],
		[ 'a session', thousands(cost('session', 1, 'bytes')) ],
		[ "a session's first watch", thousands(cost('first watch', 1, 'bytes')) ],
		[ 'each further one, on a node that no other session watches',
			thousands(cost('lone watch', 1, 'bytes')) ],
		[ 'each, on a node that 1 000 sessions watch', thousands(cost('shared watch', 1, 'bytes')) ],
		[ 'the znode of a request', thousands(cost('znode', 1, 'bytes')) ]);
	return;
}

# Watches on that many names: the first on each, and further ones
sub watch_bytes
{
	my ($watches) = @_;
	my $nodes = $watches < $names ? $watches : $names;

	return $nodes * cost('lone watch', 1, 'bytes') +
	  ($watches - $nodes) * cost('shared watch', 1, 'bytes');
}

sub paper
{
	my @rows;

	foreach my $servers (3, 10, 100, 1000)
	{
		my $run = $runs{"spread-$servers"};
		my $beats = 6 * $servers / $timeout;
		my $us = per_acquire($run);

		push @rows, [
			thousands($servers),
			number($servers * cost('session', 1, 'bytes') / 1e6),
			number($beats),
			percent($beats * cost('paced batch', $servers, 'us') / 1e6),
			number(4 * $servers / $timeout),
			thousands($us),
			thousands(1e6 / $us),
			number(1e6 / $us / $servers),
			thousands($run->{watches}) . ' = ' . mb(watch_bytes($run->{watches})),
			thousands($servers * $remembered) . ' = '
			  . mb(watch_bytes($servers * $remembered))
		];
	}
	$text .= "## What one ensemble carries, by the number of servers\n\n";
	table(
		[ 'servers', 'sessions, MB', 'heartbeats/s if all hold locks',
			"share of a ZooKeeper processor", 'reads/s if none holds a lock',
			'µs of ZooKeeper per acquire', 'acquires/s until one processor is busy',
			'for each server', 'watches in that simulation = MB',
			'most watches on directories = MB' ],
		@rows);
	return;
}

sub simulated
{
	my @titles = (
		[ 'spread-3', '3 servers' ],
		[ 'spread-10', '10 servers' ],
		[ 'spread-100', '100 servers' ],
		[ 'spread-1000', '1 000 servers' ],
		[ 'slow-10', '10 servers, each as idle as those 1 000' ],
		[ 'slow-100', '100 servers, each as idle as those 1 000' ],
		[ 'own-0.9', '1 000 servers, 9 of 10 acquires on 10 names of their own' ],
		[ 'own-1', '1 000 servers, all acquires on 10 names of their own' ],
		[ 'names-1000', '1 000 servers, 1 000 names' ],
		[ 'names-100', '1 000 servers, 100 names' ],
		[ 'zipf', '1 000 servers, Zipf, locks held for 1 ms' ]);

	$text .= "## What an acquire costs ZooKeeper\n\n"
	  . thousands($names) . ' names, drawn uniformly, 100 backends per'
	  . " server, and locks held for 10 ms, unless a row says otherwise.\n\n";
	table(
		[ '', 'acquires/s', 'ms until granted', 'requests', 'batches', 'listings',
			'gets', 'unwatches', 'directories made', 'creates + deletes',
			'children listed', 'bytes listed', 'creates without a listing',
			'ZooKeeper busy' ],
		map {
			my $r = $runs{ $_->[0] };
			[
				$_->[1], thousands($r->{rate}),
				(map { number($r->{$_}) } qw(wait_ms requests batches lists gets
					  unwatches containers)),
				number($r->{creates} + $r->{deletes}),
				number($r->{children}), thousands($r->{listed_bytes}),
				percent($r->{continuous}), percent($r->{busy})
			]
		} @titles);
	return;
}

sub hand_overs
{
	my @titles = (
		(map { [ "queue-$_", 'one name, a client on each of ' . thousands($_) . ' servers' ] }
			  2, 3, 10, 100, 1000),
		[ 'queue-10x100', 'one name, 100 clients on each of 10 servers' ],
		[ 'names-1000', '1 000 servers, 1 000 names' ],
		[ 'names-100', '1 000 servers, 100 names' ],
		[ 'zipf', '1 000 servers, 10 000 names, Zipf' ]);

	$text .= "## What a hand-over costs\n\n";
	table(
		[ '', 'hand-overs/s', 'to the same server', 'requests', 'ms',
			'to another', 'requests', 'ms', 'bytes listed per acquire',
			'beats/s beside' ],
		map {
			my $r = $runs{ $_->[0] };
			my $all = $r->{alone} + $r->{local} + $r->{foreign};
			[
				$_->[1],
				thousands($r->{rate} * ($r->{local} + $r->{foreign}) / $all),
				(map {
						my $few = $r->{$_} < 100;
						percent($r->{$_} / $all),
						  map { $few ? '' : number($_) } $r->{"${_}_requests"},
						  $r->{"${_}_ms"}
				} qw(local foreign)),
				thousands($r->{listed_bytes}), number($r->{beats_s})
			]
		} @titles);
	return;
}

sub memory
{
	my @titles = (
		[ 'idle-10', 'a server that holds 10 locks, and does nothing else' ],
		[ 'spread-1000', 'one of 1 000 servers' ],
		[ 'spread-100', 'one of 100 servers' ],
		[ 'spread-10', 'one of 10 servers' ],
		[ 'full', 'a server alone, if no directory is ever deleted' ]);

	$text .= "## Memory and watches of a server\n\n";
	table(
		[ 'the largest server of each simulation', 'kB in the core', 'watches', 'directories remembered' ],
		map {
			my $r = $runs{ $_->[0] };
			[
				$_->[1], thousands($r->{memory} / 1000),
				thousands($r->{server_watches}), thousands($r->{directories})
			]
		} @titles);
	$text .= 'A remembered directory takes '
	  . "$runs{full}{directory_bytes} bytes.\n\n";
	table(
		[ 'servers that hold 10 locks each, and do nothing else', 'beats/s',
			'watches' ],
		map {
			my $r = $runs{"idle-$_"};
			[ thousands($_), number($r->{beats_s}), thousands($r->{watches}) ]
		} 3, 10, 100, 1000);
	return;
}

paper();
simulated();
hand_overs();
memory();
costs();
print $text;

Page::write("$out/scale.md", 'Many servers', 'bench/scale-report.pl', $text);
