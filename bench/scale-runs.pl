# Runs the simulations of many servers, one after the other, and writes down
# what they say; "make scale" calls it.
#
#	perl scale-runs.pl PROGRAM FILE		test/sim/build/scale, the .csv to write
#
# They run in virtual time: the same version gives the same figures anywhere.

use strict;
use warnings;

my ($program, $file) = @ARGV;

# 5 000 acquires a second in all, if nobody has to wait; and ZooKeeper's reaper,
# which looks at each directory once a minute
my $load = 'backends=100 names=10000 hold=10 reap=60000 warmup=60000'
  . ' duration=30000';
my $queue = 'names=1 think=1 hold=10 warmup=20000 duration=20000';
my $idle = 'backends=10 hold=forever warmup=5000 duration=20000';

my @runs = (
	[ 'spread-3', "servers=3 $load think=50" ],
	[ 'spread-10', "servers=10 $load think=190" ],
	[ 'spread-100', "servers=100 $load think=1990" ],
	[ 'spread-1000', "servers=1000 $load think=19990" ],
	[ 'slow-10', "servers=10 $load think=19990" ],
	[ 'slow-100', "servers=100 $load think=19990" ],
	[ 'own-0.9', "servers=1000 $load think=19990 own=0.9" ],
	[ 'own-1', "servers=1000 $load think=19990 own=1" ],
	[ 'names-1000', "servers=1000 $load think=19990 names=1000" ],
	[ 'names-100', "servers=1000 $load think=19990 names=100" ],
	[ 'zipf', "servers=1000 $load think=39999 hold=1 skew=1" ],
	[ 'full', 'servers=1 backends=100 names=10000 think=90 hold=10 warmup=30000' ],
	(map { [ "queue-$_", "servers=$_ backends=1 $queue" ] } 2, 3, 10, 100, 1000),
	[ 'queue-10x100', "servers=10 backends=100 $queue" ],
	(map { [ "idle-$_", "servers=$_ $idle" ] } 3, 10, 100, 1000));

my @columns;

open my $out, '>', $file or die "$file: $!\n";
foreach my $run (@runs)
{
	my ($name, $arguments) = @$run;
	my $line = `$program $arguments`;

	die "$name: $line" if $?;
	print STDERR "$name\n";
	my @pairs = map { [ split /=/ ] } split ' ', "$arguments $line";
	my %values = map { @$_ } @pairs;
	if (!@columns)
	{
		@columns = map { $_->[0] } map { [ split /=/ ] } split ' ', $line;
		print $out join(',', 'run', 'servers', 'backends', @columns), "\n";
	}
	print $out join(',', $name, @values{ 'servers', 'backends', @columns }), "\n";
}
close $out or die "$file: $!\n";
