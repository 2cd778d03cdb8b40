# A foreign ZooKeeper client for tests: zkctl.py behind a pipe.  Each object
# is one ZooKeeper session of its own.
#
#	my $client = ZooKeeperClient->new($connect_string);
#	my @children = $client->ls('/zklock/batch');
#	$client->lock('w', 'write', '/zklock/batch');	# starts to wait
#	wait_for(sub { $client->held('w') });
#	$client->unlock('w');
#
# Every command of zkctl.py is a method.  An error of ZooKeeper's dies with
# the name of kazoo's exception; try_* returns undef instead.

package ZooKeeperClient;

use strict;
use warnings;

use parent 'PipedProgram';

sub new
{
	my ($class, $connect_string, %params) = @_;
	my $self = $class->start('zkctl.py', $connect_string,
		$params{session_timeout} // 10);

	$self->{timeout} = $params{timeout} if $params{timeout};
	return $self;
}

sub ls { return @{ $_[0]->command('ls', $_[1]) }; }
sub tree { return @{ $_[0]->command('tree', $_[1]) }; }

sub quit
{
	my ($self) = @_;

	return unless $self->{pid};
	eval { $self->command('quit') };
	close $self->{in};
	kill 'KILL', $self->{pid} if $@;
	waitpid $self->{pid}, 0;
	delete $self->{pid};
	return;
}

# Ends without closing the session, as a crashed client would.
sub kill9
{
	my ($self) = @_;

	kill 'KILL', $self->{pid};
	waitpid $self->{pid}, 0;
	delete $self->{pid};
	return;
}

our $AUTOLOAD;

sub AUTOLOAD
{
	my ($self, @arguments) = @_;
	my $name = $AUTOLOAD =~ s/.*:://r;

	if ($name =~ s/^try_//)
	{
		my $value = eval { $self->command($name, @arguments) };
		return $value;
	}
	return $self->command($name, @arguments);
}

sub DESTROY
{
	my ($self) = @_;

	return unless $self->{pid};
	local ($?, $@);
	kill 'KILL', $self->{pid};
	waitpid $self->{pid}, 0;
	return;
}

1;
