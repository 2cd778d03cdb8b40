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

use Cwd qw(abs_path);
use File::Basename;
use IO::Select;
use IPC::Open2;
use JSON::PP;

my $helper = dirname(abs_path(__FILE__)) . '/zkctl.py';
my $python = -x '/usr/bin/python3' ? '/usr/bin/python3' : 'python3';

sub new
{
	my ($class, $connect_string, %params) = @_;

	my $self = bless { connect_string => $connect_string }, $class;
	$self->{timeout} = $params{timeout} // 60;
	$self->{pid} = open2($self->{out}, $self->{in}, $python, $helper,
		$connect_string, $params{session_timeout} // 10);
	$self->{json} = JSON::PP->new->ascii->allow_nonref;
	return $self;
}

sub pid { return $_[0]->{pid}; }

# Sends one command; returns its value, or dies with the exception's name.
sub command
{
	my ($self, @command) = @_;

	my $in = $self->{in};
	print $in $self->{json}->encode(\@command), "\n";
	$in->flush;

	die "no answer to \"@command\" within $self->{timeout} s\n"
	  unless IO::Select->new($self->{out})->can_read($self->{timeout});
	my $line = readline($self->{out});
	die "zkctl.py ended at \"@command\"\n" unless defined $line;

	my ($good, $value) = @{ $self->{json}->decode($line) };
	die "$value at \"@command\"\n" unless $good;
	return $value;
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
