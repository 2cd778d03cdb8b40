# Writes the tables and pictures of a run.
#
#	perl report.pl DIR		reads DIR/results.csv, machine.txt, and policy.csv if it
#							is there; writes DIR/benchmarks.md and DIR/*.svg

use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use List::Util qw(first);

use Page;
use Plots;
use Requirements;
use Results;

my ($out) = @ARGV;
my $results = Results->new("$out/results.csv");
my @names = qw(zklock words uncached curator kazoo raw advisory sql);
my %titles = (
	zklock => 'zklock',
	words => 'zklock with messages',
	uncached => 'zklock, nothing cached',
	tls => 'zklock over TLS',
	curator => 'Curator',
	kazoo => 'kazoo',
	etcd => 'etcd\'s lock service',
	mutex => 'etcd\'s Mutex',
	raw => 'raw client',
	advisory => 'advisory lock',
	sql => 'empty statements');
# Whose servers hand locks over
my %took_part = map { $_ => 1 } $results->contestants;
my @peers = grep { $took_part{$_} } qw(zklock words uncached curator kazoo etcd mutex);
my @scenarios = scenario_titles();
my $text = '';

# [ name, title ] of each scenario that was run.  The titles are read, not
# loaded, since that would take PostgreSQL's test library.
sub scenario_titles
{
	my @titles = (
		(map { [ "distinct-$_", clients($_) . ', a name each' ] } 1, 8, 64, 256),
		[ 'many', '64 clients, 100 000 names' ],
		(map { [ "new-$_", clients($_) . ', new names' ] } 1, 8, 64),
		[ 'one-8', '8 clients, one name' ],
		[ 'one-64', '64 clients, one name' ],
		[ 'shared', '1 writer : 9 readers, one name' ],
		[ 'try', '8 clients, tries that fail' ],
		[ 'try-local', '8 clients, tries that fail, on the holder\'s server' ],
		[ 'reentry', '8 clients, re-entry' ],
		[ 'alternate', '2 servers in turn, one name' ],
		(map { [ "statement-$_", clients($_) . ', one statement per pair' ] }
			  1, 8, 64),
		(map { [ "three-$_", clients($_) . ', three ZooKeepers' ] } 1, 8, 64));

	return grep { $results->has($_->[0]) } @titles;
}

sub clients { return $_[0] == 1 ? '1 client' : "$_[0] clients"; }

# Three digits that mean something
sub number
{
	my ($value) = @_;

	return '–' unless defined $value;
	return sprintf '%.0f', $value if $value >= 100;
	return sprintf '%.1f', $value if $value >= 10;
	return sprintf '%.2f', $value;
}

# A ratio, as Results.pm gives it
sub range
{
	return defined $_[0] ? sprintf('%s × (%s – %s)', map { number($_) } @_) : '';
}

sub thousands
{
	my ($value) = @_;

	return number($value) if !defined $value || $value < 1000;
	return Page::thousands($value);
}

sub table { $text .= Page::table(@_); return; }

# A figure of one contestant, or "failed"; the footnotes say why.
my @notes;

sub cell
{
	my ($scenario, $name, $column, $format) = @_;
	my $value = $results->median($scenario, $name, $column);
	my ($failures, $error) = $results->error($scenario, $name);

	if ($failures)
	{
		my $note = "$titles{$name}, $scenario, $failures rounds: $error";
		push @notes, $note unless grep { $_ eq $note } @notes;
	}
	return $format->($value) . ($failures ? ' (failed)' : '') if defined $value;
	return $failures ? 'failed' : '';
}

sub rates
{
	my @rows;

	foreach my $scenario (@scenarios)
	{
		my ($name, $title) = @$scenario;
		my @row = ($title, cell($name, 'zklock', 'rate', \&thousands));
		foreach my $other (@names[ 1 .. $#names ])
		{
			my $ratio = $results->ratio($name, 'zklock', $other, 'rate');
			push @row, cell($name, $other, 'rate', \&thousands)
			  . (defined $ratio ? ' (' . number($ratio) . ' ×)' : '');
		}
		push @rows, \@row;
	}
	return unless @rows;
	$text .= "## Pairs a second\n\n"
	  . "In brackets: zklock against this contestant, as the median of the rounds'"
	  . " ratios.\n\n";
	table([ 'acquire + release', @titles{@names} ], @rows);
	return;
}

sub latencies
{
	my @rows;

	foreach my $scenario (@scenarios)
	{
		my ($name, $title) = @$scenario;
		push @rows, [
			$title,
			map {
				my $p50 = cell($name, $_, 'p50', \&number);
				my $p99 = $results->median($name, $_, 'p99');
				defined $p99 ? "$p50 / " . number($p99) : $p50;
			} @names
		];
	}
	return unless @rows;
	$text .= "## Time of a pair, p50 / p99 in ms\n\n";
	table([ '', @titles{@names} ], @rows);
	return;
}

sub handovers
{
	my %titles_of = (
		'handover-2' => '2 servers',
		'handover-3' => '3 servers',
		'handover-waited' => '2 servers, the next one has waited',
		'three-handover' => '2 servers, three ZooKeepers',
		'three-waited' => '2 servers, the next one has waited, three ZooKeepers',
		recall => 'from a server that has it cached');
	my @others = grep { $_ ne 'zklock' } @peers;
	my (@rows, @ratios);

	foreach my $name (grep { $results->has($_) } sort keys %titles_of)
	{
		my @row = ($titles_of{$name});
		my @ranges = map { range($results->ratio($name, 'zklock', $_, 'p50')) } @others;

		push @ratios, [ $titles_of{$name}, @ranges ] if grep { length } @ranges;
		foreach my $who (@peers)
		{
			my $p99 = $results->median($name, $who, 'p99');
			push @row, cell($name, $who, 'p50', \&number)
			  . (defined $p99 ? ' / ' . number($p99) : '');
		}
		push @row, map { cell($name, $_, 'requests', \&number) } @peers;
		push @rows, \@row;
	}
	return unless @rows;
	$text .= "## Hand-over from server to server\n\n"
	  . "From the call that releases to the return of the call that waits: p50 /"
	  . " p99 in ms, and requests to ZooKeeper or etcd per hand-over, including the"
	  . " next request of the client that released.\n\n";
	table([ '', @titles{@peers},
			map { "requests, $titles{$_}" } @peers ], @rows);
	return unless @ratios;
	$text .= "zklock's p50 against each of the others: the median of the rounds'"
	  . " ratios, the least and the largest.\n\n";
	table([ '', @titles{@others} ], @ratios);
	return;
}

# The lines of the workers' traces divide the time: see ScenarioSteps.pm.
sub steps
{
	my @parts = (
		[ call_us => 'the call, until the worker of that server has it' ],
		[ release_us => 'until that worker sends something' ],
		[ way_us => 'until the other worker has it: the datagram; or ZooKeeper, twice' ],
		[ grant_us => 'until that worker grants the lock' ],
		[ return_us => 'until the waiting call returns' ]);
	my @who = qw(zklock words);

	return unless $results->has('steps');
	$text .= "## Where the time of a hand-over goes\n\n"
	  . "Between two servers, in µs (p50), while both workers write traces.\n\n";
	table([ '', @titles{@who} ],
		map {
			my ($column, $title) = @$_;

			[ $title, map { cell('steps', $_, $column, \&number) } @who ]
		} @parts);
	return;
}

sub besides
{
	return unless $results->has('beside');
	$text .= "## A foreign client beside 64 clients\n\n"
	  . "The time of its writes (a set, a delete and a create in one transaction),"
	  . " p50 / p99 in ms, and the rate of the 64 clients meanwhile.\n\n";
	table([ 'beside', 'ms', 'pairs a second' ],
		map { [
				$titles{$_},
				cell('beside', $_, 'p50', \&number) . ' / '
				  . number($results->median('beside', $_, 'p99')),
				cell('beside', $_, 'rate', \&thousands) ] }
		  grep { defined $results->median('beside', $_, 'p50') } @peers, 'sql');
	return;
}

sub lones
{
	my @loads = grep { $results->has("lone-$_") } 8, 64, 256;

	return unless @loads;
	$text .= "## A lone session beside others\n\n"
	  . "The time of a pair, p50 / p99 in ms, for a session that takes a lock 100"
	  . " times a second, while others do so at full speed. For empty statements"
	  . " it shows the cost of the busy machine.\n\n";
	table([ 'beside', map { $titles{$_} } qw(zklock uncached sql) ],
		map {
			my $name = "lone-$_";

			[ "$_ clients", map {
					cell($name, $_, 'p50', \&number) . ' / '
					  . number($results->median($name, $_, 'p99'))
			} qw(zklock uncached sql) ]
		} @loads);
	return;
}

sub depths
{
	my @rows;

	foreach my $depth (10, 100, 1000, 5000, 'local-10', 'local-500')
	{
		my $name = $depth =~ /local/ ? $depth : "depth-$depth";
		next unless $results->has($name);
		push @rows, [
			$depth =~ s/local-(.*)/$1, within one server/r,
			map {
				my $who = $_;
				map { cell($name, $who, $_, \&thousands) } qw(requests bytes p50)
			} qw(zklock curator kazoo)
		];
		push @{ $rows[-1] }, map { cell($name, 'zklock', $_, \&thousands) }
		  qw(listings worker_us worker_kb);
	}
	return unless @rows;
	$text .= "## Hand-over with a long queue\n\n"
	  . "For each hand-over: requests to ZooKeeper, bytes between ZooKeeper and all"
	  . " its clients, and ms (p50). For zklock also listings, the workers'"
	  . " processor time in µs, and the larger worker's private memory in kB.\n\n";
	table([ 'waiters',
			(map { ("$titles{$_}: requests", 'bytes', 'ms') } qw(zklock curator kazoo)),
			'listings', 'worker µs', 'worker kB' ], @rows);
	return;
}

# What a pair costs one contestant of zklock's, beside Curator
sub costs
{
	my ($who, $heading) = @_;
	my @rows;

	foreach my $scenario (grep { defined $results->median($_->[0], $who, 'requests') } @scenarios)
	{
		my ($name, $title) = @$scenario;
		push @rows, [
			$title,
			(map { cell($name, $_, 'requests', \&number) } $who, 'curator'),
			(map { cell($name, $who, $_, \&number) }
				  qw(batches listings zookeeper_us worker_us session_us busy)),
			(map { cell($name, 'curator', $_, \&number) } qw(zookeeper_us busy))
		];
	}
	return unless @rows;
	$text .= "## $heading\n\n"
	  . "Requests to ZooKeeper, processor time in µs, and the number of processors"
	  . " that were busy, with the clients and everything else.\n\n";
	table([ '', 'requests', 'Curator: requests', 'batches', 'listings',
			'ZooKeeper µs', 'worker µs', 'zklock_session µs', 'processors',
			'Curator: ZooKeeper µs', 'processors' ], @rows);
	return;
}

# zklock without and with TLS, at two ports of one ZooKeeper
sub tls_costs
{
	my @measured = grep { $results->has($_->[0]) } (
		[ 'tls-distinct-1', '1 client, a name each' ],
		[ 'tls-distinct-64', '64 clients, a name each' ],
		[ 'tls-one-8', '8 clients, one name' ]);

	return unless @measured;
	$text .= "## A pair without TLS and with it\n\n"
	  . "Processor time in µs, without TLS / with it, and the median of the"
	  . " rounds' ratios, the least and the largest. Nothing is cached.\n\n";
	table([ '', 'ZooKeeper µs', '', 'zklock_session µs', '', 'pairs a second', '' ],
		map { [ $_->[1], tls_cells($_->[0], qw(zookeeper_us session_us rate)) ] }
		  @measured);
	return;
}

sub tls_cells
{
	my ($scenario, @columns) = @_;

	return map {
		my $column = $_;
		my @ratios = $results->ratio($scenario, 'tls', 'zklock', $column);

		join(' / ', map { cell($scenario, $_, $column, \&thousands) } qw(zklock tls)),
		  range(@ratios)
	} @columns;
}

# zklock with other numbers than it is shipped with
sub policies
{
	my $file = "$out/policy.csv";
	return unless -e $file;
	my $policy = Results->new($file);
	my @variants = $policy->contestants;

	$text .= "## Rules for when a batch is sent\n\n"
	  . "Pairs a second / p50 in ms / batches per pair. The columns are: batches in"
	  . " flight, pending creates that are enough for a batch (0: nothing is"
	  . " gathered), and operations per batch. zklock uses 2:16:256."
	  . " `make bench-policy` measures this in a run of its own.\n\n";
	table([ '', @variants ],
		map {
			my ($name, $title) = @$_;

			[ $title, map {
					thousands($policy->median($name, $_, 'rate')) . ' / '
					  . number($policy->median($name, $_, 'p50')) . ' / '
					  . number($policy->median($name, $_, 'batches'))
			} @variants ]
		} grep { $policy->has($_->[0]) } @scenarios);
	return;
}

sub failures
{
	return unless @notes;
	$text .= "## What failed\n\n" . join('', map { "* $_\n" } @notes) . "\n";
	return;
}

sub plots
{
	my @plots = Plots::draw($results, $out);

	$text .= join "\n", map { "![$_->[1]]($_->[0])" } @plots;
	$text .= "\n\n" if @plots;
	return;
}

sub slurp
{
	my ($file) = @_;

	open my $in, '<', $file or return undef;
	local $/ = undef;
	return readline $in;
}

# ---- the page ----

$text .= slurp("$out/machine.txt") // '';
$text .= "\n";
my @required = Requirements::check($results);
if (@required)
{
	$text .= "## Targets\n\n";
	table([ 'medians of ' . $results->most_rounds . ' rounds', 'target',
			'measured (least – largest)', '' ], @required);
}
plots();
rates();
latencies();
handovers();
steps();
besides();
lones();
depths();
costs('zklock', 'What a pair costs');
costs('uncached', 'What a pair costs if nothing is cached');
tls_costs();
policies();
failures();

Page::write("$out/benchmarks.md", 'Locks beside other locks', 'bench/report.pl', $text);
