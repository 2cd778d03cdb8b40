# The table that the measurement of the chaos servers prints, in Markdown.
#
#	row('release of a lock', '50 ms', @seconds);
#	fact('locks lost', 0, $how_many_looks, $value);
#	note $_ foreach ChaosTable::lines();

package ChaosTable;

use strict;
use warnings;

use Exporter qw(import);
use POSIX qw(ceil);
use Test::More;

use ChaosClient;

our @EXPORT_OK = qw(row fact);

my $started = ChaosClient::now();
my @table;

# One line of the table: what was promised, and the values in seconds
sub row
{
	my ($what, $promised, @values) = @_;
	my @sorted = sort { $a <=> $b } @values;
	my $n = @sorted;
	my $line = sprintf '| %s | %s | %d | %s | %s | %s |', $what, $promised, $n,
	  map { seconds($sorted[ ceil($_ * $n) - 1 ]) } 0.5, 0.99, 1;

	push @table, $line;
	note sprintf '%4d s  %s', ChaosClient::now() - $started, $line;
	return;
}

sub seconds
{
	my ($value) = @_;

	return $value < 1 ? sprintf('%.1f ms', $value * 1000)
	  : sprintf '%.2f s', $value;
}

# A line of which the value is no time
sub fact
{
	my ($what, $promised, $count, $value) = @_;

	push @table, "| $what | $promised | $count | $value | | |";
	note sprintf '%4d s  %s', ChaosClient::now() - $started, $table[-1];
	return;
}

sub lines
{
	return '| what | promised | n | p50 | p99 | worst |',
	  '|---|---|---:|---:|---:|---:|', @table;
}

1;
