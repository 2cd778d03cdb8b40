# A fake ZooKeeper server that sends what none should: see fakezk.py.
#
#	my $fake = FakeZooKeeper->new($port);	# listens on loopback
#	foreach my $mode ($fake->modes) { $fake->mode($mode); ... }
#	$fake->stats->{accepted};			# connections since mode was set
#	$fake->stop;						# the port is free again
#	$fake->listen;

package FakeZooKeeper;

use strict;
use warnings;

use parent 'PipedProgram';

sub new
{
	my ($class, $port) = @_;
	my $self = $class->start('fakezk.py', $port);

	$self->stats;    # an answer: it listens
	return $self;
}

sub modes { return @{ $_[0]->command('modes') }; }
sub mode { return $_[0]->command('mode', $_[1]); }
sub stats { return $_[0]->command('stats'); }
sub stop { return $_[0]->command('stop'); }
sub listen { return $_[0]->command('listen'); }

1;
