# The results of a run, as bench.pl writes them.
#
#	my $results = Results->new('results.csv');
#	$results->has('one-8');
#	$results->median('one-8', 'zklock', 'rate');
#	$results->ratio('one-8', 'zklock', 'curator', 'rate');	# median of rounds
#	$results->error('one-8', 'kazoo');
#
# What was not measured is undef.

package Results;

use strict;
use warnings;

sub new
{
	my ($class, $file) = @_;
	my $self = bless { rows => {}, contestants => [] }, $class;
	my %seen;

	open my $csv, '<', $file or die "$file: $!\n";
	chomp(my $head = readline $csv);
	my @columns = split /,/, $head;
	while (my $line = readline $csv)
	{
		chomp $line;
		my %row;
		@row{@columns} = split /,/, $line, scalar @columns;
		$row{error} = ($row{error} // '') =~ s/"//gr;
		push @{ $self->{contestants} }, $row{contestant}
		  unless $seen{ $row{contestant} }++;
		push @{ $self->{rows}{ $row{scenario} }{ $row{contestant} } }, \%row;
	}
	close $csv;
	return $self;
}

sub median_of
{
	my (@values) = sort { $a <=> $b } @_;

	return undef unless @values;
	return ($values[ $#values / 2 ] + $values[ @values / 2 ]) / 2;
}

# In the order in which they were run
sub contestants { return @{ $_[0]{contestants} }; }

sub has { return exists $_[0]{rows}{ $_[1] }; }

sub _rows
{
	my ($self, $scenario, $contestant) = @_;
	my $rows = (exists $self->{rows}{$scenario} ? $self->{rows}{$scenario} : {})->{$contestant};

	return $rows ? @$rows : ();
}

# { round => value } of the rounds that went well
sub rounds
{
	my ($self, $scenario, $contestant, $column) = @_;

	return map { $_->{round} => $_->{$column} }
	  grep { $_->{status} eq 'ok' && length $_->{$column} }
	  $self->_rows($scenario, $contestant);
}

sub median
{
	my ($self, @what) = @_;
	my %rounds = $self->rounds(@what);

	return median_of(values %rounds);
}

# The median of the ratios in each round, and the least and the largest.  The other
# one may be of another scenario.
sub ratio
{
	my ($self, $scenario, $one, $other, $column, $other_scenario) = @_;
	my %one = $self->rounds($scenario, $one, $column);
	my %other = $self->rounds($other_scenario // $scenario, $other, $column);
	my @ratios = sort { $a <=> $b }
	  map { $one{$_} / $other{$_} }
	  grep { defined $other{$_} && $other{$_} > 0 } keys %one;

	return wantarray ? (median_of(@ratios), @ratios[ 0, -1 ]) : median_of(@ratios);
}

# How many rounds failed, and why the first did
sub error
{
	my ($self, $scenario, $contestant) = @_;
	my @failed = grep { $_->{status} ne 'ok' } $self->_rows($scenario, $contestant);

	return () unless @failed;
	return (scalar(@failed), $failed[0]{error} =~ s/\s+$//r);
}

sub most_rounds
{
	my ($self) = @_;
	my $most = 0;

	foreach my $scenario (values %{ $self->{rows} })
	{
		foreach my $rows (values %$scenario)
		{
			$most = @$rows if @$rows > $most;
		}
	}
	return $most;
}

1;
