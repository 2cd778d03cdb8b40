# What zklock has to reach in the benchmarks, and whether it did.  Ratios are
# those of one run, round by round.

package Requirements;

use strict;
use warnings;

# scenario, who, against whom, what, at least or most, limit, words, the other's
# scenario if it is another one
my @ratios = (
	[ 'distinct-1', 'zklock', 'curator', 'rate', '≥', 4,
		'pairs/s, 1 client, against Curator' ],
	[ 'distinct-8', 'zklock', 'curator', 'rate', '≥', 8,
		'pairs/s, 8 clients, against Curator' ],
	[ 'distinct-64', 'zklock', 'curator', 'rate', '≥', 8,
		'pairs/s, 64 clients, against Curator' ],
	(map {
			[ "distinct-$_->[0]", 'uncached', 'curator', 'rate', '≥', $_->[1],
				'pairs/s, ' . ($_->[0] == 1 ? '1 client' : "$_->[0] clients")
				  . ', nothing cached, against Curator' ]
	} [ 1 => 2 ], [ 8 => 3 ], [ 64 => 3.5 ]),
	[ 'distinct-1', 'uncached', 'raw', 'rate', '≥', 0.6,
		'pairs/s, 1 client, nothing cached, against the raw client' ],
	(map {
			[ "distinct-$_", 'zklock', 'advisory', 'rate', '≥', 0.6,
				'pairs/s, ' . ($_ == 1 ? '1 client' : "$_ clients")
				  . ', against advisory locks' ]
	} 1, 8, 64),
	[ 'many', 'zklock', 'uncached', 'rate', '≥', 0.95,
		'pairs/s, 100 000 names, against nothing cached' ],
	(map {
			[ "one-$_", 'zklock', 'uncached', 'rate', '≥', 0.95,
				"pairs/s, one name, $_ clients, against nothing cached" ]
	} 8, 64),
	[ 'handover-2', 'zklock', 'uncached', 'p50', '≤', 1.05,
		'hand-over between two servers, p50, against nothing cached' ],
	[ 'alternate', 'zklock', 'uncached', 'rate', '≥', 0.95,
		'locks/s of two servers in turn, against nothing cached' ],
	[ 'try-local', 'zklock', 'advisory', 'rate', '≥', 0.5,
		'tries that fail on the holder\'s server, 8 clients, against advisory locks' ],
	[ 'one-8', 'zklock', 'curator', 'rate', '≥', 5,
		'pairs/s, one name, 8 clients, against Curator' ],
	[ 'handover-2', 'zklock', 'curator', 'p50', '≤', 0.6,
		'hand-over between two servers, p50, against Curator' ],
	[ 'handover-2', 'words', 'curator', 'p50', '≤', 0.45,
		'hand-over between two servers with messages, p50, against Curator' ],
	[ 'handover-3', 'words', 'zklock', 'requests', '≤', 1.02,
		'requests to ZooKeeper per hand-over, 3 servers, with messages, against none' ],
	[ 'recall', 'words', 'zklock', 'p50', '≤', 1.3,
		'a lock that another server has cached, with messages, p50, against a hand-over without',
		'handover-2' ],
	(map {
			[ $_, 'words', 'zklock', 'rate', '≥', 0.97, "rate of $_, with messages, against none" ]
	} qw(distinct-1 distinct-8 distinct-64 many one-8 one-64 shared try alternate)),
	[ 'recall', 'zklock', 'zklock', 'p50', '≤', 1.5,
		'a lock that another server has cached, p50, against a hand-over', 'handover-2' ]);

# scenario, what, at least or most, limit, words
my @values = (
	(map {
			[ "distinct-$_", 'requests', '≤', 0.01,
				'requests to ZooKeeper per pair, ' . ($_ == 1 ? '1 client' : "$_ clients") ]
	} 1, 8, 64),
	[ 'facts', 'worker_kb', '≤', 65536,
		'kB of worker memory with 10 000 requests' ],
	[ 'facts', 'slot_bytes', '≤', 1024, 'bytes of shared memory per slot' ],
	[ 'facts', 'worker_wakeups', '≤', 1,
		'wakeups a second of an idle worker (a ping of the session is two)' ],
	[ 'facts', 'session_wakeups', '≤', 1,
		'wakeups a second of an idle session process (a ping is two)' ]);

sub holds
{
	my ($value, $relation, $limit) = @_;

	return $relation eq '≥' ? $value >= $limit : $value <= $limit;
}

sub verdict { return holds(@_) ? 'reached' : '**missed**'; }

# How the requests per hand-over grow with the queue
sub depth
{
	my ($results) = @_;
	my $short = $results->median('depth-10', 'zklock', 'requests');
	my $long = $results->median('depth-5000', 'zklock', 'requests');

	return () unless $short && $long;
	return [
		'requests per hand-over, 5 000 waiters against 10', '= 1 ×',
		sprintf('%.2f × (%.2f, %.2f)', $long / $short, $short, $long),
		# a beat or a ping that comes in between is 0.05
		verdict($long - $short, '≤', 0.2)
	];
}

# The rows of a table: what, demanded, measured, verdict
sub check
{
	my ($results) = @_;
	my @rows;

	foreach my $ratio (@ratios)
	{
		my ($scenario, $who, $other, $column, $relation, $limit, $words, $beside) = @$ratio;
		my ($value, $least, $most) =
		  $results->ratio($scenario, $who, $other, $column, $beside);

		next unless defined $value;
		push @rows, [
			$words, "$relation $limit ×",
			sprintf('%.2f × (%.2f – %.2f)', $value, $least, $most),
			verdict($value, $relation, $limit)
		];
	}
	push @rows, depth($results);
	foreach my $figure (@values)
	{
		my ($scenario, $column, $relation, $limit, $words) = @$figure;
		my $value = $results->median($scenario, 'zklock', $column);

		next unless defined $value;
		push @rows, [
			$words, "$relation $limit",
			sprintf($value < 100 ? '%.2f' : '%.0f', $value),
			verdict($value, $relation, $limit)
		];
	}
	return @rows;
}

1;
