# Datagrams between servers, disturbed: relays on loopback, each with a name.
# udprelay.py does the work, in one process that ends with the test.
#
#	my $relay = UdpRelay->new;
#	$relay->route('to-one', $port, $target);	# its own port, where it sends to
#
#	$relay->drop('*');				# nothing gets through
#	$relay->double('to-*');
#	$relay->delay('to-one', 0.05);	# seconds
#	$relay->pass('*');				# all is well again
#	$relay->seen('to-one');			# all datagrams so far, also those dropped, as bytes
#
# Commands take the name of a relay or a pattern (* ? [ ]), but for route and seen.

package UdpRelay;

use strict;
use warnings;

use parent 'PipedProgram';

sub new { return $_[0]->start('udprelay.py'); }

sub route
{
	my ($self, $name, $port, $target) = @_;

	return $self->command('route', $name, $port + 0, $target + 0);
}

sub drop { return $_[0]->command('copies', $_[1], 0); }
sub double { return $_[0]->command('copies', $_[1], 2); }
sub delay { return $_[0]->command('delay', $_[1], $_[2] + 0); }

sub pass
{
	my ($self, $pattern) = @_;

	$self->command('copies', $pattern, 1);
	return $self->command('delay', $pattern, 0);
}

sub seen
{
	my ($self, $name) = @_;

	return map { pack 'H*', $_ } @{ $self->command('seen', $name) };
}

1;
